"""Making a lease ready at the remote that its repository is fenced at.

In this order: the pushes of ended leases are recovered, the lease's own reference is announced and
made, those of ended leases are closed, and only then is the lease on record as ready. A try that
was cut short may still make its reference, at any time: the next one makes it with a value of its
own, and no push ever expects one that an unanswered try could bring back.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from lessor.errors import GitError, LeaseLostError, NotFoundError, TransitionRefusedError
from lessor.git.fence import (
    FENCES,
    close_fence,
    close_fences,
    fence_ref,
    fences_there,
    first_fence,
    open_anew,
    open_fence,
)
from lessor.ids import new_token
from lessor.model.lease import Holder
from lessor.publish.recovering import recover
from lessor.service.fences import FenceRef, FenceState
from lessor.service.lessor import Lessor


def make_ready(lessor: Lessor, cwd: Path, holder: Holder) -> FenceRef | None:
    """Fence the holder's lease at its repository's remote; None where that isn't fenced.

    Done again, it closes what has ended since and changes nothing else.

    Args:
        cwd: a directory of a clone.

    Raises:
        LeaseLostError: the lease is over.
        RemoteUnreachableError: the remote can't be asked; the lease isn't ready.
        GitError: the remote refuses; the lease isn't ready.
        TransitionRefusedError: another process of the holder is making it ready.
    """
    lease = lessor.leases.lease(holder.lease)
    if lease.repository is None:
        return None
    known = lessor.registry.repository(lease.repository)
    remote = known.fence_remote
    if remote is None:
        return None
    recover(lessor, cwd, lease.repository)
    once = new_token()[:16]
    oid = first_fence(cwd, lease=lease.id, once=once, label=lease.label, at_ms=lease.granted_ms)
    fence = lessor.fences.announce(holder, remote=remote, oid=oid)
    if known.term > 0:
        # Before those on record: the restored store may know an older value of one.
        _close_unknown(lessor, cwd, remote)
    closing = _ended(lessor, lease.repository, remote)
    if lease.id in closing:  # it ended since: the guard of another announcement says how
        lessor.fences.announce(holder, remote=remote, oid=oid)
    refs = {fence_ref(over): [oid] for over, oid in closing.items()}
    if fence.state is FenceState.OPEN:
        close_fences(cwd, remote, refs)
    elif not open_fence(cwd, remote, fence_ref(lease.id), fence.oid, closing=refs):
        _open_anew(lessor, cwd, holder, fence)
    lessor.fences.closed(list(closing), remote=remote)
    _close_all(lessor, cwd, lease.repository, remote)
    return _opened(lessor, cwd, holder, fence)


def close_ended(lessor: Lessor, cwd: Path, repository: str) -> bool:
    """Close the references of leases that have ended; whether all of them are closed.

    Whoever ends a lease calls it. What can't be closed now the next claim closes.
    """
    remote = lessor.registry.repository(repository).fence_remote
    places = {fence.remote for fence in lessor.fences.unclosed(repository)}
    for place in sorted(places | ({remote} if remote else set())):
        try:
            _close_all(lessor, cwd, repository, place)
        except GitError:
            if place == remote:
                return False
            continue  # fenced there once: nobody waits for it
    return True


def _close_all(lessor: Lessor, cwd: Path, repository: str, remote: str) -> None:
    """Close the references of all leases that have ended; more than are listed at once, too."""
    while closing := _ended(lessor, repository, remote):
        close_fences(cwd, remote, {fence_ref(over): [oid] for over, oid in closing.items()})
        lessor.fences.closed(list(closing), remote=remote)


def _ended(lessor: Lessor, repository: str, remote: str) -> dict[str, str]:
    return {fence.lease: fence.oid for fence in lessor.fences.unclosed(repository, remote=remote)}


def _open_anew(lessor: Lessor, cwd: Path, holder: Holder, fence: FenceRef) -> None:
    """Make the lease's reference where a try that was cut short has made it already."""

    def mine() -> bool:
        return lessor.fences.at(fence.lease, fence.remote) == fence

    if not open_anew(cwd, fence.remote, fence_ref(fence.lease), fence.oid, mine=mine):
        known = lessor.fences.at(fence.lease, fence.remote)
        if known is not None and known.state is FenceState.CLOSED:  # it ended: as in make_ready
            lessor.fences.announce(holder, remote=fence.remote, oid=fence.oid)
        raise TransitionRefusedError(
            f"Another process is making this lease ready at {fence.remote}.",
            next_step="Try again.",
            remote=fence.remote,
        )


def _opened(lessor: Lessor, cwd: Path, holder: Holder, fence: FenceRef) -> FenceRef:
    try:
        return lessor.fences.opened(holder, remote=fence.remote, oid=fence.oid)
    except LeaseLostError:
        # Whoever closed the references of ended leases may have come before this one was made.
        with suppress(GitError):
            close_fence(cwd, fence.remote, fence_ref(fence.lease), [fence.oid])
        raise


def _close_unknown(lessor: Lessor, cwd: Path, remote: str) -> None:
    """Close what leases left that a restored store has lost, or whose last values it has lost."""
    for ref in fences_there(cwd, remote):
        if _is_over(lessor, ref.removeprefix(FENCES)):
            close_fence(cwd, remote, ref, [])


def _is_over(lessor: Lessor, lease: str) -> bool:
    try:
        lessor.naming.lease_row(lease)
    except NotFoundError:
        return False  # another store's
    try:
        return lessor.leases.lease(lease).ended_ms is not None
    except NotFoundError:
        return True
