"""A git command that is frozen, or died, with its locks held takes no attempt from who comes next."""

from __future__ import annotations

import os
import signal

import pytest
from run_rig import git
from supervisor_rig import until

from lessor.model.lease import terms_for
from lessor.model.workspace import WorkspaceState
from lessor.runner.noting import NoteKind

TERMS = terms_for(8_000)
# Git has HEAD's lock and the branch's when it asks this hook whether to go on.
HOOK = '[ "$1" = prepared ] || exit 0\ntouch {ready}\nwhile [ ! -e {go} ]; do sleep 0.05; done\n'
COMMITS = (
    "echo half > half.txt; git add -A; git commit -qm half; echo late > late.txt; git add -A; "
    'git -c core.hooksPath={hooks} commit -qm late; touch "{go}.done"; exec sleep 600'
)
HEIR = "cat half.txt > rest.txt; git add -A; git commit -qm rest; echo more > more.txt"


class Frozen:
    """Epoch 1 is frozen, with its supervisor, in the middle of `git commit`."""

    def __init__(self, shop, **more) -> None:
        self.shop = shop
        self.go = shop.directory / "go"
        ready = shop.directory / "ready"
        hooks = shop.directory / "hooks"
        hooks.mkdir()
        hook = hooks / "reference-transaction"
        hook.write_text("#!/bin/sh\n" + HOOK.format(ready=ready, go=self.go))
        hook.chmod(0o755)
        self.task = shop.add(**more)
        commits = COMMITS.format(hooks=hooks, go=self.go)
        agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then {commits}; else {HEIR}; fi'
        self.started = shop.start(agent, workers=2, terms=TERMS)
        self.note = shop.await_note(NoteKind.STARTED)
        until(ready.exists, "git holds its locks")
        self.branch = shop.branch(self.task)

    def freeze(self) -> None:
        for pid in (self.note.supervisor, self.note.pid):
            os.killpg(pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.killpg(self.note.pid, signal.SIGCONT)
        self.go.touch()
        until(self.go.with_name("go.done").exists, "the zombie has committed")
        os.killpg(self.note.supervisor, signal.SIGCONT)


def test_a_commit_frozen_with_its_locks_held_costs_the_next_epoch_nothing(shop):
    frozen = Frozen(shop, max_attempts=2)
    frozen.freeze()
    until(lambda: shop.task(frozen.task).state == "succeeded", "another epoch did it")
    done = shop.task(frozen.task)
    assert shop.ends(frozen.task) == ["lapsed", "completed"]
    assert done.branch != frozen.branch
    assert shop.shown(frozen.task, "rest.txt") == "half"
    subjects = git(shop.root, "log", "--format=%s", f"main..{done.branch}").split("\n")
    assert subjects == ["work", "rest", "half"]
    labels = git(shop.root, "log", "-2", "--format=%(trailers:key=Lessor-Label)", done.branch)
    assert labels.count(f"branch={done.branch};") == 2
    (old,) = [w for w in shop.lessor.workspaces.of_task(frozen.task) if w.epoch == 1]
    assert old.state is WorkspaceState.QUARANTINED
    assert (shop.worktree(frozen.task) / "late.txt").read_text() == "late\n"
    frozen.wake()
    assert frozen.started.result() == 0
    assert git(shop.root, "log", "-1", "--format=%s", frozen.branch) == "late"
    assert git(shop.root, "rev-parse", done.branch) == done.commit
    (moved,) = [e for e in shop.lessor.tasks.history(frozen.task) if e.kind == "branch"]
    assert ".lock" in moved.facts["why"]
    assert shop.notes.of(NoteKind.INHERITED)


def test_a_commit_that_was_killed_with_its_locks_held_costs_the_next_epoch_nothing(shop):
    """Its agent is proved gone, and the locks stay: git never takes those of a dead one away."""
    frozen = Frozen(shop, max_attempts=2)
    os.killpg(frozen.note.pid, signal.SIGKILL)
    until(lambda: shop.task(frozen.task).state == "succeeded", "another epoch did it")
    assert frozen.started.result() == 0
    assert shop.ends(frozen.task) == ["gone", "completed"]
    assert shop.shown(frozen.task, "rest.txt") == "half"
    assert (shop.worktree(frozen.task) / "late.txt").read_text() == "late\n"
    assert git(shop.root, "log", "-1", "--format=%s", frozen.branch) == "half"


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "the branch's"])
def test_a_lock_that_a_dead_git_left_costs_the_next_epoch_nothing(shop, lock):
    """Each of them alone; what was left uncommitted beside it is saved."""
    task = shop.add(max_attempts=2)
    place = {
        "index.lock": '"$(git rev-parse --git-path index.lock)"',
        "HEAD.lock": '"$(git rev-parse --git-path HEAD.lock)"',
        "the branch's": '"$(git rev-parse --git-common-dir)/refs/heads/$LESSOR_BRANCH.lock"',
    }[lock]
    dies = f"echo half > half.txt; git add -A; git commit -qm half; echo x > x.txt; : > {place}"
    code = shop.run(f'if [ "$LESSOR_EPOCH" = 1 ]; then {dies}; kill -KILL $$; else {HEIR}; fi')
    assert code == 0
    assert shop.ends(task) == ["gone", "completed"]
    assert shop.task(task).charged == 0
    assert shop.shown(task, "rest.txt") == "half"
    saved = [s.ref for s in shop.lessor.salvages.of_task(task) if s.ref]
    assert any("x.txt" in git(shop.root, "ls-tree", "--name-only", ref) for ref in saved)
