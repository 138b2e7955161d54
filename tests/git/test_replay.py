"""A result is put onto another commit where nobody works; no branch moves, whatever is configured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import GitError
from lessor.git.replay import replay
from lessor.git.repository import Repository, head_commit

Git = Callable[..., str]


def test_no_branch_on_the_way_moves_also_where_rebase_is_told_to_move_them(
    repo: Repository, main: Path, worktree: Path, git: Git, tmp_path: Path
):
    base = head_commit(main)
    for name in ("one", "two"):
        (worktree / name).write_text(name)
        git(worktree, "add", name)
        git(worktree, "commit", "-q", "-m", name)
    head, below = head_commit(worktree), git(worktree, "rev-parse", "HEAD~1")
    git(main, "branch", "ai/8-below", below)
    git(main, "branch", "copy", head)
    git(main, "config", "rebase.updateRefs", "true")
    git(main, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    done = replay(repo, path=tmp_path / "landing", head=head, base=base, onto="main")
    assert done.commit not in {None, head}
    assert git(main, "rev-parse", "ai/8-below", "copy", "claude/7-totals").split() == [
        below,
        head,
        head,
    ]


@pytest.mark.parametrize("head", ["-q", "--orphan=elsewhere"])
def test_a_commit_that_reads_as_an_option_is_refused(
    repo: Repository, main: Path, tmp_path: Path, git: Git, head: str
):
    """A holder reports its commit in its own words."""
    base = head_commit(main)
    with pytest.raises(GitError, match="names no commit"):
        replay(repo, path=tmp_path / "landing", head=head, base=base, onto="main")
    assert git(main, "for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/main"
