"""What branches land on: the default branch, by the remote's word, else as this clone knows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import GitError
from lessor.git.advertised import Advertised, ask_remote, remote_name
from lessor.git.repository import head_commit
from lessor.git.target import Target, default_target, read_refs

Git = Callable[..., str]


@pytest.fixture
def clone(main: Path, tmp_path: Path, git: Git) -> Path:
    """A clone of a bare `origin.git`, which others push to."""
    git(tmp_path, "clone", "-q", "--bare", str(main), "origin.git")
    git(tmp_path, "clone", "-q", "origin.git", "clone")
    return tmp_path / "clone"


def target(place: Path, *, ask: bool = True) -> Target:
    common_dir = place / ".git"
    remote = remote_name(common_dir)
    said = ask_remote(common_dir, remote) if ask and remote else None
    return default_target(common_dir, read_refs(common_dir), remote=remote, said=said)


def push(tmp_path: Path, git: Git, message: str) -> str:
    """Somebody else's commit on the remote's main."""
    if not (tmp_path / "theirs").exists():
        git(tmp_path, "clone", "-q", "origin.git", "theirs")
    git(tmp_path / "theirs", "commit", "-q", "--allow-empty", "-m", message)
    git(tmp_path / "theirs", "push", "-q", "origin", "HEAD")
    return head_commit(tmp_path / "theirs")


def test_without_a_remote_it_is_the_branch_of_the_main_worktree(main: Path, git: Git):
    assert target(main) == Target(name="main", commit=head_commit(main))
    git(main, "checkout", "-q", "-b", "feature/x")
    assert target(main).name == "main"
    git(main, "branch", "-q", "-m", "main", "stable")
    assert target(main).name == "feature/x"


def test_a_local_branch_that_is_ahead_counts(clone: Path, git: Git):
    git(clone, "commit", "-q", "--allow-empty", "-m", "landed here")
    assert target(clone) == Target(name="main", commit=head_commit(clone))


def test_a_local_branch_that_is_behind_or_beside_does_not_count(
    clone: Path, tmp_path: Path, git: Git
):
    theirs = push(tmp_path, git, "landed there")
    git(clone, "fetch", "-q")
    assert target(clone) == Target(name="origin/main", commit=theirs)
    git(clone, "commit", "-q", "--allow-empty", "-m", "beside")
    assert target(clone) == Target(name="origin/main", commit=theirs)


def test_a_remote_that_has_moved_on_is_said(clone: Path, tmp_path: Path, git: Git):
    theirs = push(tmp_path, git, "not fetched")
    found = target(clone)
    assert (found.name, found.commit) == ("main", head_commit(clone))
    assert theirs[:12] in found.note
    assert target(clone, ask=False).note == ""


def test_a_renamed_default_branch_is_followed(clone: Path, tmp_path: Path, git: Git):
    """`refs/remotes/origin/HEAD` stays at the old name, and dangles after a prune."""
    origin = tmp_path / "origin.git"
    git(origin, "branch", "-m", "main", "trunk")
    found = target(clone)
    assert (found.name, found.commit) == ("trunk", None)
    assert "git fetch origin" in found.note
    git(clone, "fetch", "-q", "--prune")
    assert git(clone, "symbolic-ref", "refs/remotes/origin/HEAD") == "refs/remotes/origin/main"
    assert target(clone).name == "origin/trunk"
    assert target(clone, ask=False).name == "main"


def test_where_nothing_names_a_default_branch_that_is_said(tmp_path: Path, main: Path, git: Git):
    git(main, "checkout", "-q", "--detach")
    git(main, "branch", "-q", "-m", "main", "odd")
    found = target(main)
    assert found.commit is None
    assert "default" in found.note


def test_a_remote_that_cannot_be_reached_says_nothing(clone: Path, tmp_path: Path):
    (tmp_path / "origin.git").rename(tmp_path / "away")
    with pytest.raises(GitError):
        ask_remote(clone / ".git", "origin")


def test_one_round_trip_names_the_default_branch_and_every_tip(
    clone: Path, tmp_path: Path, main: Path, git: Git
):
    git(tmp_path / "origin.git", "branch", "claude/1-é", "main")
    said = ask_remote(clone / ".git", "origin")
    tip = head_commit(main)
    assert said == Advertised(
        remote="origin", default="main", branches={"main": tip, "claude/1-é": tip}
    )


def test_a_remote_without_a_commit_has_no_branches(tmp_path: Path, main: Path, git: Git):
    git(tmp_path, "init", "-q", "--bare", "empty.git")
    git(main, "remote", "add", "origin", str(tmp_path / "empty.git"))
    assert ask_remote(main / ".git", "origin").branches == {}
    assert target(main).name == "main"


def test_a_remote_is_asked_by_the_way_that_this_machine_reaches_hosts(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nshift $(($# - 1))\nexec sh -c "$1"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    said = ask_remote(clone / ".git", f"ssh://host.invalid{tmp_path / 'origin.git'}")
    assert said.branches == {"main": head_commit(clone)}
