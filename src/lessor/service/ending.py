"""A holder's writes: renew, complete, fail, release, ask.

Each locks its lease rows, reads the clock after the last lock, and is guarded by task, epoch,
worker, token, version and expiry (of two clones of a holder, the one that renewed last is it).
None takes the repository's lock but the question, whose paths go over to a hold: scopes stay until
the next claim drains them, so that nothing is woken before the end is visible to everybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lessor.errors import LeaseLostError
from lessor.ids import Chance, new_request_id
from lessor.model.grant import Ended, Failure, Renewed
from lessor.model.lease import Holder, LeaseEnd, is_live, time_left
from lessor.model.lifecycle import TaskEvent, TaskState, next_state
from lessor.model.recovery import RecoveryRule, decide_recovery
from lessor.model.retry import RetryPolicy
from lessor.service.evidence import keep_late
from lessor.service.lapsing import end_row, ended_lease, forced_rule
from lessor.service.naming import Naming
from lessor.service.proof import guard, known_version
from lessor.service.refusing import lease_lost
from lessor.service.rows import LockedRow, RenewedRow, pack
from lessor.service.wording import check_name, check_several
from lessor.store import Store, Transaction

HOLD_MS = 4 * 3_600_000
MOST_ITEMS = 10_000
Item = TypeVar("Item")
Answer = TypeVar("Answer")


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
    request = check_name(request_id, "request id") if request_id else new_request_id()

    def once(several: Sequence[Holder]) -> list[Renewed | LeaseLostError]:
        rows = [
            {
                **guard(naming, holder, place),
                "version": known_version(holder),
                "request": request,
            }
            for place, holder in enumerate(several)
        ]
        found = store.once("renew_leases", rows=pack(rows))
        return [
            _renewal(store, naming, holder, RenewedRow._make(row), request=request)
            for holder, row in zip(several, found, strict=True)
        ]

    several = check_several(holders, "holders", most=MOST_ITEMS)
    for holder in several:
        guard(naming, holder)
    return in_turn(several, key=_claimed, once=once)


def _renewal(
    store: Store, naming: Naming, holder: Holder, row: RenewedRow, *, request: str
) -> Renewed | LeaseLostError:
    expired = row.expires_ms is not None and row.now >= row.expires_ms
    again = row.mine and row.ended_ms is None and not expired and row.renew_request == request
    if (
        (row.done or again)
        and row.lease_id is not None
        and row.expires_ms is not None
        and row.version is not None
        and row.ttl_ms is not None
    ):
        return Renewed(
            lease=naming.lease(row.lease_id),
            version=row.version,
            ttl_ms=time_left(now=row.now, expires_ms=row.expires_ms, ttl_ms=row.ttl_ms),
            expires_ms=row.expires_ms,
            last=row.expires_ms == row.max_until_ms,
        )
    return lease_lost(
        store,
        naming,
        holder,
        verb="renewed",
        mine=bool(row.mine),
        end_reason=row.end_reason,
        expired=expired,
    )


def in_turn(
    items: Sequence[Item],
    *,
    key: Callable[[Item], object],
    once: Callable[[Sequence[Item]], list[Answer]],
    first: Callable[[Sequence[Item]], list[Answer]] | None = None,
) -> list[Answer]:
    """Answer a list in one go; what names the same claim twice is answered as if it came later.

    A batch may hold a request and its own retry.

    Args:
        first: what is done instead of `once` the first time, even for an empty list.
    """
    act = first or once
    if len(items) == 1:
        return act(items)
    answers: dict[int, Answer] = {}
    left = list(range(len(items)))
    while left or act is not once:
        firsts = list({key(items[place]): place for place in reversed(left)}.values())
        firsts.sort()
        answers.update(zip(firsts, act([items[place] for place in firsts]), strict=True))
        left = [place for place in left if place not in answers]
        act = once
    return [answers[place] for place in range(len(items))]


def _claimed(holder: Holder) -> tuple[str, int]:
    return holder.task, holder.epoch


def stop(
    store: Store,
    naming: Naming,
    holder: Holder,
    how: Stop,
    *,
    policy: RetryPolicy,
    chance: Chance,
    changed: Callable[[], None],
) -> Ended:
    """End a lease without a result; the recovery rules say where the task goes.

    Args:
        changed: called when something may have become ready.

    Raises:
        LeaseLostError: the caller isn't the live holder; what it reported is kept as evidence.
    """
    digest = digest_of(how.end, how.result)
    shown = guard(naming, holder)

    def rule(tx: Transaction) -> tuple[LockedRow, Ended | None]:
        if how.end is LeaseEnd.ASKED:
            tx.rows("lock_repository_of", task_id=shown["task_id"])
        row = LockedRow._make(tx.rows("lock_leases", rows=pack([shown]))[0])
        if row.lease_id is None or not row.mine or row.expires_ms is None:
            return row, None
        if row.ended_ms is not None and row.end_digest == digest:
            return row, _ended(naming, row, how, state=TaskState(row.status or ""), repeated=True)
        live = is_live(now=row.now, expires_ms=row.expires_ms, ended_ms=row.ended_ms)
        if not live or row.version != known_version(holder):
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
        keep_late(
            store,
            naming,
            holder,
            verb=how.end,
            body=how.result,
            mine=bool(row.mine),
            error=error,
        )
        raise error
    changed()
    return ended


def digest_of(verb: str, body: str) -> str:
    """What a repeated ending has to match."""
    return hashlib.sha256(f"{verb}|{body}".encode()).hexdigest()


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
    fingerprint = None if failure is None else _fingerprint(failure)
    same = row.same_errors + 1 if fingerprint == row.error_print else 1
    rule = _rule(row, how, same=0 if failure is None else same, same_limit=policy.same_error_limit)
    retried = rule.event is TaskEvent.RETRY
    delay = (
        policy.delay_ms(row.charged + 1, chance=chance) if failure is not None and retried else 0
    )
    facts: dict[str, object] = {
        "error": failure.error if failure else None,
        "question": how.question or None,
    }
    if failure is not None and failure.credential:
        facts["credential"] = True  # a push that is looked at later decides anew, and by this
    if how.end is LeaseEnd.ASKED and row.repository_id:
        tx.batch(
            ("turn_repository", {"repository_id": row.repository_id}),
            ("put_hold", {"lease_id": row.lease_id, "ttl_ms": HOLD_MS, "at_ms": row.now}),
        )
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
                    error_print=fingerprint,
                    same_errors=None if failure is None else same,
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


def _fingerprint(failure: Failure) -> str:
    return hashlib.sha256((failure.fingerprint or failure.error).encode()).hexdigest()[:16]


def _rule(row: LockedRow, how: Stop, *, same: int, same_limit: int) -> RecoveryRule:
    if how.end is LeaseEnd.ASKED:
        return forced_rule(TaskEvent.ASK, "asked", "Only a person can answer.")
    if how.failure is not None and not how.failure.retry:
        return forced_rule(
            TaskEvent.FAIL, "failed for good", "The holder says that no attempt will help."
        )
    facts = ended_lease(
        row,
        end=how.end,
        same_errors=same,
        same_limit=same_limit,
        credential=bool(how.failure and how.failure.credential),
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
