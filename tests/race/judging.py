"""What anybody finds who opens a store after its writer's end, and whether the store goes on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from checker import ALWAYS, find_violations
from history import History, load_history
from journal import read_calls
from writer import Writer

from builders import StoreUnderTest
from invariants import check_invariants

EVERY_OP = {"submit", "claim", "renew", "widen", "complete"}


def judge(store: StoreUnderTest, journals: Path) -> History:
    """Look at the store and at everything that writers were told; AssertionError for what is wrong."""
    if store.kind == "sqlite":
        with closing(store.raw()) as opened:
            assert opened.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    check_invariants(store)
    history = load_history(store, journals)
    assert not (violations := find_violations(history, *ALWAYS)), violations
    told = [call.ok["tasks"] for call in history.calls if call.op == "submit" and call.ok]
    lost = {task for tasks in told for task in tasks} - set(history.tasks)
    assert not lost, f"tasks that somebody was told of are gone: {sorted(lost)}"
    return history


def go_on(store: StoreUnderTest, journals: Path, *, turns: int) -> None:
    """The next writer works as if nothing had happened."""
    writer = Writer(store.url, journals / "next")
    try:
        for turn in range(turns):
            writer.write(turn)
    finally:
        writer.lessor.close()
    done = {call.op for call in read_calls(journals / "next") if call.ok is not None}
    assert done >= EVERY_OP, f"only {sorted(done)} were done"
