"""What Lessor's own Python leaves to be reached: its calls on a store that does no more than bare SQL.

Each statement of a claim and a completion is answered from what it said once, after the bare claim or
completion has been run and committed in its place. What is missing to 1 no better SQL can bring.

Usage: ceiling.py [ROUNDS [TASKS [STORE]]]     default 3 rounds of 600, both stores ("sqlite" or "postgres" for one)
Prints one JSON line a store: the median of the rounds' ratios to the bare pair, and the rounds.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import psycopg
from raw_postgres import CLAIM, COMPLETE, fill, raw_rate
from server import fresh_database
from sqlite import CLAIM as SQLITE_CLAIM
from sqlite import COMPLETE as SQLITE_COMPLETE
from sqlite import raw_connection, raw_fill, raw_work
from work import Bench, seconds

from lessor import Grant, Result, connect
from lessor.service.leases import Leases
from lessor.store.postgres.line import Line, parse_statement
from lessor.store.sqlite.store import SqliteStore

BARE = {"claim": parse_statement(CLAIM), "complete": parse_statement(COMPLETE)}


class BareSqlite:
    """A connection on which every transaction of a claim or a completion is the bare one.

    Args:
        bare: where the bare statements run; None runs what is asked, and remembers its rows.
    """

    def __init__(self, real: apsw.Connection, kept: dict[str, list[tuple]]) -> None:
        self._real = real
        self._kept = kept
        self.bare: apsw.Connection | None = None
        self._row: tuple = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property
    def in_transaction(self) -> bool:
        return (self.bare or self._real).in_transaction

    def execute(self, text: str, values: object = None) -> Answer:
        if self.bare is None:
            self._kept[text] = list(self._real.execute(text, values))
            return Answer(self._kept[text])
        if text in ("BEGIN IMMEDIATE", "COMMIT"):
            self.bare.execute(text)
        elif "INTO request" in text:
            (self._row,) = self.bare.execute(SQLITE_CLAIM, ("w", time.time() + 60, 1))
        elif "end_digest" in text:
            row, generation = self._row
            self.bare.execute(SQLITE_COMPLETE, (row, "w", generation, time.time()))
        return Answer(self._kept[text])


class Answer(list):
    """Rows, as a cursor gives them."""

    def fetchone(self) -> tuple | None:
        return self[0] if self else None


def _store_of(bench: Bench) -> Any:
    return bench.lessor.leases._store  # noqa: SLF001 - what is measured is what stands before it


def sqlite(folder: Path, tasks: int) -> float:
    """The ratio of one round: Lessor's calls on bare SQL, to bare SQL."""
    rates = []
    for name in ("raw", "under"):
        raw_fill(str(folder / name), tasks)
    raw = raw_connection(str(folder / "raw"))
    rates.append(tasks / seconds(lambda: raw_work(raw, 1)))
    raw.close()
    bench = Bench(connect(str(folder / "lessor.db")), scopes=False)
    bench.submit(10)
    store: SqliteStore = _store_of(bench)
    store._db = shown = BareSqlite(store._db, {})  # noqa: SLF001
    grant = _shown(bench)
    shown.bare = raw_connection(str(folder / "under"))
    rates.append(_calls(bench, grant, tasks))
    (left,) = shown.bare.execute("SELECT count(*) FROM task WHERE status <> 2").fetchone()
    assert left == 0, "the bare statements did less than the calls"
    shown.bare.close()
    shown.bare = None
    bench.lessor.close()
    return rates[1] / rates[0]


class BareLine(Line):
    """A connection that packs and sends, and sends the bare statement."""

    kept: dict[str, list[list[tuple]]] | None = None
    row: tuple = ()

    def send(self, calls: Sequence[tuple[str, Any]]) -> list[list[tuple]]:
        name = calls[-1][0]
        if self.kept is None or name == "discard_plans":
            return super().send(calls)
        for call in calls:
            self._pack(*call)
        if name == "claim_next_free":
            ((self.row,),) = self.bare.send([("claim", {})])
        else:
            self.bare.send([("complete", {"id": self.row[0], "generation": self.row[1]})])
        return self.kept[name]


def postgres(dsn: str, raw_dsn: str, tasks: int) -> float:
    """The same on PostgreSQL."""
    limit = raw_rate(raw_dsn, "one", tasks=tasks)
    fill(raw_dsn, tasks)
    bench = Bench(connect(dsn), scopes=False)
    bench.submit(10)
    line = _store_of(bench)._line()  # noqa: SLF001
    line.__class__ = BareLine
    kept: dict[str, list[list[tuple]]] = {}
    line.send = lambda calls: kept.setdefault(calls[-1][0], BareLine.send(line, calls))
    grant = _shown(bench)
    del line.send
    with psycopg.connect(raw_dsn, autocommit=True, prepare_threshold=None) as db:
        line.bare, line.kept = Line(db, BARE, prepared=True), kept
        rate = _calls(bench, grant, tasks)
        (left,) = db.execute("SELECT count(*) FROM raw_task WHERE status <> 2").fetchone()
        assert left == 0, "the bare statements did less than the calls"
    line.kept = None
    bench.lessor.close()
    return rate / limit


def _shown(bench: Bench) -> Grant:
    """A claim and a completion whose answers are remembered."""
    bench.one(3)
    (grant,) = bench.lessor.leases.claim(bench.request())
    bench.lessor.leases.complete_one(grant.holder, Result())
    return grant


def _calls(bench: Bench, grant: Grant, tasks: int) -> float:
    leases: Leases = bench.lessor.leases

    def work() -> None:
        for _ in range(tasks):
            (_,) = leases.claim(bench.request())
            leases.complete_one(grant.holder, Result())

    return tasks / seconds(work)


def main() -> None:
    rounds, tasks, only = (*sys.argv[1:], *("3", "600", "both")[len(sys.argv) - 1 :])
    ratios: dict[str, list[float]] = {}
    for turn in range(int(rounds)):
        if only != "postgres":
            with tempfile.TemporaryDirectory() as folder:
                ratios.setdefault("sqlite", []).append(sqlite(Path(folder), int(tasks)))
        if only != "sqlite":
            dsns = fresh_database(f"bench_ceiling_{turn}"), fresh_database("bench_raw")
            ratios.setdefault("postgres", []).append(postgres(*dsns, int(tasks)))
    for store, found in ratios.items():
        print(
            json.dumps(
                {
                    "benchmark": "ceiling",
                    "store": store,
                    "tasks": int(tasks),
                    "ratio": round(statistics.median(found), 3),
                    "ratio_rounds": [round(x, 3) for x in found],
                }
            )
        )


if __name__ == "__main__":
    main()
