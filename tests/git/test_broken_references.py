"""A reference whose file holds nothing that git can read is broken, and never taken for absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from git_rig import break_ref

from lessor.errors import GitError
from lessor.git.refs import create_ref, read_ref, salvage_refs
from lessor.git.repository import Repository, head_commit
from lessor.git.salvage import salvage
from lessor.git.target import read_refs
from lessor.git.worktree import add_worktree

Git = Callable[..., str]
WORK = "refs/heads/work"


@pytest.mark.parametrize("left", [b"", b"\0" * 41, b"garbage\n"])
def test_a_broken_reference_is_never_taken_for_absent(
    repo: Repository, main: Path, git: Git, left: bytes
):
    git(main, "branch", "work")
    break_ref(repo.common_dir, WORK, left)
    with pytest.raises(GitError, match="refs/heads/work is broken") as refused:
        read_ref(repo.common_dir, WORK)
    assert f"logs/{WORK}" in refused.value.next_step
    with pytest.raises(GitError, match="is broken"):
        create_ref(repo.common_dir, WORK, head_commit(main))
    with pytest.raises(GitError, match="is broken"):
        read_refs(repo.common_dir)


def test_a_broken_reference_hides_no_other_one(repo: Repository, main: Path, git: Git):
    git(main, "branch", "work")
    git(main, "branch", "work2")
    break_ref(repo.common_dir, WORK)
    assert read_ref(repo.common_dir, "refs/heads/work2") == head_commit(main)
    assert read_ref(repo.common_dir, "refs/heads/wor") is None
    assert read_ref(repo.common_dir, "refs/heads/main") == head_commit(main)


def test_no_branch_is_made_anew_in_the_place_of_a_broken_one(
    repo: Repository, main: Path, tmp_path: Path, git: Git
):
    git(main, "branch", "work")
    break_ref(repo.common_dir, WORK)
    with pytest.raises(GitError, match="is broken"):
        add_worktree(
            repo,
            path=tmp_path / "trees" / "8-1",
            branch="work",
            base="main",
            task="8",
            epoch=1,
            reason="task=8",
        )
    assert (repo.common_dir / WORK).read_bytes() == b""


def test_what_is_saved_finds_a_place_beside_a_broken_salvage(
    repo: Repository, worktree: Path, tmp_path: Path
):
    place = salvage_refs("7", 1)
    create_ref(repo.common_dir, f"{place}1", head_commit(worktree))
    break_ref(repo.common_dir, f"{place}1")
    (worktree / "README").write_text("work\n")
    saved = salvage(
        worktree,
        common_dir=repo.common_dir,
        task="7",
        epoch=1,
        snapshot={},
        archive_dir=tmp_path / "archives",
    )
    assert saved.ref == f"{place}2"
    assert read_ref(repo.common_dir, f"{place}2") == saved.commit
