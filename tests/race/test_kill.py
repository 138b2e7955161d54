"""A writer is killed at any moment: nothing that it was told is lost, nothing is half written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from forking import Host
from judging import go_on, judge

from builders import MakeStore
from declared import STORE_CODES

KILLS = {"sqlite": 200, "postgres": 40}
LATEST_MS = 60
"""A writer lives no longer than this after its fork or its first call."""
STORES = 10
MAKERS = 3
OPENED_MS = 60


@pytest.fixture
def host() -> Iterator[Host]:
    """A host for the length of a test."""
    with Host() as host:
        yield host


@pytest.mark.race
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_kill_loses_what_a_writer_was_told(
    make_store: MakeStore, host: Host, journals: Path, kind: str
) -> None:
    store, rng = make_store(kind, real_time=True), Random(11)
    store.connect()
    for number in range(KILLS[kind]):
        after = rng.randrange(5, LATEST_MS)
        journal, at_work = journals / f"{number:03}", number % 4 > 0  # one in four while it opens
        host.kill_one(store.url, journal, after_ms=after, at_work=at_work)
        judge(store, journals)
    go_on(store, journals, turns=5)
    history = judge(store, journals)
    assert not [call for call in history.calls if call.no in STORE_CODES]
    within = sum(call.done_ns is None for call in history.calls)
    assert within > KILLS[kind] / 4, "too few were killed in the middle of a call"


@pytest.mark.race
def test_a_store_whose_makers_were_killed_is_made_by_the_next(
    make_store: MakeStore, host: Host, journals: Path
) -> None:
    rng = Random(12)
    for number in range(STORES):
        store, own = make_store("sqlite", real_time=True), journals / f"{number:03}"
        own.mkdir()
        for maker in range(MAKERS):
            host.kill_one(store.url, own / f"{maker}", after_ms=rng.randrange(OPENED_MS))
        go_on(store, own, turns=5)
        judge(store, own)
