"""`lessor push` and `lessor repo fence`, as a person or a script calls them."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from person import Person, git

from lessor.cli.invocation import Invocation
from lessor.git import command
from lessor.git.command import run_git
from lessor.git.slow import told_when_slow


@pytest.fixture
def origin(tmp_path: Path, shop: Path) -> Path:
    """A bare repository that the shop is pushed to under the name `hub`; `origin` isn't reached."""
    place = tmp_path / "hub.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(place))
    git(shop, "remote", "add", "hub", str(place))
    git(shop, "push", "-q", "hub", "main")
    return place


def fences(origin: Path) -> list[str]:
    listed = git(origin, "for-each-ref", "--format=%(refname)", "refs/lessor/fence")
    return [name.rpartition("/")[2] for name in listed.splitlines()]


def working(person: Person, shop: Path, *args: str) -> dict:
    """A claimed task with a commit on its branch, which is checked out."""
    number = str(person.add("work", *args)["number"])
    grant = person.claim("--task", number)
    git(shop, "checkout", "-q", "-B", grant["branch"])
    (shop / "work").write_text(f"{grant['epoch']}\n")
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", "work")
    return grant


def test_a_repository_is_fenced_once_the_remote_was_tried(
    person: Person, shop: Path, origin: Path
) -> None:
    assert "fenced at no remote" in person.ok("repo", "fence").out
    said = person.ok("repo", "fence", "hub")
    assert "is fenced at hub" in said.out
    assert said.lines[-1] == "next  lessor drill --remote"
    assert person.ok("repo", "fence", "-o", "json").json["fenceRemote"] == "hub"
    grant = person.claim("--task", str(person.add("a")["number"]))
    assert fences(origin) == [grant["leaseId"]]
    person.ok("release", grant["leaseId"])
    assert fences(origin) == []
    person.ok("repo", "fence", "off")
    person.claim()
    assert fences(origin) == []


def test_a_path_is_kept_whole(person: Person, shop: Path, origin: Path) -> None:
    said = person.ok("repo", "fence", "../hub.git", "--unfenced", "-o", "json").json
    assert (said["fenceRemote"], said["unfenced"]) == (str(origin), True)


@pytest.mark.parametrize(
    ("remote", "code", "words"),
    [
        ("upstream", 2, "no remote 'upstream'"),
        ("/nowhere.git:", 75, "can't be reached"),
        ("https://dana:hunter2@localhost:1/a.git", 2, "credentials"),
    ],
)
def test_what_cant_be_a_fence_is_set_nowhere(
    person: Person, shop: Path, origin: Path, remote: str, code: int, words: str
) -> None:
    said = person.run("repo", "fence", remote)
    assert said.code == code
    assert words in said.err
    assert "hunter2" not in said.err
    assert person.ok("repo", "fence", "-o", "json").json["fenceRemote"] is None


def test_a_push_needs_no_number_on_the_tasks_own_branch(
    person: Person, shop: Path, origin: Path
) -> None:
    person.ok("repo", "fence", "hub")
    grant = working(person, shop)
    head = git(shop, "rev-parse", "HEAD")
    said = person.ok("push", "-o", "json").json
    assert (said["commit"], said["remote"], said["moved"], said["fenced"]) == (
        head,
        "hub",
        True,
        True,
    )
    assert git(origin, "rev-parse", grant["branch"]) == head
    said = person.ok("push", str(grant["number"])).out
    assert f"was there already: {grant['branch']} {head[:7]} to hub, fenced" in said
    done = person.ok("complete", grant["leaseId"], "--stage", "pushed", "--commit", head).lines
    assert done[1] == "   lease completed; the task has succeeded"
    assert fences(origin) == []
    assert person.run("push").code == 5


def test_the_command_that_a_push_shows_ends_in_a_result_that_can_land(
    person: Person, shop: Path, origin: Path
) -> None:
    grant = working(person, shop)
    head, base = git(shop, "rev-parse", "HEAD"), git(shop, "rev-parse", "main")
    step = person.ok("push", "--remote", "hub").lines[-1].removeprefix("next  lessor ")
    git(shop, "checkout", "-q", "main")
    person.ok(*step.split())
    task = person.ok("show", str(grant["number"]), "-o", "json").json
    assert (task["stage"], task["commit"], task["base"]) == ("pushed", head, base)
    assert person.ok("diff", str(grant["number"])).out
    shown = person.ok("show", str(grant["number"])).out
    assert "checked  no check is on record" in shown
    assert f"lessor land {grant['number']}" in shown
    assert "to land" in person.ok().out


def test_a_push_goes_from_anywhere_by_number(person: Person, shop: Path, origin: Path) -> None:
    grant = working(person, shop)
    git(shop, "checkout", "-q", "main")
    assert person.run("push").code == 5
    said = person.ok("push", str(grant["number"]), "--remote", "hub", "-o", "json").json
    assert (said["fenced"], git(origin, "rev-parse", grant["branch"])) == (False, said["commit"])


