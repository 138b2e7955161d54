"""Checks run on exactly the commit, warm, in a worktree that nobody works in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import BusyError, GitError, WorktreeError
from lessor.git.checkout import checked_out
from lessor.git.repository import Repository, current_branch, head_commit
from lessor.git.worktree import detach_head, list_worktrees

Git = Callable[..., str]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "verify" / "shop"


def test_it_holds_the_commit_and_no_leftovers_of_the_last_one(
    repo: Repository, place: Path, worktree: Path, git: Git
):
    with checked_out(repo, path=place, commit="main") as top:
        (top / "README").write_text("a check edited it")
        (top / "src" / "app.py").unlink()
        (top / "report").write_text("left over")
        (top / "made").mkdir()
        git(top / "made", "init", "-q")
        (top / "node_modules").mkdir()
        (top / "node_modules" / "dep.js").write_text("warm")
    (worktree / "new.py").write_text("x")
    git(worktree, "add", "new.py")
    git(worktree, "commit", "-q", "-m", "work")
    with checked_out(repo, path=place, commit="claude/7-totals") as top:
        assert head_commit(top) == head_commit(worktree)
        assert current_branch(top) is None
        assert git(top, "status", "--porcelain") == ""
        assert (top / "new.py").exists()
        assert (top / "node_modules" / "dep.js").read_text() == "warm"


def test_the_worker_s_uncommitted_files_are_not_in_it(
    repo: Repository, place: Path, worktree: Path
):
    (worktree / "uncommitted").write_text("x")
    with checked_out(repo, path=place, commit="claude/7-totals") as top:
        assert not (top / "uncommitted").exists()


def test_staged_and_half_merged_state_is_gone_the_next_time(
    repo: Repository, place: Path, main: Path, git: Git
):
    (main / "README").write_text("theirs\n")
    git(main, "commit", "-q", "-am", "theirs")
    with checked_out(repo, path=place, commit="main~1") as top:
        (top / "README").write_text("ours\n")
        git(top, "commit", "-q", "-am", "ours")
        git(top, "merge", "main", check=False)
    with checked_out(repo, path=place, commit="main") as top:
        assert git(top, "status", "--porcelain") == ""
        assert (top / "README").read_text() == "theirs\n"


def test_an_edit_that_a_check_hid_is_refused(repo: Repository, place: Path, git: Git):
    with checked_out(repo, path=place, commit="main") as top:
        git(top, "update-index", "--skip-worktree", "README")
        (top / "README").write_text("hidden")
    with pytest.raises(GitError), checked_out(repo, path=place, commit="main"):
        pass


def test_one_process_at_a_time_has_it(repo: Repository, place: Path):
    with (
        checked_out(repo, path=place, commit="main"),
        pytest.raises(BusyError),
        checked_out(repo, path=place, commit="main", wait_ms=0),
    ):
        pass
    with checked_out(repo, path=place, commit="main", wait_ms=0) as top:
        assert top == place


def test_it_comes_back_when_its_directory_was_deleted(repo: Repository, place: Path):
    with checked_out(repo, path=place, commit="main"):
        pass
    shutil.rmtree(place)
    with checked_out(repo, path=place, commit="main") as top:
        assert (top / "README").exists()
    assert len(list_worktrees(repo)) == 2


@pytest.mark.parametrize("detached", [False, True])
def test_a_worktree_of_a_lease_is_never_cleaned(repo: Repository, worktree: Path, detached: bool):
    (worktree / "work").write_text("work")
    if detached:
        detach_head(worktree)
    with pytest.raises(WorktreeError), checked_out(repo, path=worktree, commit="main"):
        pass
    assert (worktree / "work").read_text() == "work"


def test_a_verify_worktree_in_which_somebody_took_a_branch_is_never_cleaned(
    repo: Repository, place: Path, git: Git
):
    with checked_out(repo, path=place, commit="main") as top:
        git(top, "checkout", "-q", "-b", "mine")
        (top / "work").write_text("work")
    with pytest.raises(WorktreeError), checked_out(repo, path=place, commit="main"):
        pass
    assert (place / "work").read_text() == "work"


def test_the_main_worktree_and_plain_directories_are_never_cleaned(
    repo: Repository, main: Path, tmp_path: Path
):
    (main / "work").write_text("work")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "mine").write_text("mine")
    for path in (main, tmp_path / "plain"):
        with pytest.raises(WorktreeError), checked_out(repo, path=path, commit="main"):
            pass
    assert (main / "work").exists()
    assert (tmp_path / "plain" / "mine").exists()


def test_a_commit_that_is_not_there_is_refused(repo: Repository, place: Path):
    with pytest.raises(GitError), checked_out(repo, path=place, commit="nowhere"):
        pass
    assert not place.exists()


def test_a_check_that_puts_another_repository_there_reaches_nothing_of_it(
    repo: Repository, place: Path, main: Path, git: Git
):
    """What is reset there is what `.git` leads to."""
    with checked_out(repo, path=place, commit="main~1") as top:
        (top / ".git").unlink()
        (top / ".git").symlink_to(main / ".git")
    (main / "README").write_text("staged by a person")
    git(main, "add", "README")
    before = git(main, "rev-parse", "--symbolic-full-name", "HEAD"), git(main, "diff", "--cached")
    with (
        pytest.raises(WorktreeError, match="repository of its own"),
        checked_out(repo, path=place, commit="main~1"),
    ):
        raise AssertionError("nobody gets in")
    after = git(main, "rev-parse", "--symbolic-full-name", "HEAD"), git(main, "diff", "--cached")
    assert after == before
