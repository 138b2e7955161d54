"""`lessor drill`: what a person is shown about late writes, at the store and at a remote of theirs."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from person import Person, Said, git

from lessor.receive.keeper import stop_keeper


@pytest.fixture
def origin(tmp_path: Path, shop: Path) -> Path:
    """The remote `origin`, by a path that counts from the shop."""
    place = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(place))
    git(shop, "remote", "set-url", "origin", "../origin.git")
    git(shop, "push", "-q", "origin", "main")
    return place


def state_of(shop: Path) -> list[str]:
    """Everything of a clone that a drill could touch."""
    asked = (
        ["for-each-ref"],
        ["status", "--porcelain", "--ignored"],
        ["worktree", "list", "--porcelain"],
        ["config", "--local", "--list"],
        ["reflog", "--all"],
        ["count-objects", "-v"],
    )
    return [git(shop, *args) for args in asked]


def steps(said: Said) -> dict[str, list[bool | None]]:
    found: dict[str, list[bool | None]] = {}
    for step in said.json["steps"]:
        found.setdefault(step["text"], []).append(step["passed"])
    return found


def processes_of_drills(own: Path = Path("/")) -> list[bytes]:
    """Command lines of processes that work for a drill's scratch branch, in a directory below `own`."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(place.read_bytes())
    below = bytes(own)
    return [line for line in found if b"chore/lessor-drill-" in line and below in line]


def on_the_page(call: str) -> str:
    """What docs/remote.md shows below a call."""
    page = (Path(__file__).parents[2] / "docs" / "remote.md").read_text()
    return page.partition(f"$ {call}\n")[2].partition("```")[0]


def settled(text: str) -> str:
    """A drill's output without what differs from one to the next."""
    text = re.sub(r"\b[0-9a-f]{7,40}\b", "COMMIT", text)
    text = re.sub(r"lease_[0-9a-z]{26}", "LEASE", text)
    return re.sub(r"lessor-drill-[0-9a-f]{8}", "lessor-drill-NAME", text)


