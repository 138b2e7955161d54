"""Claims without a repository, where no lock comes before the tasks' own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from builders import MakeStore, Yard
from held import holding, until_waiting


def yard_of(make_store: MakeStore, *titles: str) -> Yard:
    store = make_store("postgres")
    yard = Yard(store, store.connect())
    for title in titles:
        yard.add(title, free=True)
    return yard


@pytest.mark.parametrize(
    ("wanted", "got"), [(1, ["second"]), (2, ["second", "fourth"]), (4, ["second", "fourth"])]
)
def test_a_full_claim_takes_what_nobody_else_is_about_to_take(
    make_store: MakeStore, wanted: int, got: list[str]
) -> None:
    """It waited for the first, found it gone and began again: eight times, and the claim was refused."""
    yard = yard_of(make_store, "first", "second", "third", "fourth")
    with yard.store.raw() as other:
        other.autocommit = False
        other.execute(
            "SELECT t.id FROM task AS t JOIN submission AS s ON s.task_id = t.id"
            " WHERE s.title IN ('first', 'third') FOR UPDATE OF t"
        )
        assert yard.titles(yard.claim_free(wanted=wanted)) == got
        other.rollback()
    assert yard.titles(yard.claim_free(wanted=9)) == [
        title for title in ("first", "second", "third", "fourth") if title not in got
    ]


def test_a_full_claim_passes_over_others_under_a_limit(make_store: MakeStore) -> None:
    yard = yard_of(make_store)
    yard.lessor.registry.set_limit("key", "few", 1)
    for title in ("first", "second"):
        yard.add(title, free=True, limit_key="few")
    yard.add("third", free=True)
    with yard.store.raw() as other:
        other.autocommit = False
        other.execute(
            "SELECT t.id FROM task AS t JOIN submission AS s ON s.task_id = t.id"
            " WHERE s.title = 'first' FOR UPDATE OF t"
        )
        assert yard.titles(yard.claim_free(wanted=3)) == ["second", "third"]
        other.rollback()


@pytest.mark.parametrize("written", [True, False])
def test_the_last_task_that_another_is_about_to_take_is_waited_for(
    make_store: MakeStore, *, written: bool
) -> None:
    """It may yet be given back: an empty answer would be final."""
    yard = yard_of(make_store, "only")
    text = "UPDATE task SET epoch = epoch" if written else "SELECT id FROM task FOR UPDATE"
    with ThreadPoolExecutor(1) as aside:
        with holding(yard, text):
            claiming = aside.submit(yard.claim_free)
            until_waiting(yard)
        assert yard.titles(claiming.result(timeout=30)) == ["only"]
