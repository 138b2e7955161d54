"""Renewal: compare-and-swap on the lease's version, never past the longest hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import TTL, Yard, zombie
from lessor.clock import ManualClock
from lessor.errors import LeaseLostError
from lessor.model.grant import Reach


def test_a_renewal_starts_the_term_anew(yard: Yard) -> None:
    grant = yard.running("a")
    yard.store.advance(20_000)
    renewed = yard.lessor.leases.renew_one(grant.holder)
    assert (renewed.version, renewed.ttl_ms) == (2, TTL)
    assert renewed.expires_ms == grant.expires_ms + 20_000
    assert not renewed.last


def test_a_renewal_of_another_version_is_refused(yard: Yard) -> None:
    grant = yard.running("a")
    yard.lessor.leases.renew_one(grant.holder)
    for version in (1, 3):
        error = yard.refused(
            lambda v=version: yard.lessor.leases.renew_one(replace(grant.holder, version=v))
        )
        assert error.code == "lease_lost"
        assert "changed meanwhile" in str(error)
    renewed = yard.lessor.leases.renew_one(replace(grant.holder, version=2))
    assert renewed.version == 3


def test_a_repeated_renewal_gets_the_same_version_and_what_is_left(yard: Yard) -> None:
    grant = yard.running("a")
    first = yard.lessor.leases.renew_one(grant.holder, request_id="r1")
    yard.store.advance(5_000)
    again = yard.lessor.leases.renew_one(grant.holder, request_id="r1")
    assert (again.version, again.expires_ms) == (first.version, first.expires_ms)
    assert again.ttl_ms == first.ttl_ms - 5_000


def test_a_repeat_after_the_deadline_is_refused(yard: Yard) -> None:
    grant = yard.running("a")
    yard.lessor.leases.renew_one(grant.holder, request_id="r1")
    yard.store.advance(TTL)
    assert (
        yard.refused(lambda: yard.lessor.leases.renew_one(grant.holder, request_id="r1")).code
        == "lease_lost"
    )


def test_renewals_end_at_the_longest_hold(yard: Yard) -> None:
    yard.add("long")
    grant = yard.claim_one(max_hold_ms=TTL + 30_000)
    holder = grant.holder
    yard.store.advance(50_000)
    renewed = yard.lessor.leases.renew_one(holder)
    assert renewed.last
    assert renewed.expires_ms == grant.max_until_ms == grant.granted_ms + TTL + 30_000
    yard.store.advance(30_000)
    again = yard.lessor.leases.renew_one(replace(holder, version=2))
    assert again.last
    assert again.ttl_ms == 10_000
    yard.store.advance(10_000)
    assert (
        yard.refused(lambda: yard.lessor.leases.renew_one(replace(holder, version=3))).code
        == "lease_lost"
    )


@pytest.mark.parametrize("free", [False, True])
def test_without_progress_the_term_is_fixed(yard: Yard, free: bool) -> None:
    yard.add("opaque", progress=False, free=free)
    (grant,) = yard.claim(repository=Reach.NO_REPOSITORY) if free else yard.claim()
    assert not grant.progress
    assert grant.max_until_ms == grant.expires_ms
    yard.store.advance(30_000)
    renewed = yard.lessor.leases.renew_one(grant.holder)
    assert (renewed.expires_ms, renewed.last) == (grant.expires_ms, True)
    yard.store.advance(30_000)
    assert (
        yard.refused(lambda: yard.lessor.leases.renew_one(replace(grant.holder, version=2))).code
        == "lease_lost"
    )


def test_a_shorter_term_never_shortens_a_lease(yard: Yard) -> None:
    grant = yard.running("a")
    yard.store.sql("UPDATE lease SET ttl_ms = 1000 WHERE ended_ms IS NULL")
    assert yard.lessor.leases.renew_one(grant.holder).expires_ms == grant.expires_ms


@pytest.mark.parametrize("part", ["token", "worker", "epoch"])
def test_only_the_holder_renews(yard: Yard, part: str) -> None:
    grant = yard.running("a")
    wrong = {"token": "f" * 64, "worker": yard.other.id, "epoch": grant.epoch + 1}[part]
    error = yard.refused(
        lambda: yard.lessor.leases.renew_one(zombie(grant.holder, **{part: wrong}))
    )
    assert error.code == "lease_lost"


def test_a_list_is_answered_item_by_item(yard: Yard) -> None:
    good, bad = yard.running("a"), yard.running("b")
    answers = yard.lessor.leases.renew([good.holder, zombie(bad.holder, token="0" * 64)])
    assert answers[0].version == 2
    assert isinstance(answers[1], LeaseLostError)
    assert yard.lessor.leases.renew([]) == []


def test_a_list_that_names_a_lease_twice_is_answered_in_turn(yard: Yard) -> None:
    """A batch may hold a request and its own retry, or two that race."""
    holder = yard.running("a").holder
    first, second = yard.lessor.leases.renew([holder, holder], request_id="r1")
    assert (first.version, second.version) == (2, 2)
    holder = replace(holder, version=2)
    first, second = yard.lessor.leases.renew([holder, replace(holder, version=3)])
    assert (first.version, second.version) == (3, 4)


def test_a_refusal_names_who_holds_it_now(yard: Yard) -> None:
    old = yard.running("a")
    yard.store.advance(TTL)
    new = yard.claim_one(worker=yard.other.id)
    yard.store.advance(10_000)
    error = yard.refused(lambda: yard.lessor.leases.renew_one(old.holder))
    facts = error.facts
    assert (facts["epoch"], facts["current_epoch"]) == (1, 2)
    assert facts["current_holder"] == "codex-1"
    assert facts["current_lease"] == new.lease
    assert facts["ttl_ms"] == TTL - 10_000
    assert facts["end_reason"] == "lapsed"
    assert "codex-1 holds it now at epoch 2 for 50 s more" in str(error)
    assert error.next_step


def test_nobody_is_told_of_more_than_a_term_when_the_clock_was_put_back(yard: Yard) -> None:
    """Put forward again it ends the lease when it would have; a holder would believe in it for longer."""
    yard.add(scopes=("a",))
    request = yard.request()
    (grant,) = yard.lessor.leases.claim(request)
    assert isinstance(yard.store.clock, ManualClock)
    yard.store.clock.step_wall(-30_000)
    if yard.store.kind == "postgres":
        yard.store.sql("UPDATE test_clock SET now_ms = now_ms - 30000")
    later = yard.store.connect()
    (again,) = later.leases.claim(request)
    assert again.ttl_ms == TTL
    for _ in range(2):
        assert later.leases.renew_one(grant.holder, request_id="r1").ttl_ms == TTL
