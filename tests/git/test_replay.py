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


@pytest.fixture
def mending(main: Path, worktree: Path, git: Git) -> str:
    """A result whose merge of the target holds a file that neither side has; where it began."""
    base = head_commit(main)
    (worktree / "one").write_text("one\n")
    git(worktree, "add", "one")
    git(worktree, "commit", "-q", "-m", "one")
    (main / "theirs").write_text("theirs\n")
    git(main, "add", "theirs")
    git(main, "commit", "-q", "-m", "theirs")
    git(worktree, "merge", "-q", "--no-commit", "main")
    (worktree / "mended").write_text("mended\n")
    git(worktree, "add", "mended")
    git(worktree, "commit", "-q", "-m", "merge main")
    return base


@pytest.mark.parametrize("moved", [False, True])
def test_what_a_merge_holds_of_its_own_lands_as_well(
    repo: Repository,
    main: Path,
    worktree: Path,
    git: Git,
    tmp_path: Path,
    mending: str,
    moved: bool,
):
    """A rebase leaves out merges, and with them what somebody mended in one."""
    if moved:
        git(main, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    head, onto = head_commit(worktree), head_commit(main)
    done = replay(repo, path=tmp_path / "landing", head=head, base=mending, onto="main")
    assert (done.commit is not None, done.way) == (True, "merged")
    assert git(main, "diff", "--name-only", onto, done.commit).split() == ["mended", "one"]
    assert git(main, "merge-base", "--is-ancestor", onto, done.commit) == ""
    assert git(main, "merge-base", "--is-ancestor", head, done.commit) == ""


def test_a_merge_that_conflicts_with_the_target_moves_nothing(
    repo: Repository, main: Path, worktree: Path, git: Git, tmp_path: Path, mending: str
):
    (main / "mended").write_text("otherwise\n")
    git(main, "add", "mended")
    git(main, "commit", "-q", "-m", "otherwise")
    head = head_commit(worktree)
    done = replay(repo, path=tmp_path / "landing", head=head, base=mending, onto="main")
    assert (done.commit, done.conflicts) == (None, ("mended",))


def test_what_stands_on_a_result_that_was_rewritten_lands_with_what_its_merge_holds(
    repo: Repository, main: Path, worktree: Path, git: Git, tmp_path: Path
):
    """Its own changes alone: a merge would bring the result below as well."""
    (worktree / "below").write_text("below\n")
    git(worktree, "add", "below")
    git(worktree, "commit", "-q", "-m", "below")
    base = head_commit(worktree)
    git(main, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    git(worktree, "merge", "-q", "--no-commit", "--no-ff", "main")
    (worktree / "mended").write_text("mended\n")
    git(worktree, "add", "mended")
    git(worktree, "commit", "-q", "-m", "merge main")
    head = head_commit(worktree)
    done = replay(repo, path=tmp_path / "landing", head=head, base=base, onto="main")
    assert git(main, "diff", "--name-only", "main", str(done.commit)) == "mended"
    assert git(main, "log", "-1", "--format=%s %P", str(done.commit)) == (
        f"merge main {head_commit(main)}"
    )


def test_bytes_land_as_they_are_whatever_is_configured_for_patches(
    repo: Repository, main: Path, worktree: Path, git: Git, tmp_path: Path
):
    base = head_commit(main)
    (worktree / "notes").write_text("two spaces at the end  \n")
    git(worktree, "add", "notes")
    git(worktree, "commit", "-q", "-m", "notes")
    git(main, "config", "rebase.backend", "apply")
    git(main, "config", "apply.whitespace", "fix")
    git(main, "config", "commit.cleanup", "strip")
    git(main, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    done = replay(
        repo, path=tmp_path / "landing", head=head_commit(worktree), base=base, onto="main"
    )
    assert git(main, "show", f"{done.commit}:notes") == "two spaces at the end  "
