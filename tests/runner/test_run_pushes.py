"""Runs in a repository that is fenced, and runs whose results are pushed."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_rig import ADD, git
from supervisor_rig import until

from lessor.errors import HostError, RemoteUnreachableError
from lessor.model.task import Effects
from lessor.runner import remote as remote_module
from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind

PUSHING = Plan(check="true", push=True)


@pytest.fixture
def origin(shop) -> Path:
    """A bare repository that the shop calls origin; the shop is fenced at it."""
    place = shop.directory / "origin.git"
    git(shop.directory, "init", "-q", "--bare", "-b", "main", str(place))
    git(shop.root, "remote", "add", "origin", str(place))
    git(shop.root, "push", "-q", "origin", "main")
    shop.lessor.registry.set_fence_remote(shop.repository, "origin")
    return place


def fences(origin: Path) -> str:
    return git(origin, "for-each-ref", "--format=%(refname)", "refs/lessor/fence")


def tip(origin: Path, branch: str) -> str:
    return git(origin, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")


def facts(shop, task: str) -> dict:
    return dict(shop.lessor.leases.leases(task=task)[-1].result.facts)


def test_an_agent_starts_when_its_lease_is_ready_and_its_end_closes_the_fence(shop, origin):
    task = shop.add()
    agent = f"git -C {origin} for-each-ref --format='%(refname)' refs/lessor > fences.txt; {ADD}"
    assert shop.run(agent, plan=Plan(check="true")) == 0
    (lease,) = shop.lessor.leases.leases(task=task)
    assert shop.shown(task, "fences.txt") == f"refs/lessor/fence/{lease.id}"
    assert fences(origin) == ""
    assert tip(origin, shop.branch(task)) == ""


def test_a_verified_result_is_pushed_before_its_task_is_completed(shop, origin):
    task = shop.add()
    assert shop.run(plan=PUSHING) == 0
    found = shop.task(task)
    assert (found.state, found.stage) == ("succeeded", "pushed")
    assert tip(origin, found.branch) == found.commit
    assert shop.notes.texts(NoteKind.PUSHED) == [f"{found.branch} to origin"]
    assert facts(shop, task)["pushed"] == "origin"
    kinds = [entry.kind for entry in shop.lessor.tasks.history(task)]
    assert kinds.index("published") < kinds.index("completed")


def test_without_a_check_a_pushed_result_stays_unverified(shop, origin):
    task = shop.add()
    assert shop.run(plan=Plan(push=True)) == 0
    found = shop.task(task)
    assert (found.stage, tip(origin, found.branch)) == ("unverified", found.commit)


def test_a_result_is_pushed_where_nothing_is_fenced(shop, origin):
    shop.lessor.registry.set_fence_remote(shop.repository, None)
    task = shop.add()
    assert shop.run(plan=PUSHING) == 0
    assert (shop.task(task).stage, fences(origin)) == ("pushed", "")


def test_nothing_is_pushed_that_nobody_asked_for(shop, origin):
    task = shop.add()
    assert shop.run(plan=Plan(check="true")) == 0
    assert shop.task(task).stage == "verified"
    assert tip(origin, shop.branch(task)) == ""
    read_only = shop.add("look", effects=Effects.READ_ONLY)
    assert shop.run("true", plan=PUSHING) == 0
    assert shop.task(read_only).state == "succeeded"
    assert tip(origin, shop.branch(read_only)) == ""
    assert shop.notes.texts(NoteKind.PUSHED) == []


def test_a_push_that_the_remote_refuses_costs_no_result(shop, origin):
    hook = origin / "hooks" / "pre-receive"
    hook.write_text(
        "#!/bin/sh\ngrep -q refs/heads/ || exit 0\necho 'not on a Friday' >&2; exit 1\n"
    )
    hook.chmod(0o755)
    task = shop.add()
    assert shop.run(plan=PUSHING) == 0
    found = shop.task(task)
    assert (found.state, found.stage) == ("succeeded", "verified")
    assert "not on a Friday" in shop.notes.texts(NoteKind.NOT_PUSHED)[0]
    assert "not on a Friday" in facts(shop, task)["pushed"]


def test_while_the_remote_is_away_no_agent_starts_and_no_attempt_is_spent(shop, origin):
    away = origin.rename(origin.with_name("away"))
    task = shop.add(max_attempts=1)
    started = shop.start(plan=PUSHING)
    shop.await_note(NoteKind.HELD)
    assert shop.notes.texts(NoteKind.HELD)[0].startswith(
        "no lease yet, asked again every 5 s for 2 m: "
    )
    assert not shop.started_notes()
    away.rename(origin)
    started.thread.join(60)
    found = shop.task(task)
    assert (found.state, found.charged, found.epoch) == ("succeeded", 0, 2)


def test_a_remote_that_stays_away_ends_the_run(shop, origin, monkeypatch):
    monkeypatch.setattr(remote_module, "AWAY_MS", 0)
    origin.rename(origin.with_name("away"))
    task = shop.add()
    with pytest.raises(RemoteUnreachableError):
        shop.run(plan=PUSHING)
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)


def test_unfenced_leases_work_while_the_remote_is_away(shop, origin):
    shop.lessor.registry.set_fence_remote(shop.repository, "origin", unfenced=True)
    origin.rename(origin.with_name("away"))
    task = shop.add()
    assert shop.run(plan=PUSHING) == 0
    assert (shop.task(task).state, shop.task(task).stage) == ("succeeded", "verified")
    assert shop.notes.of(NoteKind.NOT_PUSHED)


def test_a_remote_that_refuses_a_fence_ends_the_run_with_its_words(shop, origin):
    hook = origin / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    task = shop.add()
    with pytest.raises(HostError, match="refuses to change"):
        shop.run(plan=PUSHING)
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)


def test_a_run_asks_what_became_of_a_dead_runs_push_before_it_claims(shop, origin):
    """The remote's hook kills the first run, once the branch has moved."""
    task = shop.add("first", scopes=["first.txt"])
    pid = shop.directory / "pid"
    hook = origin / "hooks" / "reference-transaction"
    hook.write_text(
        f'#!/bin/sh\ntest "$1" = committed && grep -q refs/heads/ || exit 0\nkill -9 $(cat {pid})\n'
    )
    hook.chmod(0o755)
    spawned = shop.spawn("echo one > first.txt", plan={"check": "true", "push": True})
    pid.write_text(f"{spawned.process.pid}\n")
    spawned.process.wait(60)
    hook.unlink()
    until(lambda: shop.lessor.leases.leases(task=task)[-1].end is not None, "the lease ended")
    (intent,) = shop.lessor.intents.of_task(task)
    assert intent.outcome is None
    assert shop.task(task).state == "reconciling"
    assert shop.run("echo two > first.txt", plan=PUSHING) == 0
    assert [i.outcome for i in shop.lessor.intents.of_task(task)] == ["done", "done"]
    assert tip(origin, shop.branch(task)) == shop.task(task).commit
