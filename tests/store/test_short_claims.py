"""Claims by one statement: made where nothing has to be decided, and leaving everything else as it was."""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

import pytest

from builders import MakeStore, Yard
from lessor.clock import ManualClock
from lessor.store.postgres.transaction import own_statements
from lessor.store.statements import load_statements


@pytest.fixture
def yard(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A store whose claims can't go the long way round: what that grants with isn't there."""
    monkeypatch.delitem(load_statements("sqlite"), "claim_write")
    store = make_store("sqlite")
    return Yard(store, store.connect())


def test_a_claim_that_nothing_is_in_the_way_of_needs_no_rule(yard: Yard) -> None:
    yard.add("free", free=True)
    yard.add("first", scopes=("src/a",))
    yard.add("second", scopes=("src/a/b",))
    assert yard.titles(yard.claim_free()) == ["free"]
    first = yard.claim_one()
    assert (first.title, first.scopes, first.fence) == ("first", ("src/a",), 1)
    yard.complete(first)
    second = yard.claim_one()
    assert (second.title, second.fence) == ("second", 2)


def test_what_a_rule_has_to_decide_isnt_claimed_by_the_way(yard: Yard) -> None:
    yard.add("first", scopes=("src",))
    yard.claim_one()
    waits = yard.add("within", scopes=("src/a",))
    assert yard.claim() == []
    yard.lessor.registry.set_queue("default", overtake_limit=2)
    passes = yard.add("passes", scopes=("docs",))
    assert yard.titles(yard.claim()) == ["passes"]  # somebody waits, and it isn't their turn yet
    apart = yard.add("apart", scopes=("tests",))
    with pytest.raises(KeyError, match="claim_write"):
        yard.claim()
    assert yard.state(apart.task) == "queued"
    assert [yard.state(task.task) for task in (passes, waits)] == ["running", "queued"]


SECOND = 1_000
"""How long a PostgreSQL claim goes on from where the last one stopped."""


@pytest.fixture
def fleet(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """The same on PostgreSQL, where many claim at once."""
    monkeypatch.delitem(cast("dict[str, Any]", own_statements()), "claim_write")
    store = make_store("postgres")
    return Yard(store, store.connect())


@pytest.mark.parametrize("wanted", [1, 2])
def test_a_pass_from_the_beginning_needs_no_rule_without_a_repository(
    fleet: Yard, wanted: int
) -> None:
    for number in range(4 * wanted):
        fleet.add(f"task {number}", free=True)
    assert len(fleet.claim_free(wanted=wanted)) == wanted
    Yard(fleet.store, fleet.store.connect()).add("urgent", free=True, priority=1)
    fleet.store.advance(SECOND)
    assert fleet.titles(fleet.claim_free(wanted=wanted))[0] == "urgent"
    assert len(fleet.claim_free(wanted=wanted)) == wanted


def test_a_pass_from_the_beginning_leaves_to_the_rule_what_ran_out_or_fell_due(
    fleet: Yard,
) -> None:
    fleet.add("held", free=True)
    fleet.claim_free(ttl_ms=10 * SECOND)
    first = fleet.add("first", free=True)
    fleet.store.advance(10 * SECOND)
    with pytest.raises(KeyError, match="claim_write"):
        fleet.claim_free()
    assert fleet.state(first.task) == "queued"
    fleet.lessor.leases.sweep()
    fleet.add("later", free=True, delay=dt.timedelta(seconds=2))
    assert fleet.titles(fleet.claim_free()) != []
    fleet.store.advance(2 * SECOND)
    with pytest.raises(KeyError, match="claim_write"):
        fleet.claim_free()


class TurningClock(ManualClock):
    """A clock that goes on by a millisecond at each look of a claim at its marks."""

    turning = False

    def boottime_ms(self) -> int:
        now = super().boottime_ms()
        self._boottime += self.turning
        return now


@pytest.fixture
def turning(make_store: MakeStore) -> Yard:
    """A PostgreSQL store whose second can turn over between two looks."""
    store = make_store("postgres")
    store.clock = TurningClock()
    return Yard(store, store.connect())


@pytest.mark.parametrize("looks", range(1, 6))
def test_what_fell_due_is_seen_also_where_the_second_turns_over_between_two_looks(
    turning: Yard, looks: int
) -> None:
    for name in ("first", "second", "third"):
        turning.add(name, free=True)
    turning.add("due", free=True, priority=1, delay=dt.timedelta(milliseconds=500))
    assert turning.titles(turning.claim_free()) == ["first"]
    turning.store.advance(SECOND - looks)
    turning.store.clock.turning = True
    assert "due" in turning.titles([*turning.claim_free(), *turning.claim_free()])


def test_a_pass_from_the_beginning_that_a_rule_has_to_make_begins_there_too(
    turning: Yard,
) -> None:
    """Another process's urgent task lies before the mark, behind one that has to be parked."""
    turning.add("first", scopes=("src",))
    assert turning.titles(turning.claim()) == ["first"]
    other = Yard(turning.store, turning.store.connect())
    other.add("blocked", scopes=("src/a",), priority=2)
    other.add("urgent", scopes=("docs",), priority=1)
    other.add("later", scopes=("tests",))
    turning.store.advance(SECOND)
    assert turning.titles(turning.claim()) == ["urgent"]
