"""A lease that is lost while its agent works: nothing is lost, and the zombie moves nothing."""

from __future__ import annotations

import os
import signal

import pytest
from run_rig import ADD, git
from supervisor_rig import lives, until

from lessor.errors import LeaseLostError
from lessor.model.grant import Result
from lessor.model.lease import terms_for
from lessor.model.workspace import WorkspaceState
from lessor.runner.desk import Plan
from lessor.runner.lease_file import lease_file, read_holder
from lessor.runner.noting import NoteKind

TERMS = terms_for(4_000)
FROZEN = (
    'echo half > half.txt; {first} touch "$LESSOR_OUTBOX/ready"; '
    "while [ ! -e {go} ]; do sleep 0.05; done; "
    "echo late > late.txt; git add -A; git commit -qm late; touch {go}.done; exec sleep 600"
)
COMMIT = "git add -A; git commit -qm half;"


class Lost:
    """Epoch 1 is frozen with its supervisor; another slot of the same run does the task."""

    def __init__(self, shop, *, first: str = "", then: str = ADD) -> None:
        self.shop = shop
        self.task = shop.add(max_attempts=3)
        self.go = shop.directory / "go"
        frozen = FROZEN.format(first=first, go=self.go)
        agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then {frozen}; else {then}; fi'
        self.started = shop.start(agent, workers=2, terms=TERMS)
        self.note = shop.await_note(NoteKind.STARTED)
        until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
        token = lease_file(shop.state / "leases", self.note.lease)
        self.holder = read_holder(token)
        for pid in (self.note.supervisor, self.note.pid):
            os.killpg(pid, signal.SIGSTOP)
        self.new = shop.await_note(NoteKind.STARTED, count=2)
        until(lambda: shop.task(self.task).state == "succeeded", "another epoch did it")

    def wake_agent(self) -> None:
        os.killpg(self.note.pid, signal.SIGCONT)
        self.go.touch()
        until(self.go.with_name("go.done").exists, "the zombie has committed")

    def wake_supervisor(self) -> int:
        os.killpg(self.note.supervisor, signal.SIGCONT)
        return self.started.result()


def test_the_next_epoch_starts_afresh_where_nothing_was_committed(shop):
    lost = Lost(shop)
    assert shop.shown(lost.task, "1.txt") == "work"
    with pytest.raises(AssertionError):
        shop.shown(lost.task, "half.txt")
    lost.wake_supervisor()
    assert shop.ends(lost.task) == ["lapsed", "completed"]


def test_what_the_frozen_agent_had_is_salvaged_untracked_files_too(shop):
    lost = Lost(shop)
    saved = [s for s in shop.lessor.salvages.of_task(lost.task) if s.epoch == 1]
    assert git(shop.root, "show", f"{saved[0].ref}:half.txt") == "half"
    assert (shop.worktree(lost.task) / "half.txt").read_text() == "half\n"
    lost.wake_supervisor()
    assert (shop.worktree(lost.task) / "half.txt").exists()


def test_a_branch_with_commits_is_inherited(shop):
    lost = Lost(shop, first=COMMIT, then="cp half.txt rest.txt")
    assert shop.shown(lost.task, "rest.txt") == "half"
    assert shop.notes.of(NoteKind.INHERITED)
    lost.wake_supervisor()


def test_a_zombies_late_commit_moves_no_branch_and_is_kept(shop):
    lost = Lost(shop, first=COMMIT)
    before = git(shop.root, "for-each-ref", "refs/heads")
    lost.wake_agent()
    assert git(shop.root, "for-each-ref", "refs/heads") == before
    code = lost.wake_supervisor()
    assert code == 0
    assert git(shop.root, "for-each-ref", "refs/heads") == before
    late = [
        s.ref
        for s in shop.lessor.salvages.of_task(lost.task)
        if "late.txt" in git(shop.root, "ls-tree", "--name-only", s.ref)
    ]
    assert late, "the zombie's commit isn't lost either"


def test_a_zombies_completion_is_refused_and_kept_as_evidence(shop):
    lost = Lost(shop)
    with pytest.raises(LeaseLostError):
        shop.lessor.leases.complete_one(lost.holder, Result(said="late"))
    assert "late" in [entry.kind for entry in shop.lessor.tasks.history(lost.task)]
    assert shop.task(lost.task).said != "late"
    lost.wake_supervisor()


