"""Eight processes on one store, paused, killed and lying: what they were told holds, to the last."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from secrets import randbits

import pytest
from arena import POLICY, set_up
from checker import ALWAYS, DRAINED, find_violations
from drain import Drain
from history import History, load_history
from journal import LOST
from nemesis import Nemesis

from builders import MakeStore, StoreUnderTest
from invariants import check_invariants
from lessor.clock import SystemClock

SECONDS = int(os.environ.get("LESSOR_RACE_SECONDS", "40"))
PLAYERS = 8
MOST_ROUNDS = 6
LONGEST_MS = 700
"""No lease of a race lasts longer, and no task is delayed for longer."""
MUST_HAPPEN = {
    *("claimed", "completed", "lapsed", "late", "failed", "released", "asked", "answered"),
    *("widened", "reserved", "blocked", "unblocked", "requeued", "cancelled"),
}
"""Kinds of events without which a race would prove too little."""
MUST_BE_REFUSED = {"lease_lost", "scope_held", "grant_over", "transition_refused"}


@pytest.fixture
def seed() -> int:
    """Given to repeat a race's choices; what the processes make of them differs each time."""
    return int(os.environ.get("LESSOR_RACE_SEED") or randbits(32))


@pytest.mark.race
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_whatever_befalls_eight_processes_no_promise_is_broken(
    make_store: MakeStore,
    tmp_path: Path,
    journals: Path,
    kind: str,
    seed: int,
) -> None:
    store, rng = make_store(kind, real_time=True), Random(seed)
    set_up(store.connect(policy=POLICY), limited=True)
    nemesis = Nemesis(tmp_path, journals, store.url, rng)
    play_until(nemesis, SECONDS, lambda: lacking(load_history(store, journals)))
    history = judge_and_drain(store, journals, rng, seed)
    note(history, tmp_path)
    assert not [call for call in history.calls if call.no in LOST], "the store was always there"
    assert deadlocks(store) == 0, "the lock order wasn't kept"
    assert not lacking(history)


@pytest.mark.race
def test_processes_that_lose_their_server_again_and_again_are_granted_nothing_twice(
    make_store: MakeStore, tmp_path: Path, journals: Path, seed: int
) -> None:
    """Without limits, where free tasks are claimed by one statement."""
    store, rng = make_store("postgres", real_time=True), Random(seed)
    set_up(store.connect(policy=POLICY), limited=False)
    nemesis = Nemesis(tmp_path, journals, store.url, rng, worse=lambda: end_a_server(store))

    def none_lost() -> bool:
        return all(call.no != "store_unavailable" for call in load_history(store, journals).calls)

    play_until(nemesis, SECONDS // 3, none_lost)
    note(judge_and_drain(store, journals, rng, seed), tmp_path)
    assert not none_lost()


def lacking(history: History) -> set[str]:
    """What a race has to show and hasn't."""
    kinds = {event.kind for events in history.events.values() for event in events}
    return (MUST_HAPPEN - kinds) | (MUST_BE_REFUSED - {str(call.no) for call in history.calls})


def play_until(nemesis: Nemesis, seconds: int, is_lacking: Callable[[], object]) -> None:
    """Once; and on a busy machine, on which less happens, again until enough did."""
    for _ in range(MOST_ROUNDS):
        nemesis.run(players=PLAYERS, milliseconds=seconds * 1_000)
        if not is_lacking():
            return


def deadlocks(store: StoreUnderTest) -> int:
    """How many the server had to end; SQLite knows none."""
    if store.kind == "sqlite":
        return 0
    found = store.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(found[0][0])


def end_a_server(store: StoreUnderTest) -> None:
    """End one of the server's processes that is doing something."""
    store.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND state <> 'idle' ORDER BY random() LIMIT 1"
    )


def judge_and_drain(store: StoreUnderTest, journals: Path, rng: Random, seed: int) -> History:
    """Judge, let healthy workers finish what is left, and judge again."""
    violations = find_violations(load_history(store, journals), *ALWAYS)
    assert not violations, f"seed {seed}: {violations}"
    SystemClock().wait(LONGEST_MS)  # every lease has run out, every delay is over
    open_ = len(store.sql("SELECT 1 FROM task WHERE finished_ms IS NULL"))
    drain = Drain(store, store.connect(policy=POLICY), journals, rng)
    drain.run()
    history = load_history(store, journals)
    violations = find_violations(history, *ALWAYS, *DRAINED)
    assert not violations, f"seed {seed}: {violations}"
    assert drain.claims <= 2 * open_ + 100
    check_invariants(store)
    return history


def note(history: History, folder: Path) -> None:
    """How much happened, for whoever looks."""
    kinds = Counter(event.kind for events in history.events.values() for event in events)
    refused = Counter(call.no for call in history.calls if call.no)
    figures = {"calls": len(history.calls), "events": kinds, "refused": refused}
    (folder / "figures.json").write_text(json.dumps(figures))
