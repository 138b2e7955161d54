"""Taking workspaces away: what is proven to lose nothing, and what a person names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lessor.errors import (
    ConflictError,
    GitError,
    HoldsWorkError,
    LessorError,
    TransitionRefusedError,
)
from lessor.git.leaving import leaving_path
from lessor.git.removal import always
from lessor.git.salvage import Salvage
from lessor.git.target import default_target, read_refs
from lessor.git.worktree import (
    discard_worktree,
    forget_worktree,
    heal_worktree,
    remove_worktree,
    resume_removals,
)
from lessor.model.task import Task
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.looking import Look, look_at, look_at_all, with_merged
from lessor.runner.occupants import occupants
from lessor.runner.salvaging import LONGEST_WHY, note_saved, save
from lessor.runner.settling import Settled, forget_landing, give_up_gone, settle_landed
from lessor.runner.site import Site
from lessor.runner.taken import refuse_taken
from lessor.runner.unpinning import drop_pins
from lessor.runner.unrecorded import Stray, note_unrecorded, strays
from lessor.runner.words import kept_text

_NOTHING = Salvage(ref=None, commit=None, archive=None, files=())


class Fate(StrEnum):
    """What becomes of a workspace."""

    REMOVED = "removed"
    FORGOTTEN = "forgotten"  # only git's entry was left of it
    GONE = "gone"  # nothing was left of it
    STAYS = "stays"
    FAILED = "failed"  # it could have gone, and something stood in the way


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What a cleaning came to.

    Attributes:
        refused: what of removals that were cut short stood in the way.
        strays: Lessor's worktrees that are in no record; they stay.
        noted: how many salvages the store was told of, that it had no record of.
        settled: results that were found to be in the default branch, and weren't known to be.
        given_up: tasks whose results are gone; they were recorded as given up.
    """

    outcomes: tuple[Outcome, ...]
    refused: tuple[LessorError, ...] = ()
    strays: tuple[Stray, ...] = ()
    noted: int = 0
    settled: tuple[Settled, ...] = ()
    given_up: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one workspace; in a dry run, what would.

    Attributes:
        why: why it stays, or what it was.
        saved: what was saved of it first.
    """

    look: Look
    fate: Fate
    why: str
    saved: Salvage = _NOTHING


def clean(site: Site, *, dry: bool = False) -> Cleaning:
    """Take away every workspace that is empty, merged or kept; the rest stays, with its reasons.

    Removals that were cut short are finished or undone, half a worktree is made whole before it is
    judged, records of what is gone are closed, the store is told of salvages that it missed, and of
    results that landed or are gone, and bases are pinned no longer that nothing needs.

    Args:
        site: the repository on this host.
        dry: only look.

    Raises:
        GitError: git can't list the worktrees.
    """
    refused = () if dry else tuple(resume_removals(site.repo))
    noted = 0 if dry else note_unrecorded(site)
    outcomes = tuple(_clean_one(site, look, dry=dry) for look in look_at_all(site))
    settled = () if dry else settle_results(site)
    given_up = () if dry else _give_up_gone(site)
    if not dry:
        drop_pins(site.lessor, site.repo.common_dir, repository=site.repository)
    return Cleaning(
        outcomes=outcomes,
        refused=refused,
        strays=tuple(strays(site)),
        noted=noted,
        settled=settled,
        given_up=given_up,
    )


def settle_results(site: Site) -> tuple[Settled, ...]:
    """Record as landed what the default branch has of results; nothing where it can't be told."""
    common_dir = site.repo.common_dir
    try:
        target = default_target(common_dir, read_refs(common_dir), remote="origin", said=None)
    except GitError:
        return ()
    return tuple(settle_landed(site.lessor, common_dir, repository=site.repository, target=target))


def give_up(site: Site, task: str) -> bool:
    """Record that a person gave up the task's result, where it has one that hasn't landed."""
    landings = site.lessor.landings
    if not any(result.is_open for result in landings.results(task=task, unfinished=True)):
        return False
    discarded = landings.discarded(task, reason="discarded by a person")
    forget_landing(site.repo.common_dir, task)
    drop_pins(site.lessor, site.repo.common_dir, repository=site.repository, only=[task])
    return discarded


def _give_up_gone(site: Site) -> tuple[Task, ...]:
    return tuple(give_up_gone(site.lessor, site.repo.common_dir, repository=site.repository))


