"""What the state machine found, each as a plain test."""

from __future__ import annotations

import pytest

from builders import Yard
from lessor.errors import GrantOverError
from lessor.model.grant import Reach


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


@pytest.mark.parametrize("free", [True, False])
def test_what_is_given_back_goes_before_what_came_later(yard: Yard, free: bool) -> None:
    """Claims of one process start where the last one got to; its own release takes them back."""
    where = {"repository": Reach.NO_REPOSITORY} if free else {}
    for n in range(5):
        yard.add(f"task {n}", free=free)
    grants = [yard.claim_one(**where) for _ in range(4)]
    yard.lessor.leases.release(grants[1].holder)
    assert yard.claim_one(**where).title == "task 1"


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("fused", [True, False])
def test_what_a_completion_makes_ready_goes_by_its_priority(
    yard: Yard, free: bool, fused: bool
) -> None:
    where = {"repository": Reach.NO_REPOSITORY} if free else {}
    need = yard.add("need", free=free)
    yard.add("urgent", free=free, needs=(need.task,), priority=5)
    for n in range(5):
        yard.add(f"task {n}", free=free)
    first, *_ = (yard.claim_one(**where) for _ in range(3))
    item = (first.holder, yard.result())
    if fused:
        _, (grant,) = yard.lessor.leases.complete_and_claim([item], yard.request(**where))
    else:
        yard.lessor.leases.complete([item])
        (grant,) = yard.claim(**where)
    assert grant.title == "urgent"


def test_what_another_queues_claim_wakes_goes_by_its_place(yard: Yard) -> None:
    """A claim frees and ends for the whole repository, whichever queue it is for."""
    holder = yard.running("a")
    yard.add("waits", scopes=("a",))
    for n in range(3):
        yard.add(f"task {n}")
    assert yard.claim_one().title == "task 0"
    yard.complete(holder)
    assert yard.claim(queue="other") == []
    assert yard.claim_one().title == "waits"


def test_what_another_queues_claim_ends_goes_by_its_place(yard: Yard) -> None:
    lapsing = yard.add("lapsing")
    for n in range(3):
        yard.add(f"task {n}")
    assert yard.claim_one(ttl_ms=100).task == lapsing.task
    assert yard.claim_one().title == "task 0"
    yard.store.advance(100)
    assert yard.claim(queue="other") == []
    assert yard.claim_one().title == "lapsing"


def test_a_waiter_behind_many_ended_leases_is_found_from_everywhere(yard: Yard) -> None:
    """Leases that nobody waits for don't hide the one that somebody does."""
    for n in range(12):
        yard.add(f"task {n}", scopes=(f"dir{n}",))
    yard.add("waits", scopes=("dir11",))
    grants = yard.claim(wanted=13)
    assert [grant.title for grant in grants] == [f"task {n}" for n in range(12)]
    yard.lessor.leases.complete([(grant.holder, yard.result()) for grant in grants])
    (grant,) = yard.claim(repository=Reach.ANYWHERE)
    assert grant.title == "waits"


def test_a_limit_that_is_set_later_counts_the_agents_leases(yard: Yard) -> None:
    """Whichever way they were claimed: by a rule, or in one statement."""
    for n in range(3):
        yard.add(f"task {n}", scopes=(f"dir{n}",))
    yard.claim_one()
    yard.claim_one()
    yard.lessor.registry.set_limit("agent", yard.worker.kind, 2)
    assert yard.claim() == []
