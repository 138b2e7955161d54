"""Leasing paths without a queued task: one model for people, agents and queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from lessor.errors import ConflictError, LessorError, TransitionRefusedError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant, Reach
from lessor.model.scope import PathRules
from lessor.model.task import NewTask
from lessor.service import requests, submitting
from lessor.service.claims import Claims
from lessor.service.naming import Naming
from lessor.service.rows import LeaseRow, WaitRow
from lessor.service.scopes import conflicting, scope_held
from lessor.service.submitting import parse_task_scopes
from lessor.store import Transaction


def acquire(
    claims: Claims,
    naming: Naming,
    task: NewTask,
    rules: dict[int, PathRules],
    *,
    worker: str,
    ttl_ms: int | None,
    max_hold_ms: int | None,
    request_id: str,
    secret: str,
) -> Grant:
    """Make a checked ad-hoc task and claim it in the same transaction; what can't be had isn't waited for.

    Raises:
        ScopeHeldError: a live grant overlaps; nothing was made.
        ConflictError: it can't be had now for another reason.
    """
    wish = ClaimRequest(
        worker=worker,
        request_id=request_id or new_request_id(),
        secret=secret or new_token(),
        queue=task.queue,
        repository=task.repository or Reach.NO_REPOSITORY,
        ttl_ms=ttl_ms,
        max_hold_ms=max_hold_ms,
    )

    def make(tx: Transaction) -> int:
        made = submitting.submit(tx, naming, [task], submitter=worker, now=tx.now(), rules=rules)
        return naming.task_row(made[0].task)

    def refuse(tx: Transaction, row: int) -> LessorError:
        return _refusal(tx, naming, task, row, rules)

    return claims.acquire(
        wish, asked=requests.digest("acquire", asdict(task)), make=make, refuse=refuse
    )


def _refusal(
    tx: Transaction, naming: Naming, task: NewTask, row: int, rules: Mapping[int, PathRules]
) -> LessorError:
    """Why the task that was just made, or that has its unique key, can't be had now."""
    wait = WaitRow._make(tx.rows("task_wait", task_id=row)[0])
    if wait.status != "queued":
        return TransitionRefusedError(
            f"The task with this unique key is {wait.status} already.",
            next_step=f"See: lessor why {naming.task(row)}.",
            task=naming.task(row),
            state=wait.status,
        )
    if task.repository is not None:
        repository = naming.repository_row(task.repository)
        scopes = parse_task_scopes(task.scopes, task.reads, rules[repository])
        for mine, hit in conflicting(tx.rows, scopes, repository=repository, reserved=True):
            if hit.task_id != row:
                lease = LeaseRow._make(tx.rows("lease", lease_id=hit.lease_id)[0])
                return scope_held(naming, mine, hit.text, lease)
    return ConflictError(
        "It can't be had now: a limit, a pause, an agent or a need is in the way.",
        next_step="Add it as a task and claim it when its turn comes: lessor add.",
        queue=task.queue,
    )
