"""Whether a workspace is somebody's now: asked under the lock of worktrees, before one is taken away.

A claim and a removal never meet: a removal looks at the store under the lock that every making of a
worktree takes, and a run passes through that lock between its claim and its first look.
"""

from __future__ import annotations

from lessor.errors import ConflictError
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.host import Presence
from lessor.runner.site import Site
from lessor.runner.witness import workspace_presence


def refuse_claimed(site: Site, workspace: Workspace) -> None:
    """Refuse to touch a workspace whose task somebody holds, or that was taken over since it was read.

    Raises:
        ConflictError: who.
    """
    _unclaimed(site, workspace)


def refuse_taken(site: Site, workspace: Workspace, *, unknown: bool = False) -> None:
    """The same, and one in which a process may still work.

    Args:
        site: the repository on this host.
        workspace: as it was read.
        unknown: refuse too where nobody can tell whether one does.

    Raises:
        ConflictError: who.
    """
    sighting = workspace_presence(site, _unclaimed(site, workspace))
    gone = sighting.presence is Presence.GONE
    if not gone and (unknown or sighting.presence is Presence.ALIVE):
        raise ConflictError(
            f"Somebody may work in {workspace.path}: {sighting.reason}.",
            next_step="Look at it: lessor workspace list.",
            path=workspace.path,
        )


def _unclaimed(site: Site, workspace: Workspace) -> Workspace:
    """The workspace as it is on record now, where nobody holds its task."""
    now = site.lessor.workspaces.get(workspace.id)
    if now.epoch != workspace.epoch or now.state is WorkspaceState.GONE:
        raise ConflictError(
            f"{workspace.path} was taken over or removed meanwhile.",
            next_step="Look again: lessor workspace list.",
            path=workspace.path,
        )
    for lease in site.lessor.leases.leases(task=workspace.task, live=True):
        if lease.kind == "lease":
            raise ConflictError(
                f"{lease.agent} works on #{lease.number} now.",
                next_step=f"Wait for its end, or stop it: lessor cancel {lease.number}.",
                path=workspace.path,
                holder=lease.agent,
                number=lease.number,
            )
    return now
