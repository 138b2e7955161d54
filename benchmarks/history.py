"""What a claim costs beside a long history, and while an old transaction pins PostgreSQL's vacuum.

Usage: history.py [FINISHED [PINNED [STORE…]]]
                              default 5,000,000 finished tasks, 40,000 worked off under a pin, both stores
Prints one JSON line each. The history is made of tasks that Lessor finished: their rows are copied
with other ids, for a day's work of calls would say the same.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import psycopg
from growth import SAMPLES, claims
from server import fresh_database
from work import Bench

from lessor import connect

DEFAULTS = ("5000000", "40000")
SEEDS = 2_000
"""Tasks that are really worked off, and then copied."""
STEP = 2 * SEEDS
"""How far the ids of one copy lie from the next: numbers that were drawn and not used leave gaps."""
SHIFTED = {
    "task": ("id",),
    "submission": ("task_id", "number"),
    "task_scope": ("task_id",),
    "lease": ("id", "task_id", "fence"),
    "event": ("task_id",),
}
"""The tables of a finished task, with the columns that tell one from another."""
PART = 500
"""How many tasks are timed at once, of those that are worked off under a pin."""


def finished(kind: str, wanted: int) -> dict[str, object]:
    with opened(kind) as (url, bench):
        bench.submit(SAMPLES)
        before = claims(bench)
        bench.submit(SEEDS - SAMPLES)
        bench.batch(SEEDS - SAMPLES)
        bench.lessor.leases.sweep()  # what is still to be tidied would be copied with the rest
        copies = copy_history(url, wanted // SEEDS)
        bench.lessor.close()
        later = Bench(connect(url), scopes=True)
        later.submit(2 * SAMPLES)
        claims(later)  # the first ones read the pages
        beside = claims(later)
        later.lessor.close()
    return {
        "benchmark": "finished tasks",
        "store": kind,
        "finished": SEEDS * (copies + 1),
        "before": before,
        "beside": beside,
        "ratio_p50": round(beside["p50_ms"] / before["p50_ms"], 2),
    }


def copy_history(url: str, copies: int) -> int:
    """Write the rows of the finished tasks again, `copies` times; how often it was done."""
    if url.startswith("postgres"):
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("SET session_replication_role = replica")
            _copy(lambda sql: _rows(db.execute(sql)), "lessor.", copies, series=PG_SERIES)
            for table in ("task", "lease"):
                db.execute(
                    f"SELECT setval(pg_get_serial_sequence('lessor.{table}', 'id'), max(id))"
                    f" FROM lessor.{table}"
                )
            db.execute("VACUUM ANALYZE")
            db.execute("CHECKPOINT")
        return copies
    db = apsw.Connection(url)
    db.execute("PRAGMA synchronous=OFF")
    with db:
        _copy(lambda sql: list(db.execute(sql)), "", copies, series=LITE_SERIES)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return copies


def _rows(cursor: psycopg.Cursor) -> list:
    return cursor.fetchall() if cursor.description else []


PG_SERIES = "(SELECT * FROM generate_series(1, {copies}) AS k) AS copy"
LITE_SERIES = (
    "(WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM c WHERE k < {copies})"
    " SELECT k FROM c) AS copy"
)


def _copy(run: Callable[[str], list], schema: str, copies: int, *, series: str) -> None:
    for table, shifted in SHIFTED.items():
        columns = _columns(run, schema, table)
        values = ", ".join(
            f"x.{c} + {STEP} * copy.k" if c in shifted else f"x.{c}" for c in columns
        )
        run(
            f"INSERT INTO {schema}{table} ({', '.join(columns)}) SELECT {values}"
            f" FROM {series.format(copies=copies)} CROSS JOIN {schema}{table} AS x"
        )
    grown = STEP * (copies + 1)
    run(f"UPDATE {schema}counter SET fence = fence + {grown} WHERE repository_id > 0")
    run(f"UPDATE {schema}repository SET last_number = last_number + {grown} WHERE id > 0")


def _columns(run: Callable[[str], list], schema: str, table: str) -> list[str]:
    if schema:
        asked = (
            "SELECT column_name FROM information_schema.columns"
            f" WHERE table_schema = 'lessor' AND table_name = '{table}'"
        )
    else:
        asked = f"SELECT name FROM pragma_table_info('{table}')"
    return [str(row[0]) for row in run(asked)]


def pinned(total: int) -> dict[str, object]:
    """Two databases, worked off in turns; in one a transaction that began before stays open."""
    shares: dict[str, list[float]] = {"free": [], "pinned": []}
    urls = {name: fresh_database(f"bench_{name}") for name in shares}
    benches = {name: Bench(connect(url), scopes=True) for name, url in urls.items()}
    for bench in benches.values():
        bench.submit(total + PART)
        bench.one(PART)
    with psycopg.connect(urls["pinned"]) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM lessor.task")
        for _ in range(total // PART):
            for name, bench in benches.items():
                shares[name].append(bench.one(PART))
    for bench in benches.values():
        bench.lessor.close()
    last = slice(-max(1, len(shares["free"]) // 4), None)
    slower = [f / p for f, p in zip(shares["free"][last], shares["pinned"][last], strict=True)]
    return {
        "benchmark": "pinned vacuum",
        "tasks": total,
        "per_s": {name: round(statistics.median(rates[last]), 1) for name, rates in shares.items()},
        "times_slower_at_the_end": round(statistics.median(slower), 2),
    }


@contextmanager
def opened(kind: str) -> Iterator[tuple[str, Bench]]:
    with tempfile.TemporaryDirectory() as folder:
        url = str(Path(folder) / "h.db") if kind == "sqlite" else fresh_database("bench_history")
        yield url, Bench(connect(url), scopes=True)


def main() -> None:
    wanted, total = (int(a) for a in (*sys.argv[1:3], *DEFAULTS[len(sys.argv[1:3]) :]))
    kinds = sys.argv[3:] or ["sqlite", "postgres"]
    for kind in kinds:
        if wanted:
            print(json.dumps(finished(kind, wanted)), flush=True)
    if total and "postgres" in kinds:
        print(json.dumps(pinned(total)), flush=True)


if __name__ == "__main__":
    main()
