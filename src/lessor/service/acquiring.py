"""Leasing paths without a queued task: one model for people, agents and queues."""

from __future__ import annotations

from lessor.errors import ConflictError, ScopeHeldError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant, Reach
from lessor.model.task import NewTask
from lessor.service.claims import Claims
from lessor.service.tasks import Tasks

QUEUE = "ad-hoc"


def acquire(
    claims: Claims,
    tasks: Tasks,
    task: NewTask,
    *,
    worker: str,
    ttl_ms: int | None,
    max_hold_ms: int | None,
    request_id: str,
) -> Grant:
    """Make an ad-hoc task and claim it at once; what can't be had now isn't waited for.

    Raises:
        ScopeHeldError: a live grant overlaps; the task was cancelled again.
    """
    request = request_id or new_request_id()
    made = tasks.submit([task], submitter=worker, request_id=request)[0]
    wish = ClaimRequest(
        worker=worker,
        request_id=request + "-claim",
        secret=new_token(),
        queue=task.queue,
        repository=task.repository or Reach.NO_REPOSITORY,
        task=made.task,
        ttl_ms=ttl_ms,
        max_hold_ms=max_hold_ms,
    )
    grants = claims.claim(wish)
    if grants:
        return grants[0]
    why = tasks.why(made.task)
    tasks.cancel([made.task], actor=worker, reason="acquire was refused")
    if why.holder is None:
        raise ConflictError(why.sentence, next_step=why.next_step, task=made.task)
    left = max(0, why.holder.ends_ms - (why.at_ms or 0))
    own, theirs = why.overlaps[0] if why.overlaps else ("", "")
    raise ScopeHeldError(
        f"{own or 'The scope'} belongs to #{why.holder.number} ({why.holder.agent}).",
        next_step=f"See: lessor why {why.holder.number}.",
        path=own,
        held=theirs,
        lease=why.holder.lease,
        holder=why.holder.agent,
        task=why.holder.task,
        number=why.holder.number,
        epoch=why.holder.epoch,
        ttl_ms=left,
    )
