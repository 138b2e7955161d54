"""Cleaning beside everything else: other cleans, runs that begin there, processes that die."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest
from run_rig import ADD, RunRig, git
from supervisor_rig import until

from lessor.errors import ConflictError, HoldsWorkError
from lessor.git import lock
from lessor.git.inspection import Verdict
from lessor.git.leaving import leaving_path
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest
from lessor.model.worker import NewWorker
from lessor.model.workspace import WorkspaceState
from lessor.runner import cleaning
from lessor.runner.cleaning import Fate, clean, discard
from lessor.runner.looking import disk_bytes, look_at, look_at_all
from lessor.runner.noting import NoteKind
from lessor.runner.occupants import occupants
from lessor.runner.salvaging import give_back

COMMIT = 'echo work > "$LESSOR_NUMBER.txt"; git add .; git commit -qm work; exit 1'
LEAVE = "echo left > left.txt; exit 1"


@pytest.fixture
def kept(shop: RunRig) -> str:
    """A task whose agent committed and failed: its worktree is kept."""
    task = shop.add(max_attempts=1)
    shop.run(COMMIT)
    return task


def fates(shop: RunRig) -> list[tuple[Verdict, Fate]]:
    done = clean(shop.desk())
    assert done.refused == ()
    assert done.strays == ()
    return [(outcome.look.verdict, outcome.fate) for outcome in done.outcomes]


def state(shop: RunRig, task: str) -> WorkspaceState:
    return shop.lessor.workspaces.of_task(task, gone=True)[-1].state


def claim(shop: RunRig, task: str):
    shop.lessor.tasks.requeue([task], actor="dana")
    return take(shop, task)


def take(shop: RunRig, task: str):
    worker = shop.lessor.registry.add_worker(NewWorker(agent="dana", host_id=shop.host.id))
    (grant,) = shop.lessor.leases.claim(
        ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            repository=shop.repository,
            task=task,
        )
    )
    return grant


def test_a_kept_worktree_goes_and_its_record_is_closed(shop: RunRig, kept: str) -> None:
    (before,) = shop.lessor.workspaces.of_task(kept)
    tip = git(shop.root, "rev-parse", before.branch)
    assert fates(shop) == [(Verdict.KEPT, Fate.REMOVED)]
    assert state(shop, kept) is WorkspaceState.GONE
    assert git(shop.root, "rev-parse", before.branch) == tip
    assert fates(shop) == []


def test_what_vanishes_while_its_size_is_taken_is_left_out() -> None:
    """The directory of a process's open files lists the handle by which it is listed."""
    assert disk_bytes(Path("/proc/self/fd")) == 0


def test_a_running_agent_s_worktree_is_in_use(shop: RunRig) -> None:
    shop.add()
    started = shop.start('touch "$LESSOR_OUTBOX/ready"; while :; do sleep 0.1; done')
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    assert fates(shop) == [(Verdict.IN_USE, Fate.STAYS)]
    (look,) = look_at_all(shop.desk())
    with pytest.raises(ConflictError, match="works on #1 now"):
        discard(shop.desk(), look)
    shop.stopping.ask()
    shop.stopping.ask()
    started.thread.join()


def test_a_task_that_was_claimed_a_thousand_times_is_still_seen_to_be_held(
    shop: RunRig, kept: str
) -> None:
    """A page of its leases holds a thousand, the oldest first."""
    shop.lessor.tasks.requeue([kept], actor="dana")
    for _ in range(1_000):
        shop.lessor.leases.release(take(shop, kept).holder, reason="once more")
    (look,) = look_at_all(shop.desk())
    take(shop, kept)
    with pytest.raises(ConflictError, match="works on #1 now"):
        discard(shop.desk(), look)
    (look,) = look_at_all(shop.desk())
    assert look.verdict is Verdict.IN_USE


def test_a_claim_between_the_look_and_the_removal_keeps_the_worktree(
    shop: RunRig, kept: str
) -> None:
    (look,) = look_at_all(shop.desk())
    assert look.may_be_removed
    claim(shop, kept)
    outcome = cleaning._clean_one(shop.desk(), look, dry=False)
    assert (outcome.fate, outcome.look.verdict) == (Fate.STAYS, Verdict.IN_USE)
    assert "dana works on #1" in outcome.why
    assert look.path.exists()