def discard(site: Site, look: Look) -> Outcome:
    """Take away a workspace that a person named, once everything in it is saved.

    Raises:
        ConflictError: somebody works in it.
        HoldsWorkError: a process is inside, or it changes while it is saved.
        GitError: something can't be saved, or git refuses; nothing was removed.
    """
    workspace = look.workspace
    refuse_taken(site, workspace)
    if not look.has_directory:
        return _close(site, look)
    if not look.is_whole:
        _heal(site, workspace)

    saved = take_away(site, workspace, allowed=lambda: refuse_taken(site, workspace))
    _to_gone(site, workspace, why="discarded by a person")
    return Outcome(look=look, fate=Fate.REMOVED, why="; ".join(look.reasons), saved=saved)


def take_away(site: Site, workspace: Workspace, *, allowed: Callable[[], None] = always) -> Salvage:
    """Remove a workspace's worktree once everything in it is saved and noted; what was saved.

    Raises:
        HoldsWorkError: a process is inside, or it changes while it is saved.
        GitError: something can't be saved, or git refuses; nothing was removed.
    """

    def save_at(path: Path) -> Salvage:
        return save(site, workspace, at=path) or _NOTHING

    saved = discard_worktree(
        site.repo, Path(workspace.path), save=save_at, occupants=occupants, allowed=allowed
    )
    note_saved(site, workspace, saved)
    return saved


def _clean_one(site: Site, look: Look, *, dry: bool) -> Outcome:
    try:
        if look.is_free and not look.has_directory:
            return _close(site, look, dry=dry)
        if look.is_free and not look.is_whole and not dry:
            _heal(site, look.workspace)
            (look,) = with_merged(site, [look_at(site, look.workspace)])
        if look.is_half_made and not dry:
            return discard(site, look)
        if look.may_be_removed and not dry:
            _remove(site, look)
    except (LessorError, OSError) as stood:
        return _after(site, look, stood)
    if look.may_be_removed or look.is_half_made:
        return Outcome(look=look, fate=Fate.REMOVED, why=look.verdict)
    return Outcome(look=look, fate=Fate.STAYS, why="; ".join(look.reasons))


def _remove(site: Site, look: Look) -> None:
    if look.found is None:
        raise HoldsWorkError(f"Nobody looked at {look.path}.", path=str(look.path))
    workspace = look.workspace
    remove_worktree(
        site.repo,
        look.path,
        verdict=look.found,
        occupants=occupants,
        allowed=lambda: refuse_taken(site, workspace, unknown=True),
    )
    _to_gone(site, workspace, why=look.verdict)


def _after(site: Site, look: Look, stood: LessorError | OSError) -> Outcome:
    """What to say where something stood in the way: somebody came in, or another one was first."""
    again = look_at(site, look.workspace)
    is_left = leaving_path(look.path).exists()
    if not (again.has_directory or again.has_entry or is_left):
        _to_gone(site, look.workspace, why="another one was first")
        return Outcome(look=look, fate=Fate.GONE, why="another one was first")
    came_in = isinstance(stood, HoldsWorkError | ConflictError)
    why = stood.message if isinstance(stood, LessorError) else str(stood)
    return Outcome(
        look=again if came_in else look, fate=Fate.STAYS if came_in else Fate.FAILED, why=why
    )


def _close(site: Site, look: Look, *, dry: bool = False) -> Outcome:
    """Close the record of a workspace whose directory is gone; git's entry goes too, its branch stays."""
    workspace, ref = look.workspace, None
    if look.has_entry and not dry:
        ref = forget_worktree(
            site.repo,
            look.path,
            task=workspace.task,
            epoch=workspace.epoch,
            allowed=lambda: refuse_taken(site, workspace),
        )
    saved = Salvage(ref=ref, commit=None, archive=None, files=())
    if not dry:
        note_saved(site, workspace, saved)
        _to_gone(site, workspace, why="the directory is gone")
    fate = Fate.FORGOTTEN if look.has_entry else Fate.GONE
    return Outcome(look=look, fate=fate, why="; ".join(look.reasons), saved=saved)


def _heal(site: Site, workspace: Workspace) -> None:
    leases = site.lessor.leases.leases(task=workspace.task)
    label = next((lease.label for lease in leases if lease.epoch == workspace.epoch), "")
    heal_worktree(
        site.repo,
        Path(workspace.path),
        branch=workspace.branch,
        base=workspace.base,
        reason=label or f"task={workspace.task}",
        allowed=lambda: refuse_taken(site, workspace),
    )


def _to_gone(site: Site, workspace: Workspace, *, why: str) -> None:
    with suppress(TransitionRefusedError):  # another one was first
        text = kept_text(why, most=LONGEST_WHY)
        site.lessor.workspaces.move(workspace, WorkspaceState.GONE, why=text)
