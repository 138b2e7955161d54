"""Removing a worktree: only one that Lessor made, only after several looks, never by its own hand.

The last look is at a worktree that was moved aside, where nobody works any more. What is deleted is
deleted by `git worktree remove`; where git refuses or stops halfway, what is left is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from lessor.errors import GitError, HoldsWorkError, LessorError, WorktreeError
from lessor.git.flushing import flush_commits
from lessor.git.inspection import Inspection, Occupants, inspect_worktree
from lessor.git.layout import linked_layout
from lessor.git.leaving import (
    changed_from,
    changed_since_begun,
    delete,
    file_time_ns,
    has_begun,
    is_leaving,
    leaving_path,
    mark_begun,
    move_aside,
    move_back,
    point_to,
    unmark,
)
from lessor.git.registry import Worktree, find_linked, list_worktrees, worktree_lock
from lessor.git.repository import Repository
from lessor.git.salvage import Salvage
from lessor.git.submodule import submodule_stores

_GIT_REFUSED = 128


def always() -> None:
    """Nothing speaks against it."""


def remove_worktree(
    repo: Repository,
    path: Path,
    *,
    verdict: Inspection,
    occupants: Occupants,
    allowed: Callable[[], None] = always,
) -> None:
    """Remove a worktree whose `verdict` says that nothing is lost by it; its branch stays.

    `allowed` is called first, under the lock that every making of a worktree takes: what it finds
    stays true until the worktree is gone. It raises to refuse.

    Raises:
        HoldsWorkError: The verdict, or one of two later looks, says anything else.
        WorktreeError: It is the main worktree, one that Lessor didn't make, reached through a link
            or around other worktrees; or git refused.
    """

    def look(place: Path) -> Inspection:
        return inspect_worktree(
            place, base=verdict.base, snapshot=verdict.snapshot, occupants=occupants
        )

    with worktree_lock(repo):
        allowed()
        entry = find_linked(repo, path)
        _refuse_removal(repo, entry)
        if verdict.path != entry.path:
            raise HoldsWorkError(f"{entry.path} stays: another one was judged.", path=str(path))
        _refuse_work(entry.path, verdict)
        since_ns = file_time_ns(entry.git_dir)
        _refuse_work(entry.path, look(entry.path))

        def last(aside: Path) -> None:
            _refuse_work(entry.path, look(aside))

        _take_away(repo, entry, occupants, since_ns=since_ns, last=last)


def discard_worktree(
    repo: Repository,
    path: Path,
    *,
    save: Callable[[Path], Salvage],
    occupants: Occupants,
    allowed: Callable[[], None] = always,
) -> Salvage:
    """Remove a worktree that holds work, once all of it is saved; what was saved.

    `save` is called again before anything is deleted: only what it has saved is.

    Raises:
        HoldsWorkError: Somebody is inside, nobody can tell, or it changes while it is saved.
        WorktreeError: As in `remove_worktree`.
        GitError: Something can't be saved; nothing was removed.
    """
    with worktree_lock(repo):
        allowed()
        entry = find_linked(repo, path)
        _refuse_removal(repo, entry)
        _refuse_occupied(entry.path, occupants)
        since_ns = file_time_ns(entry.git_dir)
        saved = save(entry.path)

        def last(aside: Path) -> None:
            if save(aside) != saved:
                raise _changed(entry.path)

        _take_away(repo, entry, occupants, since_ns=since_ns, last=last)
        return saved


def resume_removals(repo: Repository) -> list[LessorError]:
    """Go on with removals that were cut short; where no deletion had begun, undo them.

    What stands in the way of one is given back, and what is left of that one is left.

    Raises:
        GitError: Git can't list the worktrees.
        BusyError: Others made worktrees for ten minutes.
    """
    refused: list[LessorError] = []
    with worktree_lock(repo):
        for entry in list_worktrees(repo):
            try:
                _resume(repo, entry)
            except LessorError as one:
                refused.append(one)
            except OSError as error:
                refused.append(
                    WorktreeError(
                        f"{entry.path} can't be looked at: {error}.", path=str(entry.path)
                    )
                )
    return refused


def _resume(repo: Repository, entry: Worktree) -> None:
    aside = entry.path if is_leaving(entry.path) else leaving_path(entry.path)
    was_moved = aside.is_dir() and not aside.is_symlink()
    if not entry.is_lessors or not was_moved or (entry.path != aside and entry.path.exists()):
        return
    if entry.path != aside:
        point_to(repo, entry.git_dir, aside)
    if not has_begun(entry.git_dir):
        move_back(repo, entry.git_dir, aside)
        return
    written = changed_since_begun(entry.git_dir, aside)
    if written:
        raise HoldsWorkError(
            f"{aside} was to be deleted, and somebody wrote into it: {written[0]}.",
            next_step="Move that away, then clean again.",
            path=str(aside),
        )
    _delete(repo, entry.git_dir, aside)


def _refuse_work(path: Path, found: Inspection) -> None:
    if not found.may_be_removed:
        raise HoldsWorkError(
            f"{path} stays: {'; '.join(found.reasons)}.",
            next_step="Look at it, or name it to discard it.",
            path=str(path),
            verdict=str(found.verdict),
            reasons=list(found.reasons),
        )


def _refuse_occupied(path: Path, occupants: Occupants) -> None:
    inside = occupants(path)
    if inside is None or inside:
        who = "it can't be told whether anybody is" if inside is None else ", ".join(inside)
        raise HoldsWorkError(
            f"{path} stays: inside is {who}." if inside else f"{path} stays: {who} inside.",
            next_step="End that first." if inside else "Look at it, and remove it yourself.",
            path=str(path),
            inside=list(inside or ()),
        )


def _refuse_removal(repo: Repository, entry: Worktree) -> None:
    if not entry.is_lessors:
        reason = entry.locked_reason
        raise WorktreeError(
            f"{entry.path} isn't Lessor's"
            + (f": it is locked with {reason!r}." if reason is not None else ": it isn't locked."),
            next_step="Whoever made it removes it: `git worktree remove`.",
            path=str(entry.path),
        )
    linked_layout(entry.path)  # refuses a directory that uses another's entry, or none
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


def _take_away(
    repo: Repository,
    entry: Worktree,
    occupants: Occupants,
    *,
    since_ns: int,
    last: Callable[[Path], None],
) -> None:
    """Move it aside, look once more, and delete it; `since_ns` is when the look before began."""
    _refuse_undeletable(entry.path)
    # Of one that somebody moved back from half a removal: it says nothing of what is there now.
    unmark(entry.git_dir)
    aside = move_aside(repo, entry)
    try:
        _refuse_occupied(aside, occupants)
        stores = list(submodule_stores(entry.git_dir))
        if stores:
            # They name the place where they were, and git can't look at them elsewhere.
            _refuse_changed(entry.path, (aside, *stores), since_ns=since_ns)
        else:
            last(aside)
        flush_commits(entry.git_dir, common_dir=repo.common_dir)
        mark_begun(entry.git_dir)
    except BaseException:
        # Else the next removal, killed after its move, would be finished without a last look.
        unmark(entry.git_dir)
        move_back(repo, entry.git_dir, aside)
        raise
    _delete(repo, entry.git_dir, aside)


def _refuse_changed(path: Path, tops: Sequence[Path], *, since_ns: int) -> None:
    if any(changed_from(since_ns, top) for top in tops):
        raise _changed(path)


def _changed(path: Path) -> HoldsWorkError:
    return HoldsWorkError(
        f"{path} stays: it changed while it was saved or looked at.",
        next_step="Find out who writes there, then try again.",
        path=str(path),
    )


def _delete(repo: Repository, git_dir: Path, aside: Path) -> None:
    try:
        delete(repo, git_dir, aside)
    except WorktreeError:
        raise
    except GitError as refused:
        where = aside
        if refused.facts.get("git_code") == _GIT_REFUSED and git_dir.is_dir():
            unmark(git_dir)
            where = move_back(repo, git_dir, aside)
        raise WorktreeError(
            f"git didn't remove {where}: {refused.message}",
            next_step=f"Look what stands in its way: ls -la {where}",
            path=str(where),
        ) from refused


def _refuse_undeletable(top: Path) -> None:
    # Git stops at the first one, with half of the rest deleted and the entry gone.
    for directory, below, files in os.walk(top, onerror=_refuse_unlisted):
        if (below or files) and not os.access(directory, os.W_OK | os.X_OK):
            raise WorktreeError(
                f"{directory} can't be written, so what is in it can't be deleted.",
                next_step=f"Make it yours to write: chmod -R u+w {top}",
                path=str(top),
            )


def _refuse_unlisted(error: OSError) -> None:
    raise WorktreeError(
        f"{str(error.filename)[:200]} can't be listed: {error.strerror}, so it can't be deleted.",
        next_step="Look at it, and delete it yourself.",
    ) from error
