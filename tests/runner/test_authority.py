"""A holder's belief: it ends before the lease can, and nothing late brings it back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessor.clock import ManualClock
from lessor.errors import TermsInvalidError
from lessor.model.lease import LeaseTerms
from lessor.runner.authority import Authority, Standing

TERMS = LeaseTerms(ttl_ms=300_000, margin_ms=15_000, renew_every_ms=100_000)


@pytest.fixture
def clock():
    started = ManualClock()
    started.advance(1_000_000)
    return started


@pytest.fixture
def held(clock):
    return Authority(TERMS, clock=clock, version=1, sent_ms=clock.boottime_ms(), phase=0.3)


def test_belief_ends_a_margin_before_the_lease_counted_from_the_send(clock):
    sent = clock.boottime_ms()
    clock.advance(40_000)  # the answer took its time
    authority = Authority(TERMS, clock=clock, version=1, sent_ms=sent, phase=0.3)
    assert authority.left_ms() == 245_000
    clock.advance(244_999)
    assert authority.judge() is Standing.HELD
    clock.advance(1)
    assert authority.judge() is Standing.FROZEN
    assert authority.left_ms() == 0


def test_a_claim_from_the_future_is_refused(clock):
    with pytest.raises(TermsInvalidError):
        Authority(TERMS, clock=clock, version=1, sent_ms=clock.boottime_ms() + 1, phase=0.3)


def test_a_confirmed_renewal_counts_from_its_own_send(held, clock):
    clock.advance(100_000)
    sent = held.sending()
    clock.advance(20_000)
    assert held.confirmed(sent_ms=sent, version=2, ttl_ms=300_000)
    assert held.left_ms() == 265_000
    assert held.version == 2


def test_an_answer_of_an_older_version_is_ignored(held, clock):
    first = held.sending()
    clock.advance(50_000)
    second = held.sending()
    held.confirmed(sent_ms=second, version=3, ttl_ms=60_000)
    assert not held.confirmed(sent_ms=first, version=2, ttl_ms=900_000)
    assert (held.version, held.left_ms()) == (3, 45_000)


def test_a_newer_version_decides_also_when_it_shortens(held, clock):
    held.confirmed(sent_ms=held.sending(), version=2, ttl_ms=20_000)
    assert held.left_ms() == 5_000


def test_the_same_answer_twice_never_shortens(held, clock):
    sent = held.sending()
    held.confirmed(sent_ms=sent, version=2, ttl_ms=300_000)
    held.confirmed(sent_ms=sent, version=2, ttl_ms=30_000)
    assert held.left_ms() == 285_000


def test_a_passed_deadline_freezes_and_an_answer_thaws(held, clock):
    clock.advance(285_000)
    assert held.judge() is Standing.FROZEN
    assert held.until_renewal_ms() == 0
    assert held.confirmed(sent_ms=held.sending(), version=2, ttl_ms=300_000)
    assert held.judge() is Standing.HELD


def test_an_answer_that_is_itself_too_old_does_not_thaw(held, clock):
    sent = held.sending()
    clock.advance(285_000)
    assert held.judge() is Standing.FROZEN
    held.confirmed(sent_ms=sent, version=2, ttl_ms=300_000)
    assert held.judge() is Standing.FROZEN


def test_silence_for_the_margin_after_the_deadline_ends_it(held, clock):
    clock.advance(285_000)
    held.judge()
    clock.advance(14_999)
    assert held.judge() is Standing.FROZEN
    clock.advance(1)
    assert held.judge() is Standing.LOST
    assert "nobody answered" in held.loss


def test_after_a_night_asleep_there_is_still_time_to_ask(held, clock):
    clock.suspend(8 * 3_600_000)
    assert held.judge() is Standing.FROZEN
    assert held.until_renewal_ms() == 0
    assert held.until_change_ms() == TERMS.margin_ms
    held.confirmed(sent_ms=held.sending(), version=2, ttl_ms=300_000)
    assert held.judge() is Standing.HELD


def test_failures_while_frozen_do_not_end_it_before_the_margin(held, clock):
    clock.advance(285_000)
    held.judge()
    for _ in range(10):
        held.sending()
        held.unanswered()
    assert held.judge() is Standing.FROZEN


@pytest.mark.parametrize("frozen", [False, True])
def test_a_refusal_ends_it_at_once(held, clock, frozen):
    if frozen:
        clock.advance(285_000)
        held.judge()
    held.refused("held by worker_2")
    assert held.judge() is Standing.LOST
    assert held.loss == "held by worker_2"


def test_a_lost_lease_does_not_come_back(held, clock):
    sent = held.sending()
    held.refused("held by worker_2")
    held.confirmed(sent_ms=sent, version=9, ttl_ms=300_000)
    held.drop()
    assert held.judge() is Standing.LOST
    assert (held.left_ms(), held.until_renewal_ms(), held.until_change_ms()) == (0, None, None)


def test_a_dropped_authority_stays_dropped_and_still_notes_the_version(held, clock):
    sent = held.sending()
    held.drop()
    assert held.judge() is Standing.DROPPED
    assert held.confirmed(sent_ms=sent, version=2, ttl_ms=300_000)
    assert held.judge() is Standing.DROPPED
    assert held.version == 2
    held.refused("late")
    assert held.judge() is Standing.DROPPED
    assert held.until_renewal_ms() is None


def test_three_unanswered_renewals_in_a_row_mean_stop_while_the_lease_lives(held, clock):
    clock.advance(held.until_renewal_ms())
    for failures in (1, 2, 3):
        assert held.judge() is Standing.HELD
        held.sending()
        held.unanswered()
        assert held.failures == failures
        assert held.exhausted == (failures == 3)
        clock.advance(held.until_renewal_ms())
    assert held.judge() is Standing.HELD


def test_an_answer_between_failures_starts_the_count_anew(held):
    for _ in range(2):
        held.sending()
        held.unanswered()
    held.confirmed(sent_ms=held.sending(), version=2, ttl_ms=300_000)
    held.sending()
    held.unanswered()
    assert (held.failures, held.exhausted) == (1, False)


@given(phase=st.floats(min_value=0, max_value=1, exclude_max=True), rounds=st.integers(1, 50))
def test_renewals_stay_within_a_tenth_of_their_time(phase, rounds):
    clock = ManualClock()
    authority = Authority(TERMS, clock=clock, version=1, sent_ms=0, phase=phase)
    for version in range(2, rounds + 2):
        wait = authority.until_renewal_ms()
        assert 90_000 <= wait <= 110_000
        clock.advance(wait)
        authority.confirmed(sent_ms=authority.sending(), version=version, ttl_ms=300_000)


def test_holders_with_different_phases_renew_at_different_times(clock):
    now = clock.boottime_ms()
    waits = {
        Authority(TERMS, clock=clock, version=1, sent_ms=now, phase=phase / 50).until_renewal_ms()
        for phase in range(50)
    }
    assert len(waits) == 50
    assert max(waits) - min(waits) > 19_000


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("wait"), st.integers(1, 200_000)),
            st.tuples(st.just("sleep"), st.integers(1, 2_000_000)),
            st.tuples(st.just("answer"), st.integers(0, 30_000)),
            st.tuples(st.just("silence"), st.integers(0, 30_000)),
        ),
        max_size=40,
    )
)
def test_whoever_believes_holds_a_lease_that_the_store_still_counts_live(steps):
    """The store counts from when it answered, which is never before the send."""
    clock = ManualClock()
    authority = Authority(TERMS, clock=clock, version=1, sent_ms=0, phase=0.5)
    expires = TERMS.ttl_ms
    for step, duration in steps:
        if step == "wait":
            clock.advance(duration)
        elif step == "sleep":
            clock.suspend(duration)
        elif authority.judge() in (Standing.HELD, Standing.FROZEN):
            sent = authority.sending()
            clock.advance(duration)
            granted = clock.boottime_ms() < expires
            if step == "silence":
                authority.unanswered()
            elif granted:
                expires = clock.boottime_ms() + TERMS.ttl_ms
                clock.advance(duration)
                authority.confirmed(
                    sent_ms=sent, version=authority.version + 1, ttl_ms=TERMS.ttl_ms
                )
            else:
                authority.refused("over")
        if authority.judge() is Standing.HELD:
            assert clock.boottime_ms() + TERMS.margin_ms <= expires
