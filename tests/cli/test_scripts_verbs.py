"""Leases for scripts: the terminal example, claim to end, tokens, exit codes."""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from person import KEY, Person, names

from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest
from lessor.model.task import AD_HOC
from lessor.model.worker import NewWorker
from lessor.runner.lease_file import lease_file, write_holder

LEASE = r"lease_[0-9a-z]{26}"


def test_the_terminal_example_works_as_printed(outside: Person) -> None:
    acquired = outside.ok("acquire", "--repo", "acme/payments", "--scope", "services/billing").lines
    lease = acquired[0].removeprefix("lease acquired: ")
    assert re.fullmatch(LEASE, lease)
    assert re.fullmatch(r"workspace: wt-billing-\d+", acquired[1])
    assert acquired[2:] == ["ttl: 300s"]

    renewed = outside.ok("renew", lease).lines
    assert re.fullmatch(
        r"lease renewed: version=2 expiresAt=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", renewed[0]
    )
    assert outside.ok("renew", lease).lines[0].startswith("lease renewed: version=3 ")

    assert outside.ok("sweep-stale", "--repo", "acme/payments").lines == ["nothing to reclaim"]
    stale = outside.ok(
        *("acquire", "--repo", "acme/payments", "--scope", "libs/tax"),
        *("--ttl", "50ms", "--agent", "codex-worker-4", "-o", "json"),
    ).json
    swept = _swept(outside)
    assert re.fullmatch(
        rf"reclaimed: {stale['leaseId']} owner=codex-worker-4/{stale['number']} expired=\d+s", swept
    )


def _swept(person: Person) -> str:
    """The answer of the first sweep that finds something: the lease of 50 ms runs out meanwhile."""
    for _ in range(100):
        line = person.ok("sweep-stale", "--repo", "acme/payments").lines[0]
        if line != "nothing to reclaim":
            return line
    raise AssertionError("nothing ran out")


def test_a_lease_has_the_seeds_names_in_json(person: Person) -> None:
    record = person.ok(
        "acquire",
        "--scope",
        "services/billing",
        "--scope",
        "libs/tax",
        "--agent",
        "codex-1",
        "-o",
        "json",
    ).json
    assert re.fullmatch(LEASE, record["leaseId"])
    assert record["repo"] == KEY
    assert record["scope"] == {"kind": "path-set", "paths": ["libs/tax", "services/billing"]}
    assert record["workspaceId"] == f"wt-tax-{record['number']}"
    assert record["owner"]["agentId"] == "codex-1"
    assert record["owner"]["taskId"].startswith("task_")
    assert (record["status"], record["version"]) == ("active", 1)
    assert record["acquiredAt"] < record["expiresAt"]
    assert record["expiresAt"].endswith("Z")
    listed = person.ok("list", "--leases", "-o", "json").json[0]
    assert {
        k: listed[k] for k in ("leaseId", "repo", "scope", "workspaceId", "owner", "status")
    } == {k: record[k] for k in ("leaseId", "repo", "scope", "workspaceId", "owner", "status")}


def test_a_completion_without_its_commit_says_that_nothing_can_land(person: Person) -> None:
    for more, told in (((), True), (("--no-change", "it was right"), False)):
        person.add("a")
        said = person.ok("complete", person.claim()["leaseId"], *more).out
        assert ("no --commit was named" in said) is told


def test_acquire_refuses_what_somebody_holds(person: Person) -> None:
    person.ok("acquire", "--scope", "services/billing", "--agent", "codex-1")
    refused = person.run("acquire", "--scope", "services/billing/client.py")
    assert refused.code == 6
    assert "codex-1" in refused.err
    problem = person.run("acquire", "--scope", "services", "-o", "json").problem
    assert (problem["code"], problem["exitCode"]) == ("scope_held", 6)
    assert problem["facts"]["holder"] == "codex-1"


def test_siblings_with_a_common_beginning_are_disjoint(person: Person) -> None:
    person.ok("acquire", "--scope", "services/billing")
    assert person.run("acquire", "--scope", "services/billing-v2").code == 0


def test_a_token_is_a_file_of_0600_and_is_printed_nowhere(person: Person) -> None:
    said = person.ok("acquire", "--scope", "web", "-o", "json")
    (path,) = (person.state / "leases").iterdir()
    token = json.loads(path.read_text())["token"]
    assert len(token) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(person.state.stat().st_mode) == 0o700
    for command in (
        ["show", "1"],
        ["history", "1"],
        ["list", "--leases"],
        ["renew", said.json["leaseId"]],
    ):
        assert token not in person.ok(*command, "-o", "json").out


def test_a_lease_whose_token_cant_be_kept_is_given_back(person: Person) -> None:
    person.add("a")
    (person.state / "leases").write_text("in the way")
    for command in (["claim"], ["acquire", "--scope", "web"], ["hold", "web"]):
        refused = person.run(*command)
        assert refused.code == 75
        assert str(person.state / "leases") in refused.err
        assert "The lease was given back" in refused.err
        assert person.ok("list", "--leases", "-o", "json").json == []
    (person.state / "leases").unlink()
    assert person.claim()["title"] == "a"


