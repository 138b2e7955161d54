"""What a holder is told when its write is refused: who holds the task, how long, and what to do."""

from __future__ import annotations

from lessor.errors import LeaseLostError, NotFoundError
from lessor.model.lease import Holder, LeaseEnd
from lessor.service.naming import Naming
from lessor.service.rows import RefusalRow
from lessor.store import Store

_WHY = {
    LeaseEnd.LAPSED: "its time ran out",
    LeaseEnd.COMPLETED: "it was completed",
    LeaseEnd.FAILED: "it was reported failed",
    LeaseEnd.RELEASED: "it was released",
    LeaseEnd.ASKED: "it waits for a person",
    LeaseEnd.CANCELLED: "a person cancelled the task",
    LeaseEnd.GONE: "its process was proved gone",
    LeaseEnd.REWOUND: "the store was restored, and what it had granted is over",
    LeaseEnd.FORCED: "a person released it by force",
}


def lease_lost(
    store: Store,
    naming: Naming,
    holder: Holder,
    *,
    verb: str,
    mine: bool,
    end_reason: str | None,
    expired: bool,
) -> LeaseLostError:
    """The refusal of `verb`, with the facts of both sides.

    Raises:
        NotFoundError: there is no such task.
    """
    rows = [
        RefusalRow._make(row) for row in store.read("refusal", task_id=naming.task_row(holder.task))
    ]
    if not rows:
        raise NotFoundError(
            f"No task has the id {holder.task}.", next_step="List the tasks: lessor list."
        )
    now_held = rows[0]
    number = now_held.number
    why = _reason(mine=mine, end_reason=end_reason, expired=expired)
    next_step = f"Stop, and keep your work in its branch: lessor show {number}."
    if now_held.lease_id is not None and now_held.epoch != holder.epoch:
        left = max(0, (now_held.expires_ms or 0) - now_held.now)
        why += (
            f"; {now_held.agent} holds it now at epoch {now_held.epoch} for {left // 1000} s more"
        )
    return LeaseLostError(
        f"#{number} can't be {verb} at epoch {holder.epoch}: {why}.",
        next_step=next_step,
        task=holder.task,
        number=number,
        epoch=holder.epoch,
        worker=holder.worker,
        state=now_held.status,
        end_reason=end_reason or ("lapsed" if expired else ""),
        current_epoch=now_held.epoch,
        current_holder=now_held.agent or "",
        current_lease=naming.lease(now_held.lease_id) if now_held.lease_id else "",
        ttl_ms=max(0, now_held.expires_ms - now_held.now) if now_held.expires_ms else 0,
    )


def why_over(end: LeaseEnd | None) -> str:
    """Why a lease is over, in words; without an end its time ran out."""
    return _WHY[LeaseEnd.LAPSED] if end is None else _WHY.get(end, "it has ended")


def _reason(*, mine: bool, end_reason: str | None, expired: bool) -> str:
    if not mine:
        return "this worker and token don't hold it"
    if end_reason is not None:
        return _WHY.get(LeaseEnd(end_reason), "it has ended")
    return "its time ran out" if expired else "the lease changed meanwhile"