def nothing_is_left(person: Person, origin: Path) -> None:
    assert git(origin, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    with closing(person.open()) as lessor:
        assert [t.state for t in lessor.tasks.tasks(everywhere=True)] == ["cancelled"]
        assert lessor.leases.leases(live=True) == []
        (task,) = lessor.tasks.tasks(everywhere=True)
        assert all(intent.outcome for intent in lessor.intents.of_task(task.id))


def test_the_paused_worker_changes_nothing_in_the_store(person: Person) -> None:
    said = person.ok("drill", "-o", "json").json
    assert said["passed"]
    assert len(said["steps"]) > 12


def test_a_fenced_remote_refuses_the_late_pushes(person: Person, shop: Path, origin: Path) -> None:
    """In the very push that was paused, though this remote takes no push options."""
    person.ok("repo", "fence", "origin")
    before = state_of(shop)
    said = person.ok("drill", "--remote")
    assert said.out.count("✓ origin refuses its late push\n     cannot lock ref 'refs/") == 2
    assert settled(said.out) == settled(on_the_page("lessor drill --remote"))
    assert state_of(shop) == before
    nothing_is_left(person, origin)


def test_hooks_refuse_the_late_pushes(person: Person, shop: Path, origin: Path) -> None:
    person.ok("git", "install-server-hooks", str(origin))
    try:
        said = person.ok("drill", "--remote", "origin", "-o", "json")
    finally:
        stop_keeper(origin / "lessor")
    assert (said.json["remote"], said.json["refused"], said.json["next"]) == ("origin", True, None)
    told = [s["detail"] for s in said.json["steps"] if s["text"] == "origin refuses its late push"]
    assert all("that lease is over: its time ran out" in detail for detail in told)
    assert len(told) == 2
    assert steps(said)["a plain `git push` to its branch is refused"] == [True]
    assert steps(said)["origin holds the newer result"] == [True, True]
    assert said.json["fenceReferences"].startswith("none yet; on scratch ones origin refused")
    nothing_is_left(person, origin)


def test_a_plain_remote_takes_the_late_push_and_the_drill_names_what_changes_that(
    person: Person, shop: Path, origin: Path, tmp_path: Path
) -> None:
    ssh = tmp_path / "ssh"  # reached as their own configuration says
    ssh.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    git(shop, "config", "core.sshCommand", str(ssh))
    git(shop, "config", "ssh.variant", "simple")
    git(shop, "remote", "set-url", "origin", f"server:{origin}")
    before = state_of(shop)
    said = person.run("drill", "--remote")
    assert said.code == 1
    assert "✗ origin refuses its late push   TAKEN" in said.out
    assert "origin takes a late push: nothing there compares it with a lease." in said.out
    assert said.lines[-1] == "next  lessor repo fence origin"
    assert settled(said.out) == settled(on_the_page("lessor drill --remote        # not fenced"))
    assert max(map(len, said.lines)) <= 80
    assert state_of(shop) == before
    nothing_is_left(person, origin)
    person.ok(*shlex.split(said.lines[-1])[2:])


def test_a_remote_that_takes_no_references_of_lessors_is_told_another_way(
    person: Person, shop: Path, origin: Path
) -> None:
    refuse = origin / "hooks" / "update"
    refuse.write_text("#!/bin/sh\ncase $1 in refs/lessor/*) echo no >&2; exit 1 ;; esac\n")
    refuse.chmod(0o755)
    said = person.run("drill", "--remote", "-o", "json")
    assert said.code == 1
    assert said.json["refused"] is False
    assert "can't be a fence" in said.json["fenceReferences"]
    assert said.json["next"] == f"lessor git install-server-hooks {origin}"
    nothing_is_left(person, origin)


def test_a_fenced_remote_that_refuses_now_gives_no_lease_and_shows_nothing(
    person: Person, shop: Path, origin: Path
) -> None:
    person.ok("repo", "fence", "origin")
    git(origin, "config", "receive.hideRefs", "refs/lessor")
    said = person.run("drill", "--remote", "-o", "json")
    assert said.code == 1
    assert said.json["refused"] is None
    assert "nothing is shown" in said.json["verdict"]
    assert steps(said)["worker A claims a task for 4000 ms, and renews"] == [False]


def test_a_remote_that_cant_be_reached_is_said_before_anything_is_made(
    person: Person, shop: Path, origin: Path
) -> None:
    origin.rename(origin.with_name("away.git"))
    said = person.run("drill", "--remote", "-o", "json")
    assert said.code == 75
    assert said.problem["code"] == "remote_unreachable"
    with closing(person.open()) as lessor:
        assert lessor.tasks.tasks(everywhere=True) == []


def test_a_repository_without_a_remote_is_told_so(person: Person, shop: Path) -> None:
    git(shop, "remote", "remove", "origin")
    refused = person.run("drill", "--remote")
    assert (refused.code, "has no remote" in refused.err) == (2, True)
    assert "git remote add origin URL" in refused.err


def test_another_remote_than_the_fenced_one_is_not_tried(
    person: Person, shop: Path, origin: Path
) -> None:
    person.ok("repo", "fence", "origin")
    git(shop, "remote", "add", "hub", str(origin))
    said = person.run("drill", "--remote", "hub")
    assert said.code == 2
    assert "lessor drill --remote origin" in said.err


def test_what_cant_be_taken_away_is_named_with_a_command_that_does_it(
    person: Person, shop: Path, origin: Path
) -> None:
    git(origin, "config", "receive.denyDeletes", "true")
    said = person.run("drill", "--remote", "-o", "jsonl")
    assert len(said.lines) == 1
    left = [step for step in said.json["steps"] if step["text"].startswith("may be left")]
    assert any("refs/heads/chore/lessor-drill-" in step["text"] for step in left)
    for step in left:
        subprocess.run(shlex.split(step["detail"]), cwd=shop, check=True)
    nothing_is_left(person, origin)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_drill_takes_away_what_it_made(
    person: Person, shop: Path, origin: Path, tmp_path: Path, number: signal.Signals
) -> None:
    person.ok("repo", "fence", "origin")
    own = tmp_path / "tmp"  # other tests' drills run beside this one
    own.mkdir()
    drill = subprocess.Popen(
        person.command("drill", "--remote"),
        cwd=shop,
        env={**person.environment(), "TMPDIR": str(own)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert drill.stdout is not None
    watchdog = threading.Timer(90, drill.kill)
    watchdog.start()
    for line in drill.stdout:
        if "is paused (SIGSTOP)" in line:
            assert processes_of_drills(own)
            drill.send_signal(number)
            break
    out, _ = drill.communicate()
    watchdog.cancel()
    assert drill.returncode == 128 + number
    assert "nothing of it is left at origin" in out
    assert processes_of_drills(own) == []
    assert list(own.iterdir()) == []
    nothing_is_left(person, origin)


def test_a_killed_drill_leaves_no_process_and_the_next_one_takes_the_rest_away(
    person: Person, shop: Path, origin: Path, tmp_path: Path
) -> None:
    person.ok("repo", "fence", "origin")
    own = tmp_path / "tmp"
    own.mkdir()
    there = Person(home=person.home, cwd=shop, env={"TMPDIR": str(own)})
    drill = subprocess.Popen(
        there.command("drill", "--remote"),
        cwd=shop,
        env=there.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert drill.stdout is not None
    watchdog = threading.Timer(90, drill.kill)
    watchdog.start()
    for line in drill.stdout:
        if "is paused (SIGSTOP)" in line:
            break
    (branch,) = re.findall(r"chore/lessor-drill-\w+", git(origin, "for-each-ref"))
    drill.kill()
    drill.communicate()
    watchdog.cancel()
    until_gone(branch)
    assert there.ok("list", "-o", "json").json == []
    assert there.ok("-o", "json").json["running"] == []
    said = there.ok("drill", "--remote", "-o", "json")
    assert steps(said)["an earlier drill was killed"] == [None]
    assert list(own.iterdir()) == []
    assert git(origin, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    tasks = there.ok("list", "--queue", "lessor-drill", "-o", "json").json
    assert [task["state"] for task in tasks] == ["cancelled", "cancelled"]


def test_a_drill_is_on_no_list_of_what_people_work_on(person: Person) -> None:
    person.add("mine")
    person.ok("drill")
    assert "Known: shop." in person.run("list", "--repo", "nowhere").err
    assert [task["title"] for task in person.ok("list", "--all", "-o", "json").json] == ["mine"]


def until_gone(branch: str) -> None:
    """Wait until no process works for `branch`; the test's own time limit ends it."""
    while any(branch.encode() in line for line in processes_of_drills()):
        threading.Event().wait(0.05)
