"""The half-open interval: live means `now < expires_ms`, for everybody, at the very millisecond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders import TTL, Yard
from lessor.model.grant import Failure, Grant, Reach, Result

WRITES: dict[str, Callable[[Yard, Grant], object]] = {
    "renew": lambda yard, grant: yard.lessor.leases.renew_one(grant.holder),
    "complete": lambda yard, grant: yard.complete(grant),
    "fail": lambda yard, grant: yard.fail(grant),
    "release": lambda yard, grant: yard.lessor.leases.release(grant.holder),
    "ask": lambda yard, grant: yard.lessor.leases.ask(grant.holder, "which one?"),
    "widen": lambda yard, grant: yard.lessor.leases.widen(grant.holder, ["extra"]),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_millisecond_before_the_deadline_a_holder_may_write(yard: Yard, write: str) -> None:
    grant = yard.running("a")
    yard.store.advance(TTL - 1)
    WRITES[write](yard, grant)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("late", [0, 1])
def test_from_the_deadline_on_a_holder_may_not_write(yard: Yard, write: str, late: int) -> None:
    grant = yard.running("a")
    yard.store.advance(TTL + late)
    before = yard.store.contents(without=("task", "event", "late_result"))
    error = yard.refused(lambda: WRITES[write](yard, grant))
    assert error.code == "lease_lost"
    assert "its time ran out" in str(error)
    # Nothing but the evidence of a late ending was written.
    assert yard.store.contents(without=("task", "event", "late_result")) == before
    assert yard.kinds(grant.task) == ["submitted", "claimed"] + ["late"] * (
        write not in {"renew", "widen"}
    )
    assert yard.state(grant.task) == "running"


@pytest.mark.parametrize("free", [False, True])
def test_a_claim_takes_over_exactly_at_the_deadline(yard: Yard, free: bool) -> None:
    task = yard.add("work", free=free)
    where = {"repository": Reach.NO_REPOSITORY} if free else {}
    yard.claim_one(**where)
    yard.store.advance(TTL - 1)
    assert yard.claim(**where) == []
    yard.store.advance(1)
    grant = yard.claim_one(**where)
    assert (grant.task, grant.epoch) == (task.task, 2)
    assert yard.kinds(task.task) == ["submitted", "claimed", "lapsed", "claimed"]


def test_a_lapse_costs_an_attempt_and_says_so(yard: Yard) -> None:
    grant = yard.running("a")
    yard.store.advance(TTL)
    (ended,) = yard.lessor.leases.sweep(repository=yard.repository.id)
    assert (ended.id, ended.end) == (grant.lease, "lapsed")
    task = yard.lessor.tasks.task(grant.task)
    assert (task.state, task.attempts, task.charged) == ("queued", 1, 1)
    entry = yard.lessor.tasks.history(grant.task)[-1]
    assert entry.facts["rule"] == "workspace"
    assert entry.facts["expired_ms"] == grant.expires_ms


def test_lapses_end_in_quarantine_when_the_attempts_are_spent(yard: Yard) -> None:
    task = yard.add("doomed", max_attempts=2)
    for _ in range(2):
        yard.claim_one()
        yard.store.advance(TTL)
    assert yard.claim() == []
    assert yard.state(task.task) == "quarantined"


@pytest.mark.parametrize(
    ("effects", "key", "state"),
    [
        ("read-only", None, "queued"),
        ("workspace", None, "queued"),
        ("idempotent", "pay-7", "queued"),
        ("idempotent", None, "reconciling"),
        ("brokered", None, "queued"),
        ("unsafe", None, "reconciling"),
        ("undeclared", None, "reconciling"),
    ],
)
def test_where_a_lapsed_task_goes_depends_on_what_it_may_have_done(
    yard: Yard, effects: str, key: str | None, state: str
) -> None:
    from lessor.model.task import Effects  # noqa: PLC0415

    task = yard.add("work", effects=Effects(effects), idempotency_key=key)
    yard.claim_one()
    yard.store.advance(TTL)
    yard.lessor.leases.sweep()
    assert yard.state(task.task) == state


def test_renewals_in_time_keep_a_lease_for_as_long_as_it_may_be_held(yard: Yard) -> None:
    grant = yard.running("a")
    holder = grant.holder
    for _ in range(19):
        yard.store.advance(TTL - 1)
        renewed = yard.lessor.leases.renew_one(holder)
        holder = replace(holder, version=renewed.version)
    assert yard.claim() == []
    yard.lessor.leases.complete_one(holder, Result(said="late but live"))
    assert yard.state(grant.task) == "succeeded"


def test_a_watch_sees_the_end_at_the_very_millisecond(yard: Yard) -> None:
    grant = yard.running("a")
    yard.store.advance(TTL - 1)
    seen = yard.lessor.leases.watch(grant.holder)
    assert (seen.live, seen.ttl_ms, seen.end) == (True, 1, None)
    yard.store.advance(1)
    seen = yard.lessor.leases.watch(grant.holder)
    assert (seen.live, seen.ttl_ms, seen.end) == (False, 0, None)
    yard.lessor.leases.sweep()
    assert yard.lessor.leases.watch(grant.holder).end == "lapsed"


def test_an_acknowledged_grant_never_comes_back_to_life(yard: Yard) -> None:
    """Whatever an old holder tries after its lease has ended, in whatever order."""
    grant = yard.running("a")
    yard.store.advance(TTL)
    new = yard.claim_one(worker=yard.other.id)
    for write in WRITES.values():
        assert yard.refused(lambda w=write: w(yard, grant)).code == "lease_lost"
    assert yard.lessor.leases.watch(new.holder).live
    yard.complete(new)
    for write in WRITES.values():
        assert yard.refused(lambda w=write: w(yard, grant)).code == "lease_lost"
    assert yard.state(grant.task) == "succeeded"


def test_the_clock_of_the_store_alone_decides(yard: Yard) -> None:
    """A caller's idea of time changes nothing: no operation takes an instant for a deadline."""
    grant = yard.running("a")
    assert grant.expires_ms == yard.lessor.now_ms() + TTL
    yard.fail(grant, error="x", result=Result(facts={"now": 1}))
    assert Failure(error="x").retry
    assert yard.lessor.leases.lease(grant.lease).ended_ms == yard.lessor.now_ms()