def test_a_woken_supervisor_ends_its_agent_and_touches_the_new_epoch_in_nothing(shop):
    lost = Lost(shop)
    lost.wake_agent()
    assert lost.wake_supervisor() == 0
    until(lambda: not lives(lost.note.pid), "the zombie is ended")
    assert shop.notes.of(NoteKind.LOST)
    old = next(w for w in shop.lessor.workspaces.of_task(lost.task, gone=True) if w.epoch == 1)
    assert old.state in {WorkspaceState.DIRTY, WorkspaceState.SALVAGED}
    assert shop.task(lost.task).state == "succeeded"


def test_an_old_runners_word_doesnt_move_a_workspace_that_a_later_epoch_took(shop):
    """The record of before, as the old runner holds it, meets the epoch of now."""
    task = shop.add()
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then kill -KILL $$; else {ADD}; fi'
    old = []

    class Spy:
        def note(self, note):
            shop.notes.note(note)
            if note.kind is NoteKind.KILLED:
                old.extend(shop.lessor.workspaces.of_task(task))
            if note.kind is NoteKind.ADOPTED:
                moved = shop.lessor.workspaces.move(old[0], WorkspaceState.GONE, why="late")
                old.append(moved)

    assert shop.run(agent, reporter=Spy()) == 0
    assert old[0].epoch == 1
    assert old[1] is False
    assert shop.task(task).state == "succeeded"


def test_a_worktree_that_cant_be_read_doesnt_keep_its_task_from_going_on(shop):
    task = shop.add()
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then echo half > half.txt; rm .git; kill -KILL $$; else {ADD}; fi'
    assert shop.run(agent) == 0
    assert shop.shown(task, "1.txt") == "work"
    old = next(w for w in shop.lessor.workspaces.of_task(task) if w.epoch == 1)
    assert old.state is WorkspaceState.QUARANTINED
    assert (shop.worktree(task) / "half.txt").read_text() == "half\n"


def test_a_worktree_that_was_deleted_by_hand_is_made_anew_with_what_was_staged(shop):
    task = shop.add()
    agent = (
        'if [ "$LESSOR_EPOCH" = 1 ]; then echo half > half.txt; git add half.txt; '
        f'cd /; rm -rf "$LESSOR_WORKTREE"; kill -KILL $$; else {ADD}; fi'
    )
    assert shop.run(agent) == 0
    refs = [s.ref for s in shop.lessor.salvages.of_task(task) if s.epoch == 1]
    assert git(shop.root, "show", f"{refs[0]}:half.txt") == "half"


def test_a_rebase_left_halfway_isnt_adopted(shop):
    """HEAD is on no branch there: what the next agent commits would belong to nobody."""
    task = shop.add()
    agent = (
        'if [ "$LESSOR_EPOCH" = 1 ]; then echo 1 > c; git add c; git commit -qm 1; '
        "git checkout -q --detach HEAD; echo 2 > d; git add d; git commit -qm 2; kill -KILL $$; "
        f"else {ADD}; fi"
    )
    assert shop.run(agent) == 0
    assert shop.shown(task, "c") == "1"
    assert not shop.notes.of(NoteKind.ADOPTED)
    (ref,) = [s.ref for s in shop.lessor.salvages.of_task(task) if s.epoch == 1]
    assert git(shop.root, "show", f"{ref}:d") == "2"


def test_the_worktree_of_a_runner_that_was_frozen_in_its_check_isnt_adopted(shop):
    """Its agent is proved gone, but it would commit there when it wakes."""
    task = shop.add(max_attempts=3)
    flag = shop.directory / "checking"
    check = f"test ! -e 1.txt || test -e {flag} || {{ touch {flag}; sleep 600; }}"
    first = shop.spawn(ADD, plan={"check": check}, ttl_ms=4_000)
    note = first.await_note(NoteKind.STARTED)
    until(flag.exists, "the first run checks")
    for pid in (first.pid, note["supervisor"]):
        os.kill(pid, signal.SIGSTOP)
    until(lambda: not shop.lessor.leases.leases(task=task)[0].live, "the lease has run out")
    assert shop.run(ADD, plan=Plan(check=check), terms=TERMS) == 0
    assert shop.ends(task) == ["lapsed", "completed"]
    assert not shop.notes.of(NoteKind.ADOPTED)
    before = git(shop.root, "for-each-ref", "refs/heads")
    for pid in (note["supervisor"], first.pid):
        os.kill(pid, signal.SIGCONT)
    assert first.result() == 7
    assert git(shop.root, "for-each-ref", "refs/heads") == before
