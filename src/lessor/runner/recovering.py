"""What an earlier run left behind on this host: proved gone, ended, kept."""

from __future__ import annotations

from contextlib import suppress

from lessor.errors import GitError, TransitionRefusedError
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.desk import Desk
from lessor.runner.host import Presence
from lessor.runner.noting import NoteKind
from lessor.runner.witness import agent_presence
from lessor.runner.workplace import Workplace
from lessor.service.reading import LeaseRecord

_UNSETTLED = frozenset({WorkspaceState.RESERVED, WorkspaceState.PRESENT})


def recover(desk: Desk) -> int:
    """End leases whose agents are proved gone, and salvage what they left; how many were found.

    A lease whose agent lives, or of which nothing is known, is left to its term: a supervisor that
    outlived its runner ends it by itself.
    """
    found = 0
    for workspace in desk.lessor.workspaces.on_host(desk.host.id, repository=desk.repository):
        if workspace.state in _UNSETTLED and _settle(desk, workspace):
            found += 1
    return found


def _settle(desk: Desk, workspace: Workspace) -> bool:
    lease = _lease_of(desk, workspace)
    if lease is not None and lease.ended_ms is None and not _end_if_gone(desk, lease):
        return False
    with suppress(GitError):  # what can't be read now stays where it is, for the next look
        Workplace(desk, tell=desk.note).keep(workspace)
    desk.lessor.workspaces.move(workspace, WorkspaceState.DIRTY, why="found after a crash")
    return True


def _lease_of(desk: Desk, workspace: Workspace) -> LeaseRecord | None:
    leases = desk.lessor.leases.leases(task=workspace.task)
    return next(
        (
            lease
            for lease in leases
            if lease.workspace == workspace.id and lease.epoch == workspace.epoch
        ),
        None,
    )


def _end_if_gone(desk: Desk, lease: LeaseRecord) -> bool:
    sighting = agent_presence(desk.run_dir(lease.id), desk.host)
    if sighting.presence is not Presence.GONE:
        return not lease.live
    with suppress(TransitionRefusedError):
        desk.lessor.leases.end_gone(lease.task, epoch=lease.epoch, proof=sighting.reason)
    desk.note(
        NoteKind.FOUND,
        f"was running ({sighting.reason})",
        number=lease.number,
        title=lease.title,
        epoch=lease.epoch,
        task=lease.task,
    )
    return True