def test_renew_without_the_token_is_refused(person: Person) -> None:
    lease = person.ok("acquire", "--scope", "web", "-o", "json").json["leaseId"]
    (person.state / "leases" / f"{lease}.json").unlink()
    refused = person.run("renew", lease)
    assert refused.code == 4
    assert "isn't on this machine" in refused.err


def test_renew_of_a_lost_lease_exits_with_7(person: Person) -> None:
    grant = _claimed(person)
    person.ok("force-release", str(grant["number"]), "--reason", "stuck", "--checked", "no process")
    refused = person.run("renew", grant["leaseId"], "-o", "json")
    assert refused.code == 7
    assert refused.problem["facts"]["end_reason"] == "forced"


def test_renewals_at_once_are_all_taken(person: Person) -> None:
    lease = person.ok("acquire", "--scope", "web", "-o", "json").json["leaseId"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: person.run("renew", lease, "-o", "json"), range(4)))
    assert [answer.code for answer in answers] == [0] * 4
    assert sorted(answer.json["version"] for answer in answers) == [2, 3, 4, 5]


def test_a_renewal_that_was_cut_off_before_the_file_goes_on(person: Person) -> None:
    lease = person.ok("acquire", "--scope", "web", "-o", "json").json["leaseId"]
    path = person.state / "leases" / f"{lease}.json"
    before = path.read_text()
    person.ok("renew", lease)
    path.write_text(before)  # as a crash between the store's answer and the file leaves it
    assert person.ok("renew", lease, "-o", "json").json["version"] == 3


def test_the_lease_of_a_run_is_left_to_the_run(person: Person) -> None:
    person.add("a task")
    lessor = person.open()
    worker = lessor.registry.add_worker(NewWorker(agent="claude-1", heartbeat=True))
    wish = ClaimRequest(worker=worker.id, request_id=new_request_id(), secret=new_token())
    (grant,) = lessor.leases.claim(wish)
    write_holder(lease_file(person.state / "leases", grant.lease), grant.holder)
    lessor.close()
    for verb in (["renew"], ["release"], ["complete"], ["fail", "--error", "x"]):
        refused = person.run(verb[0], grant.lease, *verb[1:])
        assert refused.code == 6
        assert refused.err.splitlines()[-1].endswith(f"lessor cancel {grant.number}")


def test_claim_takes_in_order_and_exits_with_3_when_there_is_nothing(person: Person) -> None:
    person.add("later")
    person.add("first", "--priority", "5")
    assert names(person.ok("ready", "-o", "json").json) == ["first", "later"]
    assert person.claim()["title"] == "first"
    assert person.claim()["title"] == "later"
    nothing = person.run("claim")
    assert (nothing.code, nothing.lines[0]) == (3, "nothing to claim")
    empty = person.run("claim", "-o", "json")
    assert (empty.code, empty.json) == (3, [])


def test_claim_gives_only_tasks_that_the_worker_may_do(person: Person) -> None:
    person.add("for codex", "--agent", "codex")
    person.add("for a builder", "--need", "docker", "--need", "gpu")
    assert person.run("claim", "--agent", "claude-1").code == 3
    assert person.claim("--agent", "codex-2")["title"] == "for codex"
    assert person.run("claim", "--offer", "docker").code == 3
    assert person.claim("--offer", "docker", "--offer", "gpu")["title"] == "for a builder"


def test_one_name_is_one_worker(person: Person) -> None:
    for title in ("a", "b", "c"):
        person.add(title)
        person.claim("--agent", "codex-1")
    lessor = person.open()
    assert [worker.agent for worker in lessor.registry.workers()] == ["codex-1"]
    lessor.close()


def test_complete_ends_the_task_and_forgets_the_token(person: Person) -> None:
    grant = _claimed(person)
    ended = person.ok("complete", grant["leaseId"], "--said", "done", "-o", "json").json
    assert (ended["state"], ended["end"]) == ("succeeded", "completed")
    assert not list((person.state / "leases").iterdir())
    again = person.run("complete", grant["leaseId"])
    assert again.code == 7
    assert "completed" in again.err


def test_fail_lets_the_rules_decide_and_final_ends_it(person: Person) -> None:
    grant = _claimed(person)
    ended = person.ok("fail", grant["leaseId"], "--error", "boom", "-o", "json").json
    assert (ended["state"], ended["rule"]) == ("queued", "workspace")
    other = _claimed(person, "other")
    assert (
        person.ok("fail", other["leaseId"], "--error", "no", "--final", "-o", "json").json["state"]
        == "failed"
    )


def test_release_gives_the_task_back_and_acquired_paths_up(person: Person) -> None:
    grant = _claimed(person)
    assert person.ok("release", grant["leaseId"], "-o", "json").json["state"] == "queued"
    lease = person.ok("acquire", "--scope", "web", "-o", "json").json["leaseId"]
    assert person.ok("release", lease, "-o", "json").json["state"] == "cancelled"
    assert person.run("acquire", "--scope", "web").code == 0


