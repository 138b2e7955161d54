"""Removing a worktree: only one that Lessor made, only after two looks, never by its own hand."""

from __future__ import annotations

from pathlib import Path

from lessor.errors import GitError, HoldsWorkError, WorktreeError
from lessor.git.inspection import Inspection, inspect_worktree
from lessor.git.layout import layout_of
from lessor.git.ownership import write_lock
from lessor.git.registry import Worktree, find_linked, list_worktrees, worktree_lock
from lessor.git.repository import Repository
from lessor.git.submodule import submodule_stores


def remove_worktree(repo: Repository, path: Path, *, verdict: Inspection) -> None:
    """Remove a worktree that `verdict` calls empty or kept, after a second look; its branch stays.

    It never removes a directory itself: where git refuses or stops halfway, what is left is left.

    Raises:
        HoldsWorkError: The verdict, or the second look, says anything else.
        WorktreeError: It is the main worktree, one that Lessor didn't make, reached through a link
            or around other worktrees; or git refused.
    """
    with worktree_lock(repo):
        entry = find_linked(repo, path)
        _refuse_removal(repo, entry)
        looks = [verdict]
        if verdict.may_be_removed:
            looks.append(inspect_worktree(entry.path, base=verdict.base, snapshot=verdict.snapshot))
        if verdict.path != entry.path or not looks[-1].may_be_removed:
            raise HoldsWorkError(
                f"{entry.path} stays: {'; '.join(looks[-1].reasons) or 'another one was judged'}.",
                next_step="Salvage it, or name it to discard it.",
                path=str(entry.path),
                verdict=str(looks[-1].verdict),
                reasons=list(looks[-1].reasons),
            )
        _remove(repo, entry)


def _refuse_removal(repo: Repository, entry: Worktree) -> None:
    if not entry.is_lessors:
        reason = entry.locked_reason
        raise WorktreeError(
            f"{entry.path} isn't Lessor's"
            + (f": it is locked with {reason!r}." if reason is not None else ": it isn't locked."),
            next_step="Whoever made it removes it: `git worktree remove`.",
            path=str(entry.path),
        )
    layout_of(entry.path)  # refuses a directory that uses another's entry, or none
    inside = [
        other.path
        for other in list_worktrees(repo)
        if other.path != entry.path and other.path.is_relative_to(entry.path)
    ]
    if inside or repo.common_dir.is_relative_to(entry.path):
        raise WorktreeError(
            f"{entry.path} has another worktree or the repository itself inside.",
            path=str(entry.path),
            inside=[str(path) for path in inside],
        )


def _remove(repo: Repository, entry: Worktree) -> None:
    # Git refuses every worktree whose submodules were ever initialised, clean or not; the looks
    # above went through them.
    force = ["--force"] if any(submodule_stores(entry.git_dir)) else []
    (entry.git_dir / "locked").unlink()
    try:
        # Its own check for untracked files obeys a setting that any agent can change.
        repo.git(
            [
                *("-c", "status.showUntrackedFiles=all"),
                *("worktree", "remove", *force, "--", str(entry.path)),
            ]
        )
    except GitError as refused:
        if entry.git_dir.is_dir():
            write_lock(entry.git_dir, entry.locked_reason or "")
        raise WorktreeError(
            f"git didn't remove {entry.path}: {refused}",
            next_step="What is left of it is left; look before you delete.",
            path=str(entry.path),
        ) from refused
    if entry.path.exists() or entry.git_dir.exists():
        raise WorktreeError(
            f"git reported {entry.path} removed, and it is still there.", path=str(entry.path)
        )
