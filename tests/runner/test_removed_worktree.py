"""An agent that takes its own worktree away: told as that, once, and its commits are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_rig import ADD, git

from lessor.git.inspection import Verdict
from lessor.git.worktree import list_worktrees
from lessor.runner.cleaning import Fate, clean
from lessor.runner.noting import NoteKind

COMMIT = "echo work > work.txt; git add -A; git commit -qm work"
REMOVE = {
    "rm": 'cd /; rm -rf "$LESSOR_WORKTREE"',
    "git": 'cd /; git -C {root} worktree remove -f -f "$LESSOR_WORKTREE"',
    "moved": 'cd /; mv "$LESSOR_WORKTREE" "$LESSOR_WORKTREE-away"',
}


@pytest.mark.parametrize("how", [*REMOVE])
@pytest.mark.parametrize("code", [0, 3])
def test_a_removed_worktree_asks_a_person_at_once_and_keeps_the_commits(shop, how, code):
    task = shop.add(max_attempts=3)
    remove = REMOVE[how].format(root=shop.root)
    assert shop.run(f"{COMMIT}; {remove}; exit {code}") == 8
    known = shop.task(task)
    assert known.state == "needs_person"
    assert (known.epoch, known.charged) == (1, 0)
    assert "removed its own worktree, or moved it away. 1 commit is on claude/1-work" in known.said
    assert "lessor answer 1" in known.said
    assert known.commit == git(shop.root, "rev-parse", shop.branch(task))
    assert shop.shown(task, "work.txt") == "work"
    assert len(shop.notes.of(NoteKind.STARTED)) == 1


def test_a_removed_worktree_without_a_commit_says_so(shop):
    task = shop.add()
    assert shop.run(f"echo lost > lost.txt; {REMOVE['rm']}") == 8
    assert "No commit is on claude/1-work" in shop.task(task).said
    assert "lessor diff" not in shop.task(task).said


def test_what_was_staged_in_a_removed_worktree_is_saved(shop):
    task = shop.add()
    shop.run(f"echo half > half.txt; git add half.txt; {REMOVE['rm']}")
    (saved,) = shop.lessor.salvages.of_task(task)
    assert git(shop.root, "show", f"{saved.ref}:half.txt") == "half"


def test_a_worktree_that_was_cut_off_from_git_keeps_its_files(shop):
    task = shop.add()
    assert shop.run("echo half > half.txt; rm .git") == 8
    assert "cut its worktree off from git" in shop.task(task).said
    assert (shop.worktree(task) / "half.txt").read_text() == "half\n"


def test_a_question_that_was_left_before_is_asked_too(shop):
    task = shop.add()
    shop.run(f'echo "Which rate?" > "$LESSOR_OUTBOX/question"; {REMOVE["rm"]}')
    assert shop.task(task).said.startswith("Which rate?\n\nThe agent removed")


def test_after_an_answer_the_next_epoch_goes_on_with_the_commits(shop):
    task = shop.add()
    shop.run(f"{COMMIT}; {REMOVE['rm']}")
    shop.lessor.tasks.answer(task, "leave it where it is", actor="dana")
    assert shop.run(ADD) == 0
    assert shop.shown(task, "work.txt") == "work"
    assert shop.shown(task, "1.txt") == "work"


def test_a_worktree_whose_disk_was_away_is_still_on_record_when_it_is_back(shop):
    task = shop.add()
    assert shop.run('echo half > half.log; echo "Which?" > "$LESSOR_OUTBOX/question"') == 8
    (first,) = shop.lessor.workspaces.of_task(task)
    disk, away = shop.state / "worktrees", shop.directory / "unmounted"
    disk.rename(away)
    shop.lessor.tasks.answer(task, "that one", actor="dana")
    assert shop.run(ADD) == 0
    assert shop.lessor.workspaces.get(first.id).state == "dirty"
    assert any("isn't mounted" in said for said in shop.notes.texts(NoteKind.KEPT))
    back = Path(first.path)
    back.parent.mkdir(parents=True, exist_ok=True)
    (away / back.parent.name / back.name).rename(back)
    (outcome,) = [one for one in clean(shop.desk()).outcomes if one.look.path == back]
    assert (outcome.fate, outcome.look.verdict) == (Fate.STAYS, Verdict.HOLDS_WORK)
    assert (back / "half.log").read_text() == "half\n"


def test_the_entry_of_a_worktree_that_was_deleted_goes_with_the_next_cleaning(shop):
    task = shop.add()
    assert shop.run(f"{COMMIT}; {REMOVE['rm']}") == 8
    (first,) = shop.lessor.workspaces.of_task(task, gone=True)
    shop.lessor.tasks.answer(task, "go on", actor="dana")
    assert shop.run(ADD) == 0
    clean(shop.desk())
    assert shop.lessor.workspaces.get(first.id).state == "gone"
    assert Path(first.path) not in [entry.path for entry in list_worktrees(shop.repo)]
