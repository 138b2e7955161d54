"""What the state machine found, each as a plain test."""

from __future__ import annotations

from builders import Yard
from lessor.errors import GrantOverError


def test_a_lease_named_twice_is_completed_once_and_the_next_claimed(yard: Yard) -> None:
    grant = yard.running("a")
    yard.add("next", scopes=("b",))
    item = (grant.holder, yard.result())
    ended, (following,) = yard.lessor.leases.complete_and_claim([item, item], yard.request())
    assert [getattr(one, "repeated", None) for one in ended] == [False, True]
    assert following.title == "next"


def test_completing_nothing_and_claiming_is_a_claim(yard: Yard) -> None:
    yard.add("next")
    ended, (grant,) = yard.lessor.leases.complete_and_claim([], yard.request())
    assert (ended, grant.title) == ([], "next")


def test_a_repeated_claim_isnt_answered_with_what_the_same_call_completes(yard: Yard) -> None:
    """Whether or not something else could be claimed, and nothing of the call is done."""
    yard.add("first")
    request = yard.request()
    (grant,) = yard.lessor.leases.claim(request)
    item = (grant.holder, yard.result())
    for _ in range(2):
        refusal = yard.refused(lambda: yard.lessor.leases.complete_and_claim([item], request))
        assert isinstance(refusal, GrantOverError)
        assert yard.state(grant.task) == "running"
        yard.add("second")
