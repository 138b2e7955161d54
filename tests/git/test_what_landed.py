"""What became of a branch is read from history; where history is missing, that is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.git.landed import Landed, Landing, what_landed
from lessor.git.repository import head_commit

Git = Callable[..., str]

BRANCH = "claude/7-totals"


@pytest.fixture
def judge(main: Path, worktree: Path) -> Callable[[], Landing]:
    base = head_commit(main)
    return lambda: what_landed(main / ".git", branch=BRANCH, base=base, target="main")


def test_a_branch_at_its_base_is_empty(judge, main: Path):
    assert judge() == Landing(verdict=Landed.EMPTY, tip=head_commit(main))


def test_commits_past_the_base_are_open_newest_first(judge, worktree: Path, git: Git):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "one")
    first = head_commit(worktree)
    git(worktree, "commit", "-q", "--allow-empty", "-m", "two")
    found = judge()
    assert (found.verdict, found.commits) == (Landed.OPEN, (head_commit(worktree), first))


@pytest.mark.parametrize("how", ["--ff-only", "--no-ff"])
def test_a_merged_branch_landed(judge, worktree: Path, main: Path, git: Git, how: str):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    git(main, "merge", "-q", how, "--no-edit", BRANCH)
    assert judge().verdict is Landed.LANDED


def test_a_branch_that_is_gone_is_missing(judge, worktree: Path, main: Path, git: Git):
    git(worktree, "checkout", "-q", "--detach")
    git(main, "branch", "-q", "-D", BRANCH)
    assert judge() == Landing(verdict=Landed.MISSING, tip=None)


@pytest.mark.parametrize(("base", "target"), [("0" * 39 + "1", "main"), ("main", "nowhere")])
def test_a_missing_base_or_target_is_unknown(worktree: Path, main: Path, base: str, target: str):
    found = what_landed(main / ".git", branch=BRANCH, base=base, target=target)
    assert found.verdict is Landed.UNKNOWN
    assert found.reason


def test_what_a_shallow_clone_cannot_tell_is_unknown(
    worktree: Path, main: Path, tmp_path: Path, git: Git
):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    git(main, "merge", "-q", "--no-ff", "--no-edit", BRANCH)
    git(main, "commit", "-q", "--allow-empty", "-m", "later")
    git(
        tmp_path,
        *("clone", "-q", "--depth=1", "--no-single-branch", f"file://{main}", "shallow"),
    )
    clone = tmp_path / "shallow"
    git(clone, "branch", "-q", BRANCH, f"origin/{BRANCH}")
    found = what_landed(clone / ".git", branch=BRANCH, base=f"origin/{BRANCH}", target="main")
    assert found.verdict is Landed.EMPTY
    git(clone, "fetch", "-q", "--depth=1", "origin", head_commit(main) + "~0", check=False)
    found = what_landed(clone / ".git", branch=BRANCH, base="main", target="main")
    assert (found.verdict, found.reason) == (Landed.UNKNOWN, "the clone is shallow")


def test_a_rebase_and_a_merge_in_progress_are_named(judge, worktree: Path, main: Path, git: Git):
    (main / "README").write_text("theirs\n")
    git(main, "commit", "-q", "-am", "theirs")
    (worktree / "README").write_text("ours\n")
    git(worktree, "commit", "-q", "-am", "ours")
    git(worktree, "rebase", "-q", "main", check=False)
    assert judge().in_progress == ("rebase",)
    git(worktree, "rebase", "--abort")
    git(worktree, "merge", "-q", "main", check=False)
    assert judge().in_progress == ("merge",)
    git(worktree, "merge", "--abort")
    assert judge().in_progress == ()
