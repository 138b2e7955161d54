"""What an earlier run left behind on this host: proved gone, ended, kept."""

from __future__ import annotations

from contextlib import suppress

from lessor.errors import LessorError, NotFoundError, TransitionRefusedError
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.agent_store import forget_passwords
from lessor.runner.desk import Desk
from lessor.runner.host import Presence
from lessor.runner.lease_file import forget_holder, lease_file
from lessor.runner.left_tokens import forget_left
from lessor.runner.noting import NoteKind
from lessor.runner.salvaging import keep, move
from lessor.runner.witness import holder_presence, worker_presence
from lessor.service.reading import LeaseRecord

_UNSETTLED = frozenset({WorkspaceState.RESERVED, WorkspaceState.PRESENT})


def recover(desk: Desk) -> int:
    """End leases whose agents are proved gone, and salvage what they left; how many were found.

    A lease whose agent lives, or of which nothing is known, is left to its term: a supervisor that
    outlived its runner ends it by itself.
    """
    found = 0
    for lease in _live_here(desk):
        if _end_if_gone(desk, lease):
            _forget(desk, lease)
            found += 1
    for workspace in desk.lessor.workspaces.on_host(desk.host.id, repository=desk.repository):
        if workspace.state in _UNSETTLED:
            found += _settle(desk, workspace)
    _retire_dead(desk)
    forget_left(desk.lessor.leases, desk.tokens_dir, now_ms=desk.clock.wall_ms())
    return found


def _live_here(desk: Desk) -> list[LeaseRecord]:
    """Leases that haven't ended, of workers that registered on this host."""
    here = {worker.id for worker in desk.lessor.registry.workers(host_id=desk.host.id)}
    leases = desk.lessor.leases.leases(repository=desk.repository, live=True)
    return [lease for lease in leases if lease.worker in here]


def _retire_dead(desk: Desk) -> None:
    """Retire workers whose processes are gone: else tasks would seem to have somebody to do them."""
    registry, leases = desk.lessor.registry, desk.lessor.leases
    holders = {lease.worker for lease in leases.leases(live=True)}
    for worker in registry.workers(host_id=desk.host.id):
        dead = worker_presence(worker, desk.host).presence is Presence.GONE
        if worker.heartbeat and dead and worker.id not in holders:
            with suppress(NotFoundError):  # another run was first
                registry.retire_worker(worker.id)


def _end_if_gone(desk: Desk, lease: LeaseRecord) -> bool:
    sighting = holder_presence(desk, lease)
    if sighting.presence is not Presence.GONE:
        return False
    try:
        desk.lessor.leases.end_gone(lease.task, epoch=lease.epoch, proof=sighting.reason)
    except TransitionRefusedError:
        return False  # it ran out, or its supervisor was first
    _say(desk, lease, f"was running ({sighting.reason}); doesn't count as an attempt")
    return True


def _settle(desk: Desk, workspace: Workspace) -> bool:
    """Save what a workspace holds whose lease is over; whether there was something to settle."""
    lease = _lease_of(desk, workspace)
    known = Presence.GONE if lease is None else holder_presence(desk, lease).presence
    if known is Presence.ALIVE or (lease is not None and lease.live):
        return False  # its own runner keeps what it holds

    def tell(kind: NoteKind, text: str = "", /, **more: str | int) -> None:
        if lease is not None:
            more = {"number": lease.number, "title": lease.title, "task": lease.task, **more}
        desk.note(kind, text, epoch=workspace.epoch, **more)

    keep(desk, workspace, tell=tell)
    if known is Presence.GONE:
        move(desk, workspace, WorkspaceState.DIRTY, why="found after its run ended")
    if lease is not None:
        _forget(desk, lease)
    return True


def _forget(desk: Desk, lease: LeaseRecord) -> None:
    forget_holder(lease_file(desk.tokens_dir, lease.id))
    forget_passwords(desk, lease.id)


def _lease_of(desk: Desk, workspace: Workspace) -> LeaseRecord | None:
    with suppress(LessorError):
        for lease in desk.lessor.leases.leases(task=workspace.task):
            if lease.workspace == workspace.id and lease.epoch == workspace.epoch:
                return lease
    return None


def _say(desk: Desk, lease: LeaseRecord, text: str) -> None:
    desk.note(
        NoteKind.FOUND,
        text,
        number=lease.number,
        title=lease.title,
        epoch=lease.epoch,
        lease=lease.id,
        task=lease.task,
    )
