"""Worktrees: listed, made, handed on, and removed where that loses nothing.

A worktree is git's directory and never proof of who owns the work in it; that is the lease.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.command import CHECKOUT_TIMEOUT_S
from lessor.git.healing import (
    detach_entry,
    forget_entry,
    reattach,
    restore_pointer,
    take_back_healing,
)
from lessor.git.layout import layout_of, linked_layout
from lessor.git.leaving import is_leaving
from lessor.git.ownership import making, marked, write_lock
from lessor.git.progress import git_locks, holds_mails, operations_in_progress
from lessor.git.refs import BRANCHES, base_ref, create_ref, delete_ref, read_ref, refuse_bad_ref
from lessor.git.registry import (
    Worktree,
    find_linked,
    list_worktrees,
    plain_place,
    worktree_lock,
)
from lessor.git.removal import always, discard_worktree, remove_worktree, resume_removals
from lessor.git.repository import Repository
from lessor.git.revision import resolve_commit

__all__ = [
    "Worktree",
    "add_worktree",
    "detach_head",
    "discard_worktree",
    "forget_worktree",
    "heal_worktree",
    "list_worktrees",
    "relock_worktree",
    "remove_worktree",
    "resume_removals",
    "worktree_lock",
]

_TRIES = 10


def add_worktree(
    repo: Repository,
    *,
    path: Path,
    branch: str,
    base: str,
    task: str,
    epoch: int,
    reason: str,
    start: str | None = None,
) -> None:
    """Make a locked worktree at `path` on `branch`; a branch that exists is checked out as it is.

    A new branch starts at `start`, else at `base`, and follows no remote one; `base` stays pinned
    below `refs/lessor/base/`. Where only one half of the worktree exists, it is made whole and its files
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
        began = resolve_commit(repo.common_dir, base)
        start = began if start is None else resolve_commit(repo.common_dir, start)
        pin = base_ref(task, epoch)
        pinned = create_ref(repo.common_dir, pin, began)
        if not pinned and read_ref(repo.common_dir, pin) != began:
            raise WorktreeError(f"{pin} is another commit than {base}.", base=base, ref=pin)
        existed = read_ref(repo.common_dir, f"{BRANCHES}{branch}") is not None
        try:
            if existed and start != began:
                raise WorktreeError(f"{branch} is there already.", branch=branch)
            take_back_healing(repo, place)
            _free(repo, place, branch, task=task, epoch=epoch)
            _make_beside_others(repo, place, reason=making(reason), branch=branch, start=start)
            # From here on it is whole: a power cut before leaves half of the files, and nobody may
            # take what is missing for an agent's deletions.
            write_lock(layout_of(place).git_dir, reason)
        except (GitError, OSError) as refused:
            if not existed:
                _drop_branch(repo, branch, at=start)
            if pinned:
                delete_ref(repo.common_dir, pin, expected=began)
            raise WorktreeError(
                f"No worktree at {place}: {refused}", path=str(place), branch=branch
            ) from refused


def detach_head(worktree: Path) -> None:
    """Take the branch off the worktree's HEAD before the branch is handed on.

    A zombie's commits then move nothing but that HEAD. Files and index stay; a rebase in progress
    ends on a detached HEAD.

    Raises:
        GitError: It is no linked worktree, or its HEAD is at no commit.
    """
    detach_entry(linked_layout(worktree).git_dir)


def heal_worktree(
    repo: Repository,
    path: Path,
    *,
    branch: str,
    base: str,
    reason: str,
    allowed: Callable[[], None] = always,
) -> None:
    """Make half a worktree whole: a directory whose entry was lost, or whose `.git` file was.

    Its files stay and show as changes against HEAD. That is `branch`, or `base` where the branch is
    gone or checked out elsewhere by now.

    Raises:
        WorktreeError: It is whole, its entry is another tool's, or it never was a worktree.
        GitError: Git refuses.
    """
    place = plain_place(path)
    with worktree_lock(repo):
        allowed()
        take_back_healing(repo, place)
        known = list_worktrees(repo)
        entry = next((entry for entry in known if entry.path == place), None)
        if entry is not None:
            restore_pointer(entry, place)
            return
        taken = any(other.branch == branch for other in known)
        is_there = read_ref(repo.common_dir, f"{BRANCHES}{branch}") is not None
        source = [branch] if is_there and not taken else ["--detach", base]
        reattach(repo, path=place, reason=marked(reason), source=source)


