"""A holder's writes: renew, complete, fail, release, ask.

Each locks its lease rows, reads the clock after the last lock, and is guarded by task, epoch,
worker, token and expiry. None takes the repository's lock: scopes stay until the next claim drains
them, so that nothing is woken before the end is visible to everybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from lessor.errors import LeaseLostError
from lessor.ids import Chance, new_request_id, token_hash
from lessor.model.grant import Ended, Failure, Renewed, Result
from lessor.model.lease import Holder, LeaseEnd, is_live
from lessor.model.lifecycle import TaskEvent, TaskState, next_state
from lessor.model.recovery import RecoveryRule, decide_recovery
from lessor.model.retry import RetryPolicy
from lessor.service.lapsing import end_row, ended_lease, forced_rule
from lessor.service.naming import Naming
from lessor.service.refusing import keep_late, lease_lost
from lessor.service.results import pack_result
from lessor.service.rows import CompletedRow, LockedRow, RenewedRow, pack, pack_facts
from lessor.store import Store, Transaction

HOLD_MS = 4 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """How a holder ends its lease without a result.

    Attributes:
        verb: for the refusal: "failed", "released", "handed to a person".
        result: packed, kept with the lease.
    """

    end: LeaseEnd
    verb: str
    result: str
    failure: Failure | None = None
    question: str = ""


def renew(
    store: Store, naming: Naming, holders: Sequence[Holder], *, request_id: str = ""
) -> list[Renewed | LeaseLostError]:
    """Renew each lease for another term; refused ones are answered in their place.

    A repeat with the same `request_id` gets the first answer's version with the term that is left.
    """
    request = request_id or new_request_id()
    rows = [
        {**_guard(naming, h, place), "version": h.version, "request": request}
        for place, h in enumerate(holders)
    ]
    answers: list[Renewed | LeaseLostError] = []
    for holder, raw in zip(holders, store.once("renew_leases", rows=pack(rows)), strict=True):
        row = RenewedRow._make(raw)
        again = row.mine and row.ended_ms is None and row.renew_request == request
        if (
            (row.done or again)
            and row.lease_id is not None
            and row.expires_ms is not None
            and row.version is not None
        ):
            answers.append(
                Renewed(
                    lease=naming.lease(row.lease_id),
                    version=row.version,
                    ttl_ms=max(0, row.expires_ms - row.now),
                    expires_ms=row.expires_ms,
                    last=row.expires_ms == row.max_until_ms,
                )
            )
        else:
            expired = row.expires_ms is not None and row.now >= row.expires_ms
            answers.append(
                lease_lost(
                    store,
                    naming,
                    holder,
                    verb="renewed",
                    mine=bool(row.mine),
                    end_reason=row.end_reason,
                    expired=expired,
                )
            )
    return answers


def complete(
    store: Store, naming: Naming, items: Sequence[tuple[Holder, Result]]
) -> list[Ended | LeaseLostError]:
    """End each lease with its result; a refused result is kept as evidence."""
    answers = store.once("complete_leases", **completion(naming, items))
    return read_completions(store, naming, items, [CompletedRow._make(row) for row in answers])


def completion(naming: Naming, items: Sequence[tuple[Holder, Result]]) -> dict[str, str]:
    """The values of complete_leases for `items`."""
    rows = []
    for place, (holder, result) in enumerate(items):
        packed = pack_result(result)
        rows.append(
            {
                **_guard(naming, holder, place),
                "digest": digest_of("complete", packed),
                "result": packed,
                "stage": result.stage,
                "facts": pack_facts(stage=result.stage, commit=result.commit, worker=holder.worker),
            }
        )
    return {"rows": pack(rows), "status": next_state(TaskState.RUNNING, TaskEvent.COMPLETE)}


def read_completions(
    store: Store,
    naming: Naming,
    items: Sequence[tuple[Holder, Result]],
    rows: Sequence[CompletedRow],
) -> list[Ended | LeaseLostError]:
    """What complete_leases answered, item by item; late results are written down here."""
    answers: list[Ended | LeaseLostError] = []
    for (holder, result), row in zip(items, rows, strict=True):
        packed = pack_result(result)
        repeated = bool(row.mine) and row.end_digest == digest_of("complete", packed)
        if row.lease_id is not None and (row.done or repeated):
            answers.append(
                Ended(
                    lease=naming.lease(row.lease_id),
                    task=naming.task(naming.task_row(holder.task)),
                    end=LeaseEnd.COMPLETED,
                    state=TaskState.SUCCEEDED,
                    repeated=not row.done,
                )
            )
            continue
        expired = row.expires_ms is not None and row.now >= row.expires_ms
        error = lease_lost(
            store,
            naming,
            holder,
            verb="completed",
            mine=bool(row.mine),
            end_reason=row.end_reason,
            expired=expired,
        )
        keep_late(store, naming, holder, verb="complete", body=packed, error=error)
        answers.append(error)
    if any(row.wakes for row in rows):
        store.notify()
    return answers


def stop(
    store: Store,
    naming: Naming,
    holder: Holder,
    how: Stop,
    *,
    policy: RetryPolicy,
    chance: Chance,
) -> Ended:
    """End a lease without a result; the recovery rules say where the task goes.

    Raises:
        LeaseLostError: the caller isn't the live holder; what it reported is kept as evidence.
    """
    digest = digest_of(how.end, how.result)

    def rule(tx: Transaction) -> tuple[LockedRow, Ended | None]:
        row = LockedRow._make(tx.rows("lock_leases", rows=pack([_guard(naming, holder, 0)]))[0])
        if row.lease_id is None or not row.mine or row.expires_ms is None:
            return row, None
        if row.ended_ms is not None and row.end_digest == digest:
            return row, _ended(naming, row, how, state=TaskState(row.status or ""), repeated=True)
        if not is_live(now=row.now, expires_ms=row.expires_ms, ended_ms=row.ended_ms):
            return row, None
        return row, _stop(
            tx, naming, row, how, digest=digest, policy=policy, chance=chance.random()
        )

    row, ended = store.write(rule)
    if ended is None:
        expired = row.expires_ms is not None and row.now >= row.expires_ms
        error = lease_lost(
            store,
            naming,
            holder,
            verb=how.verb,
            mine=bool(row.mine),
            end_reason=row.end_reason,
            expired=expired,
        )
        keep_late(store, naming, holder, verb=how.end, body=how.result, error=error)
        raise error
    store.notify()
    return ended


def digest_of(verb: str, body: str) -> str:
    """What a repeated ending has to match."""
    return hashlib.sha256(f"{verb}|{body}".encode()).hexdigest()


def _guard(naming: Naming, holder: Holder, place: int) -> dict[str, object]:
    return {
        "ord": place,
        "task_id": naming.task_row(holder.task),
        "epoch": holder.epoch,
        "worker_id": naming.worker_row(holder.worker),
        "token_hash": token_hash(holder.token),
    }


def _stop(
    tx: Transaction,
    naming: Naming,
    row: LockedRow,
    how: Stop,
    *,
    digest: str,
    policy: RetryPolicy,
    chance: float,
) -> Ended:
    failure = how.failure
    fingerprint = (
        ""
        if failure is None
        else hashlib.sha256((failure.fingerprint or failure.error).encode()).hexdigest()[:16]
    )
    same = 0 if failure is None else (row.same_errors + 1 if row.error_print == fingerprint else 1)
    rule = _rule(row, how, same=same, same_limit=policy.same_error_limit)
    retried = rule.event is TaskEvent.RETRY
    delay = (
        policy.delay_ms(row.charged + 1, chance=chance) if failure is not None and retried else 0
    )
    facts = {"error": failure.error if failure else None, "question": how.question or None}
    if how.end is LeaseEnd.ASKED and row.repository_id:
        tx.rows("put_hold", lease_id=row.lease_id, ttl_ms=HOLD_MS, at_ms=row.now)
    tx.rows(
        "end_leases",
        rows=pack(
            [
                end_row(
                    row,
                    reason=how.end,
                    rule=rule,
                    now=row.now,
                    delay_ms=delay,
                    digest=digest,
                    result=how.result,
                    error_print=fingerprint or None,
                    same_errors=same,
                    facts=facts,
                )
            ]
        ),
        at_ms=row.now,
    )
    state = next_state(TaskState(row.status or ""), rule.event)
    return _ended(
        naming,
        row,
        how,
        state=state,
        rule=rule.name,
        run_at_ms=row.now + delay if retried else None,
    )


def _rule(row: LockedRow, how: Stop, *, same: int, same_limit: int) -> RecoveryRule:
    if how.end is LeaseEnd.ASKED:
        return forced_rule(TaskEvent.ASK, "asked", "Only a person can answer.")
    if how.failure is not None and not how.failure.retry:
        return forced_rule(
            TaskEvent.FAIL, "failed for good", "The holder says that no attempt will help."
        )
    facts = ended_lease(
        row, end=how.end, same_errors=same, same_limit=same_limit, credential=bool(how.failure and how.failure.credential)
    )
    return decide_recovery(facts)


def _ended(
    naming: Naming,
    row: LockedRow,
    how: Stop,
    *,
    state: TaskState,
    repeated: bool = False,
    rule: str = "",
    run_at_ms: int | None = None,
) -> Ended:
    return Ended(
        lease=naming.lease(row.lease_id or 0),
        task=naming.task(row.task_id),
        end=how.end,
        state=state,
        repeated=repeated,
        rule=rule,
        run_at_ms=run_at_ms,
    )