def test_anothers_token_pushes_nothing(person: Person, shop: Path, origin: Path) -> None:
    grant = working(person, shop)
    token = person.state / "leases" / f"{grant['leaseId']}.json"
    token.rename(token.with_suffix(".away"))
    said = person.run("push", str(grant["number"]), "--remote", "hub")
    assert said.code == 4
    assert "isn't on this machine" in said.err


def test_an_agent_pushes_as_itself_alone(person: Person, shop: Path, origin: Path) -> None:
    """Its lease is over and another has the task, whose token lies in the same directory."""
    person.ok("repo", "fence", "hub")
    late = working(person, shop)
    token = person.state / "leases" / f"{late['leaseId']}.json"
    kept = token.with_suffix(".kept")
    kept.write_bytes(token.read_bytes())
    person.ok("release", late["leaseId"])
    current = person.claim()
    assert current["branch"] == late["branch"]
    zombie = dataclasses.replace(person, env={"LESSOR_LEASE_FILE": str(kept)})
    assert zombie.run("push").code == 7
    assert zombie.run("push", str(current["number"])).code == 4
    assert git(origin, "for-each-ref", f"refs/heads/{late['branch']}") == ""
    person.ok("push")


def test_a_cancelled_tasks_fence_is_gone_at_once(person: Person, shop: Path, origin: Path) -> None:
    person.ok("repo", "fence", "hub")
    grant = working(person, shop)
    person.ok("cancel", str(grant["number"]))
    assert fences(origin) == []
    assert person.run("push", str(grant["number"])).code == 5


def test_paths_are_held_and_dropped_with_their_fence(
    person: Person, shop: Path, origin: Path
) -> None:
    person.ok("repo", "fence", "hub")
    person.ok("hold", "services")
    person.ok("acquire", "--scope", "web")
    assert len(fences(origin)) == 2
    person.ok("drop", "services")
    person.ok("drop", "web")
    assert fences(origin) == []


def test_without_the_remote_nothing_is_claimed_or_held(
    person: Person, shop: Path, origin: Path
) -> None:
    person.ok("repo", "fence", "hub")
    person.add("a")
    away = origin.rename(origin.with_name("away.git"))
    for args in (["claim"], ["hold", "services"]):
        said = person.run(*args)
        assert said.code == 75
        assert "can't be reached" in said.err
        assert "lessor repo fence hub --unfenced" in said.err
    assert person.ok("list", "--leases", "-o", "json").json == []
    away.rename(origin)
    person.ok("hold", "services")
    assert person.claim()["title"] == "a"


@pytest.mark.parametrize(
    "args",
    [["claim"], ["acquire", "--scope", "web"], ["hold", "services"]],
    ids=lambda args: args[0],
)
def test_a_claim_that_gave_its_lease_back_says_that_a_repeat_needs_an_id_of_its_own(
    person: Person, shop: Path, origin: Path, args: list[str]
) -> None:
    person.ok("repo", "fence", "hub")
    person.add("a")
    away = origin.rename(origin.with_name("away.git"))
    said = person.run(*args, "--request-id", "mine", "-o", "json")
    assert said.code == 75
    assert "new --request-id: what mine was granted was given back" in said.problem["nextStep"]
    assert "--request-id" not in person.run(*args).err
    away.rename(origin)
    assert person.run(*args, "--request-id", "mine").code == 7


@pytest.mark.parametrize("lands", [True, False])
def test_a_push_that_died_before_its_record_is_found_out_by_the_next_claim(
    person: Person, shop: Path, origin: Path, tmp_path: Path, *, lands: bool
) -> None:
    """The remote's hook kills `lessor push` itself: before the references move, or after."""
    person.ok("repo", "fence", "hub")
    grant = working(person, shop)
    state = "committed" if lands else "prepared"
    hook = origin / "hooks" / "reference-transaction"
    hook.write_text(
        f'#!/bin/sh\ntest "$1" = {state} && grep -q refs/heads/ || exit 0\n'
        f"kill -9 $(cat {tmp_path}/pid)\n" + ("" if lands else "exit 1\n")
    )
    hook.chmod(0o755)
    pushing = subprocess.Popen(
        ["/bin/sh", "-c", f'echo $$ > {tmp_path}/pid; exec "$@"', "-", *person.command("push")],
        cwd=shop,
        env=person.environment(),
        stderr=subprocess.PIPE,
    )
    pushing.communicate(timeout=60)
    assert pushing.returncode == -9
    hook.unlink()
    with closing(person.open()) as lessor:
        lessor.tasks.cancel([grant["owner"]["taskId"]])
        assert len(lessor.intents.of_task(grant["owner"]["taskId"])) == 1
        assert lessor.intents.of_task(grant["owner"]["taskId"])[0].outcome is None
    other = person.add("after it", "--scope", "work")
    assert person.claim()["number"] == other["number"]
    with closing(person.open()) as lessor:
        (found,) = lessor.intents.of_task(grant["owner"]["taskId"])
        assert found.outcome == ("done" if lands else "failed")
    listed = git(origin, "for-each-ref", "--format=%(objectname)", f"refs/heads/{grant['branch']}")
    assert (listed != "") is lands


