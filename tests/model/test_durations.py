from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessor.errors import TermsInvalidError
from lessor.model.lease import HOUR, YEAR, LeaseTerms, is_live, terms_for
from lessor.model.retry import RetryPolicy


@given(st.integers(min_value=20, max_value=YEAR))
def test_terms_for_any_lease_keep_the_relations(ttl_ms: int) -> None:
    terms = terms_for(ttl_ms)
    assert terms.renew_every_ms * 1.1 + terms.margin_ms < terms.ttl_ms <= terms.max_hold_ms


@pytest.mark.parametrize("ttl", [-1, 0, 19, YEAR + 1, True, 1.5, "300", None])
def test_a_lease_that_can_not_be_meant_is_refused(ttl: object) -> None:
    with pytest.raises(TermsInvalidError):
        terms_for(ttl)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttl_ms": 30_000, "renew_every_ms": 29_000},
        {"margin_ms": 300_000},
        {"max_hold_ms": 1},
        {"renew_attempts": 0},
        {"ttl_ms": -1},
    ],
)
def test_terms_that_let_a_holder_outlive_its_lease_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(TermsInvalidError):
        LeaseTerms(**wrong)


@pytest.mark.parametrize(("now", "live"), [(99, True), (100, False), (101, False)])
def test_at_the_deadline_a_lease_is_over_for_everybody(now: int, live: bool) -> None:
    assert is_live(now=now, expires_ms=100, ended_ms=None) is live


def test_an_ended_lease_is_not_live_whatever_its_deadline() -> None:
    assert not is_live(now=1, expires_ms=100, ended_ms=1)


@given(st.integers(min_value=1, max_value=10_000), st.floats(min_value=0, max_value=0.999_999))
def test_a_delay_stays_between_half_its_ceiling_and_its_ceiling(
    failures: int, chance: float
) -> None:
    policy = RetryPolicy()
    delay = policy.delay_ms(failures, chance=chance)
    ceiling = min(policy.first_ms * policy.factor ** min(failures - 1, 40), policy.ceiling_ms)
    assert ceiling // 2 <= delay <= ceiling <= HOUR


@pytest.mark.parametrize(
    "wrong", [{"first_ms": -1}, {"first_ms": 10, "ceiling_ms": 5}, {"factor": 0}, {"factor": 11}]
)
def test_a_policy_that_can_not_be_meant_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(TermsInvalidError):
        RetryPolicy(**wrong)
