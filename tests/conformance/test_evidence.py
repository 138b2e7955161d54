"""What refused writers bring is kept: the first of it whole, the rest counted, whoever goes on trying."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from builders import TTL, Yard, zombie
from lessor.ids import new_token
from lessor.model.grant import Grant
from lessor.model.lease import Holder
from lessor.service.evidence import MOST_KEPT
from lessor.service.reading import HistoryEntry


def late(yard: Yard, task: str) -> list[HistoryEntry]:
    """What the task's history has of late results."""
    return [entry for entry in yard.lessor.tasks.history(task) if entry.kind == "late"]


def try_again(yard: Yard, holder: Holder, said: str) -> bool:
    """Complete with a lease that is over; whether the result was kept."""
    error = yard.refused(lambda: yard.lessor.leases.complete_one(holder, yard.result(said=said)))
    assert error.code == "lease_lost"
    return bool(error.facts["kept"])


@pytest.fixture
def over(yard: Yard) -> Grant:
    """A lease that ran out, whose task went on to another."""
    grant = yard.running("src")
    yard.store.advance(TTL)
    yard.claim_one(worker=yard.other.id)
    return grant


def test_a_zombie_in_a_loop_adds_one_event_and_a_count(yard: Yard, over: Grant) -> None:
    for _ in range(50):
        assert try_again(yard, over.holder, "done")
    assert len(late(yard, over.task)) == 1
    assert yard.lessor.leases.lease(over.lease).late == 50


def test_results_that_differ_are_kept_up_to_a_bound_and_counted_beyond(
    yard: Yard, over: Grant
) -> None:
    kept = [try_again(yard, over.holder, f"result {n}") for n in range(MOST_KEPT + 10)]
    assert kept == [True] * MOST_KEPT + [False] * 10
    bodies = [entry.facts["body"] for entry in late(yard, over.task)]
    assert len(bodies) == MOST_KEPT
    assert all(f"result {n}" in body for n, body in enumerate(bodies))
    assert yard.lessor.leases.lease(over.lease).late == MOST_KEPT + 10
    assert try_again(yard, over.holder, "result 3")  # it is there already


def test_a_failure_and_a_completion_are_different_evidence(yard: Yard, over: Grant) -> None:
    try_again(yard, over.holder, "done")
    yard.refused(lambda: yard.lessor.leases.release(over.holder, reason="done"))
    yard.refused(lambda: yard.fail(over, "done"))
    assert [entry.facts["verb"] for entry in late(yard, over.task)] == [
        "complete",
        "released",
        "failed",
    ]


def test_others_who_name_a_lease_dont_crowd_its_own_holder_out(yard: Yard, over: Grant) -> None:
    for n in range(MOST_KEPT + 5):
        try_again(yard, zombie(over.holder, token=new_token()), f"forged {n}")
    assert try_again(yard, over.holder, "the holder's own")
    said = late(yard, over.task)
    assert [entry.facts["mine"] for entry in said] == [False] * MOST_KEPT + [True]


def test_each_lease_of_a_task_has_room_of_its_own(yard: Yard) -> None:
    grant = yard.running("src", max_attempts=99)
    for epoch in range(1, 4):
        assert grant.epoch == epoch
        yard.store.advance(TTL)
        following = yard.claim_one(task=grant.task)
        for n in range(MOST_KEPT + 1):
            try_again(yard, grant.holder, f"result {n}")
        grant = following
    assert len(late(yard, grant.task)) == 3 * MOST_KEPT


def test_epochs_that_never_were_fill_nothing(yard: Yard) -> None:
    grant = yard.running("src")
    for epoch in range(2, 60):
        try_again(yard, zombie(grant.holder, epoch=epoch), f"result {epoch}")
    assert len(late(yard, grant.task)) == MOST_KEPT
    assert yard.lessor.leases.lease(grant.lease).late == 0
    assert yard.complete(grant).state == "succeeded"


def test_what_comes_late_changes_nothing_else(yard: Yard, over: Grant) -> None:
    try_again(yard, over.holder, "done")
    before = yard.store.contents(without=("late_result",))
    for _ in range(3):
        try_again(yard, over.holder, "done")
    assert yard.store.contents(without=("late_result",)) == before


def test_of_many_that_bring_the_same_at_once_one_is_kept(yard: Yard, over: Grant) -> None:
    with ThreadPoolExecutor(8) as aside:
        kept = list(aside.map(lambda _: try_again(yard, over.holder, "done"), range(16)))
    assert kept == [True] * 16
    assert len(late(yard, over.task)) == 1
    assert yard.lessor.leases.lease(over.lease).late == 16
