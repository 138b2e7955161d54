"""SQLite with synchronous=FULL: Lessor beside bare SQL on the same disk, in interleaved rounds.

Usage: sqlite.py [ROUNDS [TASKS]]     default 3 rounds of 600 tasks (batches: 10 times that)
Prints one JSON line: tasks a second, and the median of each round's ratio to the raw limit.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import apsw
from work import BATCH, Bench

from lessor import connect

PROCESSES = 4
SCHEMA = """
CREATE TABLE task (
  id INTEGER PRIMARY KEY, status INTEGER NOT NULL DEFAULT 0, owner TEXT,
  generation INTEGER NOT NULL DEFAULT 0, expires REAL, payload TEXT NOT NULL DEFAULT '{}');
CREATE INDEX task_ready ON task (id) WHERE status = 0;
"""
CLAIM = """UPDATE task SET status = 1, owner = ?, generation = generation + 1, expires = ?
 WHERE id IN (SELECT id FROM task WHERE status = 0 ORDER BY id LIMIT ?) RETURNING id, generation"""
COMPLETE = """UPDATE task SET status = 2, owner = NULL, expires = NULL
 WHERE id = ? AND status = 1 AND owner = ? AND generation = ? AND expires >= ?"""


def raw_connection(path: str) -> apsw.Connection:
    db = apsw.Connection(path)
    db.set_busy_timeout(60_000)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    return db


def raw_fill(path: str, tasks: int) -> None:
    db = raw_connection(path)
    db.execute(SCHEMA)
    with db:
        db.executemany("INSERT INTO task (payload) VALUES (?)", (("{}",) for _ in range(tasks)))
    db.close()


def raw_work(db: apsw.Connection, size: int) -> int:
    """Claim and complete until nothing is left: two guarded transactions a round."""
    done = 0
    while True:
        db.execute("BEGIN IMMEDIATE")
        rows = list(db.execute(CLAIM, ("w", time.time() + 60, size)))
        db.execute("COMMIT")
        if not rows:
            break
        db.execute("BEGIN IMMEDIATE")
        now = time.time()
        for row, generation in rows:
            db.execute(COMPLETE, (row, "w", generation, now))
        db.execute("COMMIT")
        done += len(rows)
    return done


def raw_process(gate: Barrier, path: str) -> None:
    db = raw_connection(path)
    gate.wait()
    raw_work(db, 1)
    db.close()


def lessor_process(gate: Barrier, path: str, scopes: bool, share: int) -> None:
    bench = Bench(connect(path), scopes=scopes)
    gate.wait()
    bench.one(share)
    bench.lessor.close()


def timed_processes(target: Callable[..., None], arguments: list[tuple]) -> float:
    """Seconds from the common start, with every store open, to the end of the last process."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(len(arguments) + 1)
    processes = [context.Process(target=target, args=(gate, *a)) for a in arguments]
    for process in processes:
        process.start()
    gate.wait()
    began = time.perf_counter()
    for process in processes:
        process.join()
    assert all(process.exitcode == 0 for process in processes)
    return time.perf_counter() - began


def main() -> None:
    rounds, tasks = (int(a) for a in (*sys.argv[1:], *("3", "600")[len(sys.argv) - 1 :]))
    rates, ratios = defaultdict(list), defaultdict(list)
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            one_round(Path(folder), tasks, rates, ratios)
    print(
        json.dumps(
            {
                "benchmark": "sqlite",
                "version": apsw.sqlite_lib_version(),
                "tasks": tasks,
                "rounds": rounds,
                "per_s": {k: round(statistics.median(v), 1) for k, v in rates.items()},
                "ratio": {k: round(statistics.median(v), 3) for k, v in ratios.items()},
                "ratio_rounds": {k: [round(x, 3) for x in v] for k, v in ratios.items()},
            }
        )
    )


def one_round(folder: Path, tasks: int, rates: dict, ratios: dict) -> None:
    for mode, size in (("one", 1), ("batch", BATCH)):
        count = tasks * (1 if size == 1 else 10)
        raw = str(folder / f"raw-{mode}.db")
        raw_fill(raw, count)
        db = raw_connection(raw)
        began = time.perf_counter()
        assert raw_work(db, size) == count
        limit = count / (time.perf_counter() - began)
        db.close()
        rates[f"raw {mode}"].append(limit)
        for scopes in (False, True):
            name = f"{mode} {'scopes' if scopes else 'free'}"
            bench = Bench(connect(str(folder / f"{name}.db")), scopes=scopes)
            bench.submit(count + 200)
            bench.one(20)
            rates[name].append(getattr(bench, mode)(count))
            ratios[name].append(rates[name][-1] / limit)
            bench.lessor.close()
    raw = str(folder / "raw-four.db")
    count = PROCESSES * tasks
    raw_fill(raw, count)
    limit = count / timed_processes(raw_process, [(raw,)] * PROCESSES)
    rates["raw four"].append(limit)
    for scopes in (False, True):
        name, path = f"four {'scopes' if scopes else 'free'}", str(folder / f"four-{scopes}.db")
        bench = Bench(connect(path), scopes=scopes)
        bench.submit(count)
        bench.lessor.close()
        took = timed_processes(lessor_process, [(path, scopes, tasks)] * PROCESSES)
        rates[name].append(count / took)
        ratios[name].append(rates[name][-1] / limit)


if __name__ == "__main__":
    main()