def test_a_late_result_is_refused_and_kept(person: Person) -> None:
    grant = _claimed(person)
    number = str(grant["number"])
    path = person.state / "leases" / f"{grant['leaseId']}.json"
    token = path.read_text()
    person.ok("force-release", number, "--reason", "stuck", "--checked", "ps")
    path.write_text(token)
    late = person.run("complete", grant["leaseId"], "--said", "too late", "-o", "json")
    assert (late.code, late.problem["code"]) == (7, "lease_lost")
    kinds = names(person.ok("history", number, "-o", "json").json, "kind")
    assert kinds[-1] == "late"


def test_acquired_paths_that_ran_out_leave_no_work_behind(person: Person) -> None:
    person.ok("acquire", "--repo", "acme/payments", "--scope", "libs", "--ttl", "50ms")
    _swept(person)
    assert person.run("claim", "--repo", "acme/payments", "--queue", AD_HOC).code == 3
    assert names(person.ok("list", "--repo", "acme/payments", "-o", "json").json, "state") == [
        "cancelled"
    ]


def test_a_lease_can_be_named_by_its_task(person: Person) -> None:
    grant = _claimed(person)
    assert person.ok("renew", str(grant["number"]), "-o", "json").json["version"] == 2
    assert person.run("renew", "99").code == 5
    person.ok("release", f"#{grant['number']}")
    assert person.run("renew", str(grant["number"])).code == 5


def test_a_lease_id_never_leads_out_of_the_tokens_directory(person: Person) -> None:
    for lease in ("lease_../../x", "lease_", "lease_" + "a" * 300, "lease_0000"):
        assert person.run("renew", lease).code == 5


def _claimed(person: Person, title: str = "a task") -> dict[str, object]:
    number = person.add(title)["number"]
    return person.claim("--task", str(number))


GRANTING = [("claim", "-o", "json"), ("claim",), ("acquire", "--scope", "docs"), ("hold", "docs")]


@pytest.mark.parametrize("command", GRANTING, ids=" ".join)
@pytest.mark.parametrize(("output", "code"), [("full", 1), ("closed pipe", 141)])
def test_a_lease_whose_id_reached_nobody_is_told_on_standard_error(
    person: Person, command: tuple[str, ...], output: str, code: int
) -> None:
    person.add("a task")
    if output == "full":
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full here")
        descriptor = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, descriptor = os.pipe()
        os.close(reading)
    done = subprocess.run(
        person.command(*command),
        cwd=person.cwd,
        env=person.environment(),
        stdout=descriptor,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(descriptor)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    (lease,) = person.ok("list", "--leases", "-o", "json").json
    assert f"You hold {lease['leaseId']}" in done.stderr
    if "json" in command:
        assert json.loads(done.stderr)["facts"]["leases"] == [lease["leaseId"]]
    person.ok("release", lease["leaseId"])


@pytest.mark.parametrize(
    "command", [("claim",), ("acquire", "--scope", "docs"), ("hold", "docs"), ("sweep-stale",)]
)
def test_a_token_that_a_crash_left_goes_once_its_lease_is_over(
    person: Person, command: tuple[str, ...]
) -> None:
    over = _claimed(person, "over")
    person.ok("force-release", str(over["number"]), "--reason", "stuck", "--checked", "no process")
    person.ok("cancel", str(over["number"]))
    lives = person.ok("hold", "web", "-o", "json").json
    tokens = person.state / "leases"
    own = lives["leaseId"]
    elsewhere = tokens / f"{own[:8]}{'y' if own[8] == 'x' else 'x'}{own[9:]}.json"
    elsewhere.write_text("{}")
    draft = tokens / f".{own}.json.abcd1234"
    draft.write_text("{}")
    other = tokens / "notes.txt"
    other.write_text("mine")
    left = tokens / f"{over['leaseId']}.json"
    assert left.exists()
    person.run(*command)
    assert left.exists(), "it may just have been written"
    for path in tokens.iterdir():
        os.utime(path, (0, 0))
    person.run(*command)
    assert not left.exists()
    assert not draft.exists()
    assert elsewhere.exists(), "a lease of another store"
    assert other.exists()
    person.ok("drop", "web")


def test_a_token_that_a_stopped_command_keeps_is_not_waited_for_for_ever(person: Person) -> None:
    acquired = person.ok("acquire", "--scope", "services/billing").lines
    lease = acquired[0].removeprefix("lease acquired: ")
    (token,) = (person.state / "leases").glob(f"{lease}.json")
    with token.open("rb") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)
        refused = person.run("renew", lease)
    assert refused.code == 75
    assert f"has the token of {lease}" in refused.err
    assert f"fuser -v {token}" in refused.err.replace("\n", " ")
    person.ok("renew", lease)
