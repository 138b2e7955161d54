"""A power cut while a worktree is made: what is missing in it, no agent has deleted."""

from __future__ import annotations

import shutil

import pytest
from run_rig import ADD, RunRig, git

from lessor.git.inspection import Verdict
from lessor.model.workspace import WorkspaceState
from lessor.runner.cleaning import Fate, clean
from lessor.runner.noting import NoteKind


@pytest.fixture
def cut_short(shop: RunRig, monkeypatch: pytest.MonkeyPatch) -> str:
    """A task whose first worktree was never finished: files and index are missing, git died there."""
    task = shop.add(max_attempts=1)
    real = shutil.which("git")
    wrapper = shop.directory / "bin" / "git"
    wrapper.parent.mkdir()
    entries, trees = shop.root / ".git" / "worktrees", shop.state / "worktrees"
    wrapper.write_text(
        f"""#!/bin/sh
case "$*" in *"worktree add"*)
  {real} "$@"
  for entry in {entries}/*; do mv $entry/index $entry/index.lock; done
  find {trees} -name README -delete
  kill -9 $PPID; kill -9 $$;;
esac
exec {real} "$@"
"""
    )
    wrapper.chmod(0o755)
    with monkeypatch.context() as within:
        within.setenv("PATH", str(wrapper.parent), prepend=":")
        shop.spawn(ADD).process.wait()
    return task


def test_the_next_run_begins_in_a_new_worktree(shop: RunRig, cut_short: str) -> None:
    assert shop.run(ADD) == 0
    assert shop.ends(cut_short) == ["gone", "completed"]
    assert not shop.notes.of(NoteKind.ADOPTED)
    changed = git(shop.root, "diff", "--name-status", "main", shop.branch(cut_short))
    assert changed == "A\t1.txt"
    states = [w.state for w in shop.lessor.workspaces.of_task(cut_short, gone=True)]
    assert states == [WorkspaceState.GONE, WorkspaceState.GONE]


def test_a_clean_takes_it_away(shop: RunRig, cut_short: str) -> None:
    tree = shop.worktree(cut_short)
    assert (tree / "docs" / "index.md").exists()
    shop.lessor.tasks.block([cut_short], actor="dana")
    done = clean(shop.desk())
    assert done.refused == ()
    assert done.strays == ()
    assert [(o.look.verdict, o.fate) for o in done.outcomes] == [(Verdict.EMPTY, Fate.REMOVED)]
    assert not tree.exists()
    assert git(shop.root, "worktree", "list").count("\n") == 0


def test_what_somebody_left_in_it_is_saved_first(shop: RunRig, cut_short: str) -> None:
    shop.worktree(cut_short).joinpath("found.txt").write_text("found")
    shop.lessor.tasks.block([cut_short], actor="dana")
    (outcome,) = clean(shop.desk()).outcomes
    assert git(shop.root, "show", f"{outcome.saved.ref}:found.txt") == "found"
