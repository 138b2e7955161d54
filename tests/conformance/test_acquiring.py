"""Leasing paths without a queued task: made and claimed in one transaction, or nothing at all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import TTL, Yard
from lessor.model.grant import Failure, Grant
from lessor.model.task import AD_HOC, NewTask


def test_paths_are_leased_at_once(yard: Yard) -> None:
    grant = yard.lessor.leases.acquire(
        yard.asked("hold", scopes=("src",), queue="ad-hoc"), worker=yard.worker.id, ttl_ms=TTL
    )
    assert (grant.scopes, grant.ttl_ms, grant.epoch, grant.queue) == (("src",), TTL, 1, "ad-hoc")
    yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    yard.lessor.leases.release(grant.holder)
    assert yard.claim_one().title == "waits"


def held(yard: Yard, *scopes: str) -> Grant:
    return yard.lessor.leases.acquire(
        yard.asked("hold", scopes=scopes, queue=AD_HOC), worker=yard.worker.id, ttl_ms=TTL
    )


@pytest.mark.parametrize("how", ["release", "lapse", "force", "gone", "fail"])
def test_paths_that_are_given_back_or_lost_leave_no_work_behind(yard: Yard, how: str) -> None:
    """Nobody asked for any: the task only stood for them."""
    grant = held(yard, "src")
    leases = yard.lessor.leases
    if how == "lapse":
        yard.store.advance(TTL)
        leases.sweep(repository=yard.repository.id)
    elif how == "release":
        leases.release(grant.holder, reason="dropped")
    elif how == "force":
        leases.force_release(grant.task, actor="dana", reason="stuck", checked="asked")
    elif how == "gone":
        leases.end_gone(grant.task, epoch=1, proof="it was killed")
    else:
        leases.fail(grant.holder, Failure(error="no"))
    assert yard.lessor.tasks.task(grant.task).state == "cancelled"
    assert yard.lessor.tasks.history(grant.task)[-1].facts["rule"] == "ad hoc"
    assert held(yard, "src").epoch == 1
    assert yard.claim(queue=AD_HOC) == []


def test_work_isnt_put_where_acquired_paths_are(yard: Yard) -> None:
    error = yard.refused(lambda: yard.lessor.tasks.submit([yard.asked("work", queue=AD_HOC)]))
    assert (error.code, error.facts["queue"]) == ("invalid", AD_HOC)


def test_what_is_held_is_refused_and_nothing_is_left_behind(yard: Yard) -> None:
    holder = yard.running("src")
    before = yard.store.contents()
    error = yard.refused(
        lambda: yard.lessor.leases.acquire(
            yard.asked("hold", scopes=("src/a",)), worker=yard.other.id
        )
    )
    assert error.code == "scope_held"
    assert (error.facts["path"], error.facts["held"]) == ("src/a", "src")
    assert (error.facts["lease"], error.facts["holder"]) == (holder.lease, "claude-1")
    assert (error.facts["number"], error.facts["epoch"], error.facts["ttl_ms"]) == (1, 1, TTL)
    assert f"lessor why {holder.number}" in error.next_step
    assert yard.store.contents() == before


def test_a_lease_that_ran_out_is_no_obstacle(yard: Yard) -> None:
    yard.running("src", queue="other")
    yard.store.advance(TTL)
    grant = yard.lessor.leases.acquire(yard.asked("hold", scopes=("src/a",)), worker=yard.other.id)
    assert grant.scopes == ("src/a",)


def test_another_reason_is_said_to_be_one(yard: Yard) -> None:
    yard.lessor.registry.set_limit("queue", "default", 0)
    before = yard.store.contents()
    error = yard.refused(lambda: yard.lessor.leases.acquire(yard.asked("x"), worker=yard.worker.id))
    assert error.code == "conflict"
    assert yard.store.contents() == before


def test_what_cant_run_now_cant_be_acquired(yard: Yard) -> None:
    need = yard.add("need")
    for wish in (
        yard.asked("later", delay=timedelta(hours=1)),
        yard.asked("after", needs=(need.task,)),
        yard.asked("for another", agent="codex"),
    ):
        error = yard.refused(lambda w=wish: yard.lessor.leases.acquire(w, worker=yard.worker.id))
        assert error.code == "conflict"


def test_a_unique_key_finds_the_task_that_is_there(yard: Yard) -> None:
    there = yard.add("there", unique_key="k", scopes=("src",))
    wish = yard.asked("again", unique_key="k", scopes=("src",))
    grant = yard.lessor.leases.acquire(wish, worker=yard.worker.id)
    assert (grant.task, grant.title) == (there.task, "there")
    error = yard.refused(lambda: yard.lessor.leases.acquire(wish, worker=yard.other.id))
    assert error.code == "transition_refused"


@pytest.mark.parametrize("ttl", [20, 3_600_000])
def test_a_lease_without_a_repository_is_a_plain_one(yard: Yard, ttl: int) -> None:
    grant = yard.lessor.leases.acquire(NewTask(title="deploy"), worker=yard.worker.id, ttl_ms=ttl)
    assert (grant.repository, grant.fence, grant.ttl_ms) == (None, 0, ttl)
