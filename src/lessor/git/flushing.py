"""Commits put on the disk, before the files go that they were made of.

Git leaves loose objects and references to the system's own time, which is some thirty seconds on Linux.
The deletion of a worktree may be on the disk before them: a power cut would take both.
"""

from __future__ import annotations

import os
from pathlib import Path

from lessor.git.command import run_git
from lessor.git.progress import branch_at_head
from lessor.git.reflog import is_reftable
from lessor.git.refs import BASES, BRANCHES


def flush_commits(git_dir: Path, *, common_dir: Path) -> None:
    """Put what a worktree's HEAD leads to, and no task's base, on the disk; its branch, too.

    What is in packs git has put there itself.

    Raises:
        GitError: Git can't walk the history.
        OSError: Something can't be flushed.
    """
    asked = ["rev-parse", "--quiet", "--verify", "HEAD"]
    head = run_git(asked, cwd=git_dir, git_dir=git_dir, check=False)
    if head.code != 0:  # a branch without a commit
        return
    walked = ["rev-list", "--objects", "--no-object-names", head.text]
    others = ["--not", f"--glob={BASES}*", "--remotes", "--tags"]
    for oid in run_git([*walked, *others], cwd=git_dir, git_dir=git_dir).lines:
        _flush(common_dir / "objects" / oid[:2] / oid[2:])
    if is_reftable(common_dir):
        for table in (common_dir / "reftable").iterdir():
            _flush(table)
        return
    branch = branch_at_head(git_dir)
    if branch is not None:
        _flush(common_dir / f"{BRANCHES}{branch}")


def _flush(path: Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # in a pack, or packed-refs
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