def forget_worktree(
    repo: Repository,
    path: Path,
    *,
    task: str,
    epoch: int,
    allowed: Callable[[], None] = always,
) -> str | None:
    """Unregister a worktree whose directory is gone; the reference of what was saved, if anything.

    Its branch stays; what was staged there and commits that only it knew are saved first.

    Raises:
        WorktreeError: Its directory is there, or may be on a disk that isn't mounted; an operation
            is half done in it; or Lessor didn't make it.
        GitError: Something couldn't be saved.
    """
    place = plain_place(path)
    with worktree_lock(repo):
        allowed()
        entry = find_linked(repo, place)
        running = operations_in_progress(entry.git_dir)
        refusal = ""
        if not entry.is_lessors:
            refusal = "Lessor didn't make it"
        elif os.path.lexists(place):
            refusal = "its directory is there"
        elif not place.parent.is_dir():
            refusal = f"{place.parent} isn't there either, so its disk may not be mounted"
        elif running:
            refusal = f"{', '.join(running)} in progress, which would be lost"
        if refusal:
            raise WorktreeError(
                f"{place} stays registered: {refusal}.",
                next_step="If you moved it, tell git: git worktree repair NEWPATH",
                path=str(place),
            )
        return forget_entry(repo, git_dir=entry.git_dir, path=place, task=task, epoch=epoch)


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
            _refuse_mails(entry)
            forget_entry(repo, git_dir=entry.git_dir, path=place, task=task, epoch=epoch)
        elif entry.branch == branch and (gone or is_leaving(entry.path)):
            # The entry may be needed when its directory comes back; the branch is wanted now.
            detach_entry(entry.git_dir)
        elif entry.path == place:
            raise WorktreeError("there is a worktree already.", path=str(place))
        elif entry.branch == branch:
            locks = git_locks(entry.git_dir)
            raise WorktreeError(
                f"{branch} is checked out in {entry.path}.",
                next_step=f"A git command holds {locks[0]} there: when it has ended, try again."
                if locks
                else "Detach its HEAD there first.",
                holder=str(entry.path),
            )


def _refuse_mails(entry: Worktree) -> None:
    """Refuse to forget mails that `git am` has still to apply: they are in no commit."""
    if holds_mails(entry.git_dir):
        raise WorktreeError(
            "git still has its entry, where `git am` is half done: its mails would be lost.",
            next_step=f"Take them out of {entry.git_dir}, then remove that directory.",
            path=str(entry.path),
        )


def _make_beside_others(
    repo: Repository, place: Path, *, reason: str, branch: str, start: str
) -> None:
    """Make it, again where somebody's `git worktree prune` took the new entry for a dead one.

    Between an entry's directory and the lock in it git's own prune deletes it (2.39: 8 of 20 failed),
    and a prune by hand takes no lock of ours.
    """
    tries = 0
    while True:
        # After a first try the branch is there; git has taken the rest back.
        there = read_ref(repo.common_dir, f"{BRANCHES}{branch}") is not None
        source = [branch] if there else ["--no-track", "-b", branch, start]
        try:
            _make(repo, place, reason=reason, source=source)
        except GitError as refused:
            tries += 1
            if tries == _TRIES or not _lost_its_entry(repo, refused):
                raise
        else:
            return


def _lost_its_entry(repo: Repository, refused: GitError) -> bool:
    said = refused.facts.get("said")
    entries = f"{repo.common_dir / 'worktrees'}{os.sep}"
    return isinstance(said, list) and any(entries in str(line) for line in said)


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
