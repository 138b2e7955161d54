"""Leases that ran out: ended under the repository's lock, their tasks moved by the recovery rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from lessor.model.lease import LeaseEnd, LeaseKind
from lessor.model.lifecycle import TaskEvent, TaskState, is_terminal, next_state
from lessor.model.recovery import EndedLease, RecoveryRule, decide_recovery, is_charged
from lessor.model.task import AD_HOC, Effects
from lessor.service.rows import FreedRow, LapsedRow, LockedRow, pack, pack_facts
from lessor.service.shadows import cast_left
from lessor.store import Transaction

REWOUND = "rewound"
"""What stands in a live lease's `proof` when the store was restored or promoted: no proof of a death."""


def end_lapsed(tx: Transaction, rows: Sequence[LapsedRow]) -> list[int]:
    """End leases that this transaction found run out and locked; the tasks' rows.

    A lease whose holder is proved gone (`proof`) spends no attempt, nor does one of a store that was
    rewound. A hold, a reserved turn or a shadow frees its paths, and its task stays where it is; a
    hold leaves a shadow where there are commits.
    """
    leases = [row for row in rows if row.kind == LeaseKind.LEASE]
    beside = [row for row in rows if row.kind != LeaseKind.LEASE]
    at_ms = max(row.now for row in rows)
    ends = [*(_end(row) for row in leases), *(_plain_end(row) for row in beside)]
    tx.rows("end_leases", rows=pack(ends), at_ms=at_ms)
    left = cast_left(
        tx, [row.lease_id for row in beside if row.kind == LeaseKind.HOLD], at_ms=at_ms
    )
    freed = [FreedRow(row.lease_id, row.task_id, row.epoch, row.kind, at_ms) for row in beside]
    tell_freed(tx, freed, reason=LeaseEnd.LAPSED, left=left)
    return [row.task_id for row in leases]


def tell_freed(
    tx: Transaction, rows: Sequence[FreedRow], *, reason: LeaseEnd, left: Collection[int] = ()
) -> None:
    """Record that paths were freed which a hold, a reserved turn or a shadow kept for a task.

    Where the task's own event of that moment says so (it was claimed, cancelled, blocked or
    amended), there is no other.

    Args:
        left: the holds that left a shadow.
    """
    if rows:
        told = [
            {
                "lease_id": row.lease_id,
                "task_id": row.task_id,
                "epoch": row.epoch,
                "facts": pack_facts(
                    kind=row.kind,
                    reason=reason,
                    **({"left": LeaseKind.SHADOW} if row.lease_id in left else {}),
                ),
            }
            for row in rows
        ]
        tx.rows("tell_freed", rows=pack(told), at_ms=max(row.ended_ms for row in rows))


def _end(row: LapsedRow) -> dict[str, Any]:
    reason = _reason(row.proof)
    proof = row.proof if reason is LeaseEnd.GONE else None
    rule = decide_recovery(ended_lease(row, end=reason))
    facts = {"expired_ms": row.expires_ms, "proof": proof}
    return end_row(row, reason=reason, rule=rule, now=row.now, proof=proof, facts=facts)


def _reason(proof: str | None) -> LeaseEnd:
    if proof == REWOUND:
        return LeaseEnd.REWOUND
    return LeaseEnd.GONE if proof else LeaseEnd.LAPSED


def ended_lease(
    row: LapsedRow | LockedRow,
    *,
    end: LeaseEnd,
    same_errors: int = 0,
    same_limit: int = 3,
    credential: bool = False,
) -> EndedLease:
    """The facts that the recovery rules are applied to."""
    return EndedLease(
        end=end,
        effects=Effects(row.effects),
        charged=row.charged + is_charged(end),
        max_attempts=row.max_attempts,
        same_errors=same_errors,
        same_error_limit=same_limit,
        idempotency_key=bool(row.keyed),
        ad_hoc=row.queue == AD_HOC,
        credential_missing=credential,
        unsettled_unsafe=bool(row.unsettled),
    )


def end_row(
    row: LapsedRow | LockedRow,
    *,
    reason: LeaseEnd,
    rule: RecoveryRule,
    now: int,
    delay_ms: int = 0,
    proof: str | None = None,
    digest: str | None = None,
    result: str | None = None,
    error_print: str | None = None,
    same_errors: int | None = None,
    facts: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One row for end_leases: the lease's end and its task's move, as the rule says.

    None for `error_print` and `same_errors` leaves what the last failure wrote.
    """
    state = next_state(TaskState(row.status or ""), rule.event)
    return {
        "lease_id": row.lease_id,
        "task_id": row.task_id,
        "reason": reason,
        "digest": digest,
        "result": result,
        "proof": proof,
        **move_to(state, now=now, delay_ms=delay_ms),
        "charge": int(is_charged(reason)),
        "error_print": error_print,
        "same_errors": same_errors,
        "kind": reason,
        "facts": pack_facts(rule=rule.name, state=state, **(facts or {})),
    }


def move_to(state: TaskState, *, now: int, delay_ms: int = 0) -> dict[str, Any]:
    """The columns that a task's move to `state` sets."""
    queued = state is TaskState.QUEUED
    return {
        "moves": 1,
        "status": state,
        "due": int(delay_ms <= 0) if queued else None,
        "run_at_ms": now + delay_ms if queued else None,
        "queued_ms": now if queued else None,
        "finished_ms": now if is_terminal(state) else None,
    }


def _plain_end(row: LapsedRow) -> dict[str, Any]:
    return {
        "lease_id": row.lease_id,
        "task_id": row.task_id,
        "reason": LeaseEnd.LAPSED,
        "moves": 0,
        "charge": 0,
    }


def forced_rule(event: TaskEvent, name: str, why: str) -> RecoveryRule:
    """A rule for an end that a person or the holder decided, outside the table."""
    return RecoveryRule(name=name, applies=lambda _: True, event=event, why=why)