def test_sweep_stale_says_why_nobody_knows_yet_what_became_of_a_push(
    person: Person, shop: Path, origin: Path, tmp_path: Path
) -> None:
    """That is where `why` sends somebody whose task waits for the remote to be asked."""
    person.ok("repo", "fence", "hub")
    grant = working(person, shop)
    away = tmp_path / "away.git"
    hook = origin / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\nmv {origin} {away}\nkill -9 $PPID\n")
    hook.chmod(0o755)
    assert person.run("push").code == 75
    (away / "hooks" / "pre-receive").unlink()
    person.ok("release", grant["leaseId"])
    assert "sweep-stale" in person.ok("why", str(grant["number"])).out
    assert f"#{grant['number']} waits on: hub can't be reached" in person.ok("sweep-stale").err
    away.rename(origin)
    assert person.ok("sweep-stale").err == ""
    assert person.claim()["number"] == grant["number"]


def test_a_push_that_died_is_asked_about_by_its_holders_next(
    person: Person, shop: Path, origin: Path, tmp_path: Path
) -> None:
    person.ok("repo", "fence", "hub")
    grant = working(person, shop)
    hook = origin / "hooks" / "reference-transaction"
    hook.write_text(
        '#!/bin/sh\ntest "$1" = committed && grep -q refs/heads/ || exit 0\n'
        f"kill -9 $(cat {tmp_path}/pid)\n"
    )
    hook.chmod(0o755)
    pushing = subprocess.Popen(
        ["/bin/sh", "-c", f'echo $$ > {tmp_path}/pid; exec "$@"', "-", *person.command("push")],
        cwd=shop,
        env=person.environment(),
        stderr=subprocess.PIPE,
    )
    pushing.communicate(timeout=60)
    hook.unlink()
    said = person.ok("push", "-o", "json").json
    assert (said["moved"], git(origin, "rev-parse", grant["branch"])) == (False, said["commit"])
    kinds = [e["kind"] for e in person.ok("history", str(grant["number"]), "-o", "json").json]
    assert kinds[-2:] == ["publishing", "published"]
    (shop / "work").write_text("more\n")
    git(shop, "commit", "-q", "-am", "more")
    person.ok("push")


def test_a_claim_that_waits_finds_out_about_a_push_that_dies_meanwhile(
    person: Person, shop: Path, origin: Path, tmp_path: Path
) -> None:
    """The lease is still live when the wait begins, or nobody has ended it yet."""
    person.ok("repo", "fence", "hub")
    number = str(person.add("work")["number"])
    grant = person.claim("--task", number, "--ttl", "10s")
    git(shop, "checkout", "-q", "-B", grant["branch"])
    hook = origin / "hooks" / "reference-transaction"
    hook.write_text(
        '#!/bin/sh\ntest "$1" = committed && grep -q refs/heads/ || exit 0\n'
        f"kill -9 $(cat {tmp_path}/pid)\n"
    )
    hook.chmod(0o755)
    pushing = subprocess.Popen(
        ["/bin/sh", "-c", f'echo $$ > {tmp_path}/pid; exec "$@"', "-", *person.command("push")],
        cwd=shop,
        env=person.environment(),
        stderr=subprocess.PIPE,
    )
    pushing.communicate(timeout=60)
    hook.unlink()
    assert pushing.returncode == -9
    again = person.claim("--task", number, "--wait", "1h")  # the test would end before that
    assert again["epoch"] == grant["epoch"] + 1


def test_a_push_that_takes_long_says_what_it_waits_for(
    person: Person, shop: Path, origin: Path, tmp_path: Path
) -> None:
    working(person, shop)
    go_on = tmp_path / "go-on"
    hook = origin / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\nuntil test -e {go_on}; do sleep 0.1; done\n")
    hook.chmod(0o755)
    pushing = subprocess.Popen(
        person.command("push", "--remote", "hub"),
        cwd=shop,
        env=person.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert pushing.stderr is not None
    told = pushing.stderr.readline()
    go_on.touch()
    out, _ = pushing.communicate(timeout=60)
    assert told == "  note  git push takes long; it may go on for 14 m 55 s. Ctrl-C stops it.\n"
    assert (pushing.returncode, "pushed" in out) == (0, True)


def test_git_goes_on_where_nobody_can_be_told_that_it_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = tmp_path / "go-on"

    def tell(verb: str, left_s: float) -> None:
        go_on.touch()
        Invocation().tell_of_slow_git(verb, left_s)

    monkeypatch.setattr(command, "SLOW_S", 0.01)
    told = told_when_slow.set(tell)
    try:
        with io.FileIO("/dev/full", "w") as full:
            monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(full, write_through=True))
            wait = f"alias.wait=!until test -e {go_on}; do sleep 0.1; done; echo done"
            assert run_git(["-c", wait, "wait"], cwd=tmp_path).text == "done"
    finally:
        told_when_slow.reset(told)
