"""Worktrees: listed, made, handed on, and removed where that loses nothing.

A worktree is git's directory and never proof of who owns the work in it; that is the lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.command import CHECKOUT_TIMEOUT_S
from lessor.git.healing import detach_entry, forget_entry, reattach
from lessor.git.layout import layout_of
from lessor.git.ownership import marked, write_lock
from lessor.git.refs import BRANCHES, base_ref, create_ref, delete_ref, read_ref, refuse_bad_ref
from lessor.git.registry import (
    Worktree,
    find_linked,
    list_worktrees,
    plain_place,
    worktree_lock,
)
from lessor.git.removal import remove_worktree
from lessor.git.repository import Repository
from lessor.git.revision import resolve_commit

__all__ = [
    "Worktree",
    "add_worktree",
    "detach_head",
    "list_worktrees",
    "relock_worktree",
    "remove_worktree",
    "worktree_lock",
]


def add_worktree(
    repo: Repository, *, path: Path, branch: str, base: str, task: str, epoch: int, reason: str
) -> None:
    """Make a locked worktree at `path` on `branch`; a branch that exists is checked out as it is.

    A new branch starts at `base`, follows no remote one, and `base` stays pinned below
    `refs/lessor/base/`. Where only one half of the worktree exists, it is made whole and its files
    and branch are kept. On failure the branch goes again if this call made it and it is still at
    the base.

    Raises:
        WorktreeError: `path` is taken, the branch is checked out elsewhere, or git refuses.
        GitError: `branch` or `base` names nothing that git accepts.
        BusyError: Others made worktrees for ten minutes.
    """
    refuse_bad_ref(repo.common_dir, f"{BRANCHES}{branch}")
    place = plain_place(path)
    with worktree_lock(repo):
        start = resolve_commit(repo.common_dir, base)
        pin = base_ref(task, epoch)
        pinned = create_ref(repo.common_dir, pin, start)
        if not pinned and read_ref(repo.common_dir, pin) != start:
            raise WorktreeError(f"{pin} is another commit than {base}.", base=base, ref=pin)
        existed = read_ref(repo.common_dir, f"{BRANCHES}{branch}") is not None
        source = [branch] if existed else ["--no-track", "-b", branch, start]
        try:
            _free(repo, place, branch, task=task, epoch=epoch)
            _make(repo, place, reason=marked(reason), source=source)
        except (GitError, OSError) as refused:
            if not existed:
                _drop_branch(repo, branch, at=start)
            if pinned:
                delete_ref(repo.common_dir, pin, expected=start)
            raise WorktreeError(
                f"No worktree at {place}: {refused}", path=str(place), branch=branch
            ) from refused


def detach_head(worktree: Path) -> None:
    """Take the branch off the worktree's HEAD before the branch is handed on.

    A zombie's commits then move nothing but that HEAD. Files and index stay; a rebase in progress
    ends on a detached HEAD.

    Raises:
        GitError: It is no worktree, or its HEAD is at no commit.
    """
    detach_entry(layout_of(worktree).git_dir)


def relock_worktree(repo: Repository, path: Path, *, reason: str) -> None:
    """Lock a worktree with a new reason, when the next epoch adopts it.

    Raises:
        WorktreeError: There is no such worktree, it is the main one, or somebody else locked it.
    """
    with worktree_lock(repo):
        entry = find_linked(repo, path)
        if entry.locked_reason is not None and not entry.is_lessors:
            raise WorktreeError(
                f"{entry.path} is locked by somebody else: {entry.locked_reason}.",
                path=str(entry.path),
            )
        write_lock(entry.git_dir, reason)


def _free(repo: Repository, place: Path, branch: str, *, task: str, epoch: int) -> None:
    """Make room for the worktree: forget an entry without its directory, here or with the branch."""
    for entry in list_worktrees(repo):
        gone = not entry.path.exists()
        if gone and entry.locked_reason is not None and not entry.is_lessors:
            continue  # another tool's, and perhaps on a disk that isn't mounted here
        if entry.path == place and gone:
            forget_entry(repo, git_dir=entry.git_dir, path=place, task=task, epoch=epoch)
        elif entry.branch == branch and gone:
            # The entry may be needed when its directory comes back; the branch is wanted now.
            detach_entry(entry.git_dir)
        elif entry.path == place:
            raise WorktreeError("there is a worktree already.", path=str(place))
        elif entry.branch == branch:
            raise WorktreeError(
                f"{branch} is checked out in {entry.path}.",
                next_step="Detach its HEAD there first.",
                holder=str(entry.path),
            )


def _make(repo: Repository, place: Path, *, reason: str, source: Sequence[str]) -> None:
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        reattach(repo, path=place, reason=reason, source=source)
        return
    *options, last = source
    repo.git(
        [
            *("worktree", "add", "--no-guess-remote", "--lock", "--reason", reason),
            *(*options, "--", str(place), last),
        ],
        timeout_s=CHECKOUT_TIMEOUT_S,
    )


def _drop_branch(repo: Repository, branch: str, *, at: str) -> None:
    if all(entry.branch != branch for entry in list_worktrees(repo)):
        delete_ref(repo.common_dir, f"{BRANCHES}{branch}", expected=at)
