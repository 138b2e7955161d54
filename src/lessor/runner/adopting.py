"""Going on in the worktree that an earlier epoch left, by hand: what a run does for its agents."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lessor.errors import ConflictError, NotFoundError, WorktreeError
from lessor.git.worktree import heal_worktree, relock_worktree, resume_removals
from lessor.model.lease import Holder
from lessor.model.workspace import Workspace
from lessor.runner.host import Presence
from lessor.runner.salvaging import note_saved, save
from lessor.runner.site import Site
from lessor.runner.witness import workspace_presence


def adopt_left(site: Site, holder: Holder, left: Sequence[Workspace], *, label: str) -> Workspace:
    """Take over the newest of a task's workspaces for the live holder of its lease.

    What it holds is saved first, and half a worktree is made whole. Said again, it is the same one.

    Args:
        site: the repository on this host.
        holder: of the task's live lease.
        left: the task's workspaces on this host, oldest first.
        label: the lease's.

    Raises:
        LeaseLostError: the caller isn't the live holder.
        ConflictError: somebody may still work in it.
        NotFoundError: none has a directory.
        GitError: it can't be saved or made whole.
    """
    resume_removals(site.repo)  # one that began before the claim ends first
    there = [workspace for workspace in left if Path(workspace.path).is_dir()]
    if not there:
        raise NotFoundError(
            "No earlier worktree of this task is there any more.",
            next_step="See what was saved of them: lessor salvage list.",
        )
    newest = there[-1]
    if newest.epoch == holder.epoch:
        return newest
    sighting = workspace_presence(site, newest)
    if sighting.presence is not Presence.GONE:
        raise ConflictError(
            f"Somebody may still work in {newest.path}: {sighting.reason}.",
            next_step="End that first; or work on the branch in a worktree of your own.",
            path=newest.path,
        )
    path = Path(newest.path)
    with suppress(WorktreeError):  # it is whole
        heal_worktree(site.repo, path, branch=newest.branch, base=newest.base, reason=label)
    saved = save(site, newest)
    if saved is not None:
        note_saved(site, newest, saved)
    relock_worktree(site.repo, path, reason=label)
    site.lessor.workspaces.adopt(holder, newest.id)
    return site.lessor.workspaces.get(newest.id)
