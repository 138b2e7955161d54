"""A worktree's identity is its own, and the shared configuration gets one line, once."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.clock import ManualClock
from lessor.errors import GitError, WorktreeError
from lessor.git.configuration import configure_worktree
from lessor.git.repository import Repository, find_repository
from lessor.git.worktree import add_worktree, list_worktrees

Git = Callable[..., str]


def test_an_identity_does_not_leak_to_the_siblings(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path, git: Git
):
    sibling = tmp_path / "trees" / "8-1"
    add_worktree(
        repo, path=sibling, branch="ai/8-x", base="main", task="8", epoch=1, reason="task=8"
    )
    configure_worktree(repo, worktree, {"user.name": "claude-1", "user.email": "c@x"})
    configure_worktree(repo, sibling, {"user.name": "codex-1"})
    read = ("config", "--local", "--get", "user.name")
    own = ("config", "--worktree", "--get", "user.name")
    assert git(worktree, *own) == "claude-1"
    assert git(sibling, *own) == "codex-1"
    assert git(main, *read, check=False) == ""
    assert git(main, *own, check=False) == ""


def test_the_shared_configuration_gets_the_extension_and_nothing_else(
    repo: Repository, worktree: Path, main: Path, git: Git
):
    shared = main / ".git" / "config"
    before = git(main, "config", "--file", str(shared), "--list").split("\n")
    configure_worktree(repo, worktree, {"user.name": "claude-1"})
    once = shared.read_bytes()
    configure_worktree(repo, worktree, {"user.name": "claude-2"})
    assert shared.read_bytes() == once
    after = git(main, "config", "--file", str(shared), "--list").split("\n")
    assert [line for line in after if line not in before] == ["extensions.worktreeconfig=true"]
    assert [line for line in before if line not in after] == []


def test_a_bare_repository_stays_bare_and_its_other_worktrees_work(
    main: Path, tmp_path: Path, git: Git
):
    git(tmp_path, "clone", "-q", "--bare", str(main), "bare.git")
    bare = find_repository(tmp_path / "bare.git")
    git(bare.root, "worktree", "add", "-q", "-b", "theirs", str(tmp_path / "theirs"))
    path = tmp_path / "trees" / "1-1"
    add_worktree(bare, path=path, branch="ai/1-x", base="main", task="1", epoch=1, reason="task=1")
    configure_worktree(bare, path, {"user.name": "claude-1"})
    assert git(tmp_path / "theirs", "status", "--porcelain") == ""
    assert git(path, "status", "--porcelain") == ""
    assert find_repository(bare.root) == find_repository(path) == bare
    assert len(list_worktrees(bare)) == 3


def test_the_main_worktree_is_not_configured(repo: Repository, main: Path):
    with pytest.raises(WorktreeError):
        configure_worktree(repo, main, {"user.name": "claude-1"})


def test_the_shared_configuration_is_written_beside_somebody_elses_git(
    repo: Repository, worktree: Path, main: Path, git: Git
):
    """A person's `git config` holds `config.lock` for a moment; git alone gives up at once."""
    over = threading.Event()

    def interfere() -> None:
        while not over.is_set():
            git(main, "config", "some.key", "some value", check=False)

    others = [threading.Thread(target=interfere) for _ in range(3)]
    for other in others:
        other.start()
    try:
        for n in range(20):
            git(main, "config", "--unset", "extensions.worktreeConfig", check=False)
            configure_worktree(repo, worktree, {"user.name": f"claude-{n}"})
    finally:
        over.set()
        for other in others:
            other.join()
    assert git(worktree, "config", "--worktree", "--get", "user.name") == "claude-19"
    assert git(main, "config", "--get", "some.key") == "some value"


def test_a_lock_that_a_dead_git_left_is_named(repo: Repository, worktree: Path, main: Path):
    lock = main / ".git" / "config.lock"
    lock.touch()
    before = (main / ".git" / "config").read_bytes()
    with pytest.raises(GitError, match=re.escape(str(lock))) as refused:
        configure_worktree(repo, worktree, {"user.name": "claude-1"}, clock=ManualClock())
    assert "remove that file" in refused.value.next_step
    assert (main / ".git" / "config").read_bytes() == before
