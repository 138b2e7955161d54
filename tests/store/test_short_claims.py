"""SQLite's claims by one statement: made where nothing has to be decided, and leaving everything else as it was."""

from __future__ import annotations

import pytest

from builders import MakeStore, Yard
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
    yard.add("within", scopes=("src/a",))
    assert yard.claim() == []
    apart = yard.add("apart", scopes=("docs",))
    with pytest.raises(
        KeyError, match="claim_write"
    ):  # somebody waits: whose turn it is, is decided
        yard.claim()
    assert yard.state(apart.task) == "queued"
