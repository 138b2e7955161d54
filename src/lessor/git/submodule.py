"""Submodules of a worktree: their own work trees, and the commits that only they hold.

A linked worktree keeps its submodules' objects below its own git directory. Whatever removes the
worktree removes them, also where the commit of the worktree points at one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lessor.git.command import run_git
from lessor.git.index import Index
from lessor.git.layout import Layout, layout_of

_STORE = "modules"


def submodules(layout: Layout, index: Index) -> tuple[Layout, ...]:
    """The submodules of a work tree that are checked out.

    Raises:
        WorktreeError: One is there and can't be read.
    """
    paths = (layout.path / path for path in index.submodules)
    return tuple(
        replace(layout_of(path), only_looks=layout.only_looks)
        for path in paths
        if (path / ".git").exists()
    )


def submodule_stores(git_dir: Path) -> Iterator[Path]:
    """The git directories of submodules that a worktree's git directory holds, at any depth."""
    waiting = [git_dir / _STORE]
    while waiting:
        directory = waiting.pop()
        if not directory.is_dir():
            continue
        if (directory / "HEAD").is_file() and (directory / "objects").is_dir():
            yield directory
            waiting.append(directory / _STORE)
        else:  # a submodule's name may hold slashes
            waiting += [below for below in directory.iterdir() if not below.is_symlink()]


def has_own_commits(store: Path) -> bool:
    """Whether a submodule's git directory holds commits that its remotes aren't known to have.

    Raises:
        GitError: Git can't read it.
    """
    args = ["rev-list", "--max-count=1", "--all", "--reflog", "HEAD", "--not", "--remotes"]
    return bool(run_git(args, cwd=store, git_dir=store).lines)
