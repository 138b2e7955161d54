"""A branch that was handed on takes nothing from the process that had it before."""

from __future__ import annotations

import os
import signal

import pytest
from run_rig import git
from supervisor_rig import until

from lessor.model.lease import terms_for
from lessor.runner.lease_file import lease_file
from lessor.runner.noting import NoteKind

TERMS = terms_for(4_000)
# Three epochs, each with a worktree to make: on a busy machine a shorter term runs out meanwhile.
ROOMY = terms_for(8_000)
ZOMBIE = (
    'echo half > half.txt; git add -A; git commit -qm half; touch "$LESSOR_OUTBOX/ready"; '
    "while [ ! -e {go} ]; do sleep 0.05; done; {moves}; touch {go}.done; exec sleep 600"
)
HEIR = (
    'if [ "$LESSOR_ROUND" = 1 ]; then echo mine > mine.txt; git add -A; git commit -qm mine; '
    'touch "$LESSOR_OUTBOX/ready"; while [ ! -e {go}.done ]; do sleep 0.05; done; '
    'else cp "$LESSOR_BRIEF" {go}.brief; eval "$(sed -n \'s/.* out: //p\' "$LESSOR_BRIEF")"; fi'
)
# Past the hook of its worktree, which would refuse a commit without a lease.
LATE = "echo late > late.txt; git add late.txt; git commit -q --no-verify -m late"
ACCEPTING = "git -c receive.denyCurrentBranch=ignore receive-pack"


@pytest.mark.parametrize(
    "moves",
    [
        f'{LATE}; git update-ref "refs/heads/$LESSOR_BRANCH" HEAD',
        f'git checkout -q --ignore-other-worktrees "$LESSOR_BRANCH"; {LATE}',
        f'{LATE}; git push -qf --receive-pack "{ACCEPTING}" . "HEAD:$LESSOR_BRANCH"',
    ],
    ids=["update-ref", "checkout by force", "push"],
)
def test_a_zombies_commit_on_the_new_holders_branch_goes_back_and_is_taken_out(shop, moves):
    task = shop.add(max_attempts=3)
    go = shop.directory / "go"
    agent = (
        f'if [ "$LESSOR_EPOCH" = 1 ]; then {ZOMBIE.format(go=go, moves=moves)}; '
        f"else {HEIR.format(go=go)}; fi"
    )
    started = shop.start(agent, workers=2, terms=TERMS)
    first = shop.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the first epoch has committed")
    assert lease_file(shop.state / "leases", first.lease).exists()
    for pid in (first.supervisor, first.pid):
        os.killpg(pid, signal.SIGSTOP)
    shop.await_note(NoteKind.STARTED, count=2)
    until(lambda: len(list(shop.state.glob("runs/*/outbox/ready"))) == 2, "the heir has committed")
    os.killpg(first.pid, signal.SIGCONT)
    go.touch()
    until(lambda: shop.task(task).state == "succeeded", "the heir's result is in")
    os.killpg(first.supervisor, signal.SIGCONT)
    assert started.result() == 0
    told = go.with_name("go.brief").read_text()
    assert "past this worktree's HEAD" in told
    assert "'late'" in told
    subjects = git(shop.root, "log", "--format=%s", f"main..{shop.branch(task)}").split("\n")
    assert subjects == ["mine", "half"]
    assert shop.task(task).commit == git(shop.root, "rev-parse", shop.branch(task))
    with pytest.raises(AssertionError):
        shop.shown(task, "late.txt")
    saved = [saved.ref for saved in shop.lessor.salvages.of_task(task) if saved.ref]
    kept = git(shop.root, "log", "--format=%s", *saved).split("\n")
    assert "late" in kept, "the zombie's commit isn't lost either"


# Epoch 2 ends without a result, with the zombie's commit on its branch; epoch 3 has it from there.
DIES = "kill -KILL $$"
FREEZES = "touch {go}.frozen; exec sleep 600"
THIRD = (
    'if [ "$LESSOR_ROUND" = 1 ]; then echo last > last.txt; git add last.txt; git commit -qm last; '
    'else cp "$LESSOR_BRIEF" {go}.brief; eval "$(sed -n \'s/.* out: //p\' "$LESSOR_BRIEF")"; fi'
)


@pytest.mark.parametrize("end", ["dies", "freezes"])
@pytest.mark.parametrize("on_top", [False, True], ids=["at the tip", "under the heir's"])
def test_a_zombies_commit_isnt_the_branchs_own_because_it_was_handed_on_once_more(
    shop, end, on_top
):
    """The third epoch adopts the second's worktree, or gets one of its own, and inherits the branch."""
    task = shop.add(max_attempts=4)
    go = shop.directory / "go"
    moves = f'{LATE}; git update-ref "refs/heads/$LESSOR_BRANCH" HEAD'
    more = "echo on > top.txt; git add top.txt; git commit -qm top; " if on_top else ""
    second = (
        'echo mine > mine.txt; git add -A; git commit -qm mine; touch "$LESSOR_OUTBOX/ready"; '
        f"while [ ! -e {go}.done ]; do sleep 0.05; done; {more}"
    ) + {"dies": DIES, "freezes": FREEZES.format(go=go)}[end]
    agent = (
        f'case "$LESSOR_EPOCH" in 1) {ZOMBIE.format(go=go, moves=moves)};; 2) {second};; '
        f"*) {THIRD.format(go=go)};; esac"
    )
    started = shop.start(agent, workers=3, terms=ROOMY)
    first = shop.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the first epoch has committed")
    frozen = [first.supervisor, first.pid]
    for pid in frozen:
        os.killpg(pid, signal.SIGSTOP)
    heir = shop.await_note(NoteKind.STARTED, count=2)
    until(lambda: len(list(shop.state.glob("runs/*/outbox/ready"))) == 2, "the heir has committed")
    os.killpg(first.pid, signal.SIGCONT)
    go.touch()
    if end == "freezes":
        until(go.with_name("go.frozen").exists, "the heir has met the zombie's commit")
        for pid in (heir.supervisor, heir.pid):
            os.killpg(pid, signal.SIGSTOP)
        frozen.append(heir.supervisor)
    until(lambda: shop.task(task).state == "succeeded", "the third epoch's result is in")
    for pid in (frozen[0], *frozen[2:]):
        os.killpg(pid, signal.SIGCONT)
    assert started.result() == 0
    subjects = git(shop.root, "log", "--format=%s", f"main..{shop.branch(task)}").split("\n")
    assert subjects == ["last", *(["top"] if on_top else []), "mine", "half"]
    assert "'late'" in go.with_name("go.brief").read_text()
    with pytest.raises(AssertionError):
        shop.shown(task, "late.txt")
    kept = git(shop.root, "for-each-ref", "--format=%(subject)", "refs/lessor/foreign")
    assert kept.split("\n") == ["late", "mine"]