def test_a_claim_between_a_run_s_last_word_and_its_removal_keeps_the_worktree(
    shop: RunRig, kept: str
) -> None:
    """A retry may be granted at once; its holder is about to adopt what is given back here."""
    (workspace,) = shop.lessor.workspaces.of_task(kept)
    claim(shop, kept)
    told = []
    word = give_back(shop.desk(), workspace, tell=lambda *said, **_more: told.append(said))
    assert word == "kept"
    assert Path(workspace.path).exists()
    assert state(shop, kept) is WorkspaceState.DIRTY


@pytest.mark.parametrize("moment", ["before it is moved aside", "before it is deleted"])
def test_a_run_that_begins_during_a_removal_goes_on_in_a_new_worktree(
    shop: RunRig, kept: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """It waits for the removal's end: half a worktree is neither saved nor adopted."""
    (old,) = shop.lessor.workspaces.of_task(kept)
    tip = git(shop.root, "rev-parse", old.branch)
    gate, begun, count = (shop.directory / name for name in ("gate", "begun", "count"))
    wait = f"touch {begun}; while [ ! -e {gate} ]; do sleep 0.05; done"
    if moment == "before it is deleted":
        with_git(shop, monkeypatch, "worktree remove", wait)
    else:  # the second look is the one under the lock
        second = f"echo >> {count}; if [ $(wc -l < {count}) = 2 ]; then {wait}; fi"
        with_git(shop, monkeypatch, "status --porcelain", second)
    removing = threading.Thread(target=lambda: clean(shop.desk()))
    removing.start()
    until(begun.exists, "the removal is under way")
    assert Path(old.path).exists() == (moment == "before it is moved aside")
    shop.lessor.tasks.requeue([kept], actor="dana")
    started = shop.start(ADD, task=kept)
    until(lock_is_awaited, "the run waits for the removal's end")
    gate.touch()
    removing.join()
    assert started.result() == 0
    assert shop.ends(kept) == ["failed", "completed"]
    assert git(shop.root, "merge-base", "--is-ancestor", tip, old.branch) == ""
    assert not shop.notes.of(NoteKind.ADOPTED)
    assert shop.lessor.salvages.of_task(kept) == []


def test_two_cleans_at_once_remove_each_worktree_once(shop: RunRig) -> None:
    tasks = [shop.add(max_attempts=1) for _ in range(3)]
    shop.run(COMMIT)
    found: list[list[tuple[Verdict, Fate]]] = []
    threads = [threading.Thread(target=lambda: found.append(fates(shop))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fates_of_all = [fate for one in found for _, fate in one]
    assert fates_of_all.count(Fate.REMOVED) == 3
    assert set(fates_of_all) <= {Fate.REMOVED, Fate.GONE}
    assert [state(shop, task) for task in tasks] == [WorkspaceState.GONE] * 3


def test_a_clean_that_is_killed_in_the_middle_is_finished_by_the_next(
    shop: RunRig, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before,) = shop.lessor.workspaces.of_task(kept)
    aside = leaving_path(shop.worktree(kept))
    die = f"find {aside} -type f ! -name README -delete; kill -9 $PPID; kill -9 $$"
    wrapper = with_git(shop, monkeypatch, "worktree remove", die)
    code = (
        "import os, sys; os.environ['LESSOR_STATE_DIR'] = sys.argv[1]\n"
        "from lessor.cli.main import main; main(['clean', '--repo', sys.argv[2]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(shop.state), str(shop.root)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done
    assert (aside / "README").exists()
    assert not (aside / ".git").exists()
    wrapper.unlink()
    assert fates(shop) == [(Verdict.UNKNOWN, Fate.GONE)]
    assert not aside.exists()
    assert git(shop.root, "worktree", "list").count("\n") == 0
    assert git(shop.root, "rev-parse", before.branch)


def test_a_worktree_whose_supervisor_died_without_a_word_is_unknown(shop: RunRig) -> None:
    """Something that detached from its agent may still work there; a person may name it."""
    task = shop.add(max_attempts=1)
    run = shop.spawn('touch "$LESSOR_OUTBOX/ready"; while :; do sleep 0.1; done')
    note = run.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    for pid in (note["supervisor"], run.pid, note["pid"]):
        shop.signal(pid, signal.SIGSTOP)
    for pid in (note["supervisor"], run.pid, note["pid"]):
        shop.signal(pid, signal.SIGKILL)
    run.process.wait()
    shop.lessor.leases.force_release(task, actor="dana", reason="dead", checked="ps")
    assert fates(shop) == [(Verdict.UNKNOWN, Fate.STAYS)]
    (look,) = look_at_all(shop.desk())
    assert look.reasons == ("its supervisor died without a word",)
    until(lambda: not occupants(look.path), "the agent's last child ends")
    assert discard(shop.desk(), look).fate is Fate.REMOVED
    assert state(shop, task) is WorkspaceState.GONE


def test_a_discard_is_salvaged_and_noted(shop: RunRig) -> None:
    task = shop.add(max_attempts=1)
    shop.run(LEAVE)
    shop.worktree(task).joinpath("later.txt").write_text("later")
    (look,) = look_at_all(shop.desk())
    outcome = discard(shop.desk(), look)
    assert set(outcome.saved.files) == {"left.txt", "later.txt"}
    assert shop.lessor.salvages.of_task(task)[-1].ref == outcome.saved.ref
    assert git(shop.root, "show", f"{outcome.saved.ref}:later.txt") == "later"
    assert state(shop, task) is WorkspaceState.GONE


def test_a_discard_that_cannot_be_saved_removes_nothing(
    shop: RunRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = shop.add(max_attempts=1)
    shop.run("echo x > kept.log; exit 1")
    shutil.rmtree(shop.state / "salvage")
    (shop.state / "salvage").write_text("a file in the directory's place")
    (look,) = look_at_all(shop.desk())
    with pytest.raises(Exception, match="can't be written"):
        discard(shop.desk(), look)
    assert (shop.worktree(task) / "kept.log").exists()


def test_what_an_agent_left_ignored_is_work_also_where_git_lost_the_entry(shop: RunRig) -> None:
    """With the entry goes the mark of the setup's end: what is ignored there isn't all setup's."""
    task = shop.add(max_attempts=1)
    shop.run("echo found > kept.log; git commit -q --allow-empty -m work; exit 1")
    tree = shop.worktree(task)
    shutil.rmtree(shop.root / ".git" / "worktrees")
    (outcome,) = clean(shop.desk()).outcomes
    assert outcome.fate is Fate.STAYS
    assert any("kept.log" in reason for reason in outcome.look.reasons)
    discarded = discard(shop.desk(), look_at_all(shop.desk())[0])
    assert "kept.log" in discarded.saved.files
    assert not tree.exists()


def test_a_process_that_comes_in_late_stops_a_discard(shop: RunRig) -> None:
    task = shop.add(max_attempts=1)
    shop.run(LEAVE)
    (workspace,) = shop.lessor.workspaces.of_task(task)
    look = look_at(shop.desk(), workspace)
    standing = subprocess.Popen(["cat"], cwd=look.path, stdin=subprocess.PIPE)
    try:
        with pytest.raises(HoldsWorkError, match=f"pid {standing.pid}"):
            discard(shop.desk(), look)
    finally:
        standing.communicate()
    assert (look.path / "left.txt").exists()


def lock_is_awaited() -> bool:
    """Whether a thread of this process waits for the lock around worktrees."""
    frames: list[FrameType | None] = list(sys._current_frames().values())
    while frames:
        frame = frames.pop()
        if frame is not None:
            if frame.f_code is lock._acquire.__code__:
                return True
            frames.append(frame.f_back)
    return False


def with_git(shop: RunRig, monkeypatch: pytest.MonkeyPatch, verb: str, do: str):
    """Let git do something else first when it is called with `verb`."""
    real = shutil.which("git")
    wrapper = shop.directory / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *"{verb}"*) {do};; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrapper.parent), prepend=":")
    return wrapper
