"""A writer is killed at any moment: nothing that it was told is lost, nothing is half written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from checker import ALWAYS, find_violations
from history import History, load_history
from journal import read_calls
from writer import Writer

from builders import MakeStore, StoreUnderTest
from declared import STORE_CODES
from invariants import check_invariants
from lessor.clock import SystemClock

PROGRAM = Path(__file__).with_name("writer.py")
KILLS = {"sqlite": 200, "postgres": 40}
LATEST_MS = 160
"""A writer lives no longer than this after its fork."""
STORES = 10
MAKERS = 3
OPENED_MS = 60


class Host:
    """The process that forks writers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def kill_one(self, url: str, journal: Path, *, after_ms: int) -> None:
        """Let a writer begin, and kill it."""
        self._tell(json.dumps([url, str(journal)]) + "\n")
        pid = int(self._hear())
        SystemClock().wait(after_ms)
        os.kill(pid, signal.SIGKILL)
        assert self._hear() == "gone"

    def _tell(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


@pytest.fixture
def host() -> Iterator[Host]:
    """A host for the length of a test."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        yield Host(process)
        assert process.stdin
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.race
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_kill_loses_what_a_writer_was_told(
    make_store: MakeStore, host: Host, journals: Path, kind: str
) -> None:
    store, rng = make_store(kind, real_time=True), Random(11)
    store.connect()
    for number in range(KILLS[kind]):
        after = rng.randrange(5, LATEST_MS)
        host.kill_one(store.url, journals / f"{number:03}", after_ms=after)
        judge(store, journals)
    go_on(store, journals)
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
        go_on(store, own)
        judge(store, own)


def go_on(store: StoreUnderTest, journals: Path) -> None:
    """The next writer works as if nothing had happened."""
    writer = Writer(store.url, journals / "last")
    for turn in range(5):
        writer.write(turn)
    writer.lessor.close()
    acknowledged = [call.op for call in read_calls(journals / "last") if call.ok is not None]
    assert {"submit", "claim", "renew", "widen", "complete"} <= set(acknowledged)


def judge(store: StoreUnderTest, journals: Path) -> History:
    """Look at the store as somebody who opens it now, and at everything that writers were told."""
    if store.kind == "sqlite":
        with closing(store.raw()) as opened:
            assert opened.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    check_invariants(store)
    history = load_history(store, journals)
    assert not (violations := find_violations(history, *ALWAYS)), violations
    return history
