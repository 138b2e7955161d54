"""Concurrency limits: per queue, per key, per agent."""

from __future__ import annotations

import pytest

from builders import TTL, Yard
from lessor.model.grant import Reach

LIMITED = [("queue", "default"), ("agent", "claude-1"), ("key", "db")]


@pytest.mark.parametrize(("kind", "key"), LIMITED)
@pytest.mark.parametrize("free", [False, True])
def test_no_more_leases_than_the_limit_at_once(yard: Yard, kind: str, key: str, free: bool) -> None:
    where = {"repository": Reach.NO_REPOSITORY} if free else {}
    yard.lessor.registry.set_limit(kind, key, 2)
    for n in range(4):
        yard.add(f"task {n}", limit_key="db", free=free)
    first, second = yard.claim(wanted=9, **where)
    assert yard.claim(**where) == []
    yard.complete(first)
    third = yard.claim_one(**where)
    assert third.title == "task 2"
    assert yard.claim(**where) == []
    yard.complete(second)
    yard.complete(third)
    assert yard.claim_one(**where).title == "task 3"


def test_a_full_key_doesnt_hold_up_tasks_without_it(yard: Yard) -> None:
    yard.lessor.registry.set_limit("key", "db", 1)
    for n in range(30):
        yard.add(f"db {n}", limit_key="db")
    yard.add("other")
    assert [yard.claim_one().title for _ in range(2)] == ["db 0", "other"]
    assert yard.claim() == []


def test_keys_are_counted_apart(yard: Yard) -> None:
    yard.lessor.registry.set_limit("key", "a", 1)
    yard.lessor.registry.set_limit("key", "b", 1)
    for n in range(2):
        yard.add(f"a{n}", limit_key="a")
        yard.add(f"b{n}", limit_key="b")
    assert yard.titles(yard.claim(wanted=9)) == ["a0", "b0"]


def test_agents_are_counted_apart(yard: Yard) -> None:
    yard.lessor.registry.set_limit("agent", "claude-1", 1)
    for n in range(4):
        yard.add(f"task {n}")
    assert len(yard.claim(wanted=9)) == 1
    assert len(yard.claim(wanted=9, worker=yard.other.id)) == 3


def test_a_limit_of_nought_stops_and_none_takes_it_away(yard: Yard) -> None:
    yard.add("work")
    yard.lessor.registry.set_limit("queue", "default", 0)
    assert yard.claim() == []
    yard.lessor.registry.set_limit("queue", "default", None)
    assert yard.lessor.registry.limits() == []
    assert yard.claim_one().title == "work"


@pytest.mark.parametrize(("kind", "key"), LIMITED)
@pytest.mark.parametrize("elsewhere_free", [False, True])
def test_a_lease_that_ran_out_elsewhere_takes_no_room(
    yard: Yard, kind: str, key: str, elsewhere_free: bool
) -> None:
    """Nobody claims in the other place: its lapsed lease must not keep this one's tasks waiting."""
    yard.lessor.registry.set_limit(kind, key, 1)
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    there = {"free": True} if elsewhere_free else {"repository": docs.id}
    abandoned = yard.add("abandoned", limit_key="db", **there)
    place = Reach.NO_REPOSITORY if elsewhere_free else docs.id
    yard.claim_one(repository=place)
    yard.add("here", limit_key="db")
    yard.store.advance(TTL - 1)
    assert yard.claim() == []
    yard.store.advance(1)
    assert yard.claim_one().title == "here"
    assert yard.state(abandoned.task) == "queued"
    assert "lapsed" in yard.kinds(abandoned.task)


def test_a_limit_passes_over_and_keeps_the_order(yard: Yard) -> None:
    yard.lessor.registry.set_limit("key", "db", 1)
    holder = yard.running("a", limit_key="db")
    yard.add("first in line", scopes=("b",), limit_key="db")
    yard.add("second", scopes=("c",))
    yard.add("third", scopes=("d",))
    assert yard.claim_one().title == "second"
    yard.complete(holder)
    assert yard.claim_one().title == "first in line"


def test_a_lowered_limit_takes_nothing_from_those_who_hold(yard: Yard) -> None:
    yard.lessor.registry.set_limit("queue", "default", 2)
    first, second = yard.running("a"), yard.running("b")
    yard.lessor.registry.set_limit("queue", "default", 1)
    yard.add("waits")
    yard.complete(first)
    assert yard.claim() == []
    yard.complete(second)
    assert yard.claim_one().title == "waits"


def test_a_limit_on_a_kind_counts_every_agent_of_that_kind(yard: Yard) -> None:
    yard.lessor.registry.set_limit("agent", "claude", 2)
    for n in range(3):
        yard.add(f"task {n}")
    slots = [yard.add_worker(f"slot-{n}", kind="claude") for n in range(3)]
    assert [len(yard.claim(worker=slot.id)) for slot in slots] == [1, 1, 0]
    other = yard.add_worker("codex-9", kind="codex")
    assert len(yard.claim(worker=other.id)) == 1
