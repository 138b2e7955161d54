"""How costs grow: each curve over its sizes, with the exponent that fits best.

Usage: curves.py [CURVE[=LARGEST]…]     all of them with small bounds; tasks=10000000 goes further
  tasks      a claim over so many stored, finished tasks           from 1000, tenfold
  leases     a claim beside so many live leases                    from 100, tenfold
  workers    tasks a second of so many processes on PostgreSQL     from 1, doubled
  branches   what became of so many branches                       from 100, tenfold
  memory     an idle worker with so many agents                    from 1, doubled; Linux only
Prints one JSON line a curve. The sizes of `tasks` and `leases` are databases that are all open and
measured in turns, so that a machine that is busy for a while doesn't bend the curve.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from fit import exponent, largest_to_smallest
from history import copy_history
from raw_postgres import raw_rate
from server import drop_database, fresh_database, server_dsn
from work import Bench

from lessor import Result, connect
from lessor.errors import BusyError

HERE = Path(__file__).resolve().parent
SMALL = {"tasks": 100_000, "leases": 10_000, "workers": 8, "branches": 1_000, "memory": 4}
FULL = {"tasks": 10_000_000, "leases": 1_000_000, "workers": 64, "branches": 10_000, "memory": 16}
STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
TURNS = 6
SAMPLES = 50
"""Claims of one turn."""
SEEDS = 1_000
"""Tasks that are really worked off, and then copied."""
DAY_MS = 86_400_000
SHARED = 1_200
"""Tasks that the processes share; at least twenty each."""


def sizes(smallest: int, largest: int, factor: int) -> list[int]:
    found = [smallest]
    while found[-1] * factor <= largest:
        found.append(found[-1] * factor)
    return found


def tasks(largest: int) -> dict[str, object]:
    return _claims("stored tasks", _with_history, sizes(1_000, largest, 10))


def leases(largest: int) -> dict[str, object]:
    return _claims("live leases", _beside_leases, sizes(100, largest, 10))


def _claims(x: str, made: Callable[[str, int], Bench], steps: list[int]) -> dict[str, object]:
    """The median claim of one task with a path, at each size on both stores."""
    server_dsn()  # a server that doesn't start is told before the hours, not after
    series = []
    for kind, name in STORES.items():
        with ExitStack() as open_:
            benches = {}
            for size in steps:
                print(f"  {name}, {size:,} {x}", file=sys.stderr, flush=True)
                url = open_.enter_context(_place(kind, size))
                benches[size] = made(url, size)
                open_.callback(benches[size].lessor.close)
                benches[size].submit((TURNS + 1) * SAMPLES)
            found = {size: [] for size in steps}
            for turn in range(TURNS + 1):
                for size, bench in benches.items():
                    took = _milliseconds(bench)
                    if turn:  # the first ones read the pages
                        found[size] += took
        series.append(_series(name, [(n, statistics.median(ms)) for n, ms in found.items()]))
        print(f"  {json.dumps(series[-1])}", file=sys.stderr, flush=True)
    return {"x": x, "y": "ms a claim, median", "series": series}


@contextmanager
def _place(kind: str, size: int):
    if kind == "postgres":
        name = f"bench_curve_{size}"
        try:
            yield fresh_database(name)
        finally:
            drop_database(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder, "curve.db"))


def _with_history(url: str, size: int) -> Bench:
    bench = Bench(connect(url), scopes=True)
    bench.submit(SEEDS)
    bench.batch(SEEDS)
    bench.lessor.leases.sweep()  # what is still to be tidied would be copied with the rest
    bench.lessor.close()
    if size > SEEDS:
        copy_history(url, size // SEEDS - 1)
    return Bench(connect(url), scopes=True)


def _beside_leases(url: str, size: int) -> Bench:
    bench = Bench(connect(url), scopes=True)
    bench.submit(size)
    left = size
    while left > 0:
        wish = replace(bench.request(min(1_000, left)), ttl_ms=DAY_MS)
        left -= len(bench.lessor.leases.claim(wish))
    return bench


def _milliseconds(bench: Bench) -> list[float]:
    taken = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        (grant,) = bench.lessor.leases.claim(bench.request())
        taken.append(1e3 * (time.perf_counter() - began))
        bench.lessor.leases.complete_one(grant.holder, Result())
    return taken


def workers(largest: int) -> dict[str, object]:
    """All processes begin at once with their stores open; the clock stops with the last task."""
    found = {"bare SQL": [], "Lessor": [], "Lessor, a path each": []}
    for count in sizes(1, largest, 2):
        print(f"  {count} workers", file=sys.stderr, flush=True)
        share = max(20, SHARED // count)
        limit = raw_rate(fresh_database("bench_raw"), "one", tasks=share * count, clients=count)
        found["bare SQL"].append((count, limit))
        for name, scopes in (("Lessor", False), ("Lessor, a path each", True)):
            found[name].append((count, _together(count, share, scopes=scopes)))
    return {
        "x": "worker processes",
        "y": "tasks a second together",
        "more_is_better": True,
        "series": [_series(name, points) for name, points in found.items()],
    }


def _together(count: int, share: int, *, scopes: bool) -> float:
    url = fresh_database("bench_workers")
    bench = Bench(connect(url), scopes=scopes)
    bench.submit(count * (share + 2))
    context = multiprocessing.get_context("spawn")
    gate, ends = context.Barrier(count + 1), context.Array("d", count)
    places = range(count)
    processes = [
        context.Process(target=_worker, args=(gate, ends, place, url, scopes, share))
        for place in places
    ]
    for process in processes:
        process.start()
    gate.wait(timeout=600)
    began = time.perf_counter()
    for process in processes:
        process.join()
    bench.lessor.close()
    assert all(process.exitcode == 0 for process in processes)
    return count * share / (max(ends) - began)


def _worker(gate: Barrier, ends: Any, place: int, url: str, scopes: bool, share: int) -> None:
    bench = Bench(connect(url), scopes=scopes)
    _work(bench, 2)
    gate.wait(timeout=600)
    _work(bench, share)
    ends[place] = time.perf_counter()
    bench.lessor.close()


def _work(bench: Bench, share: int) -> None:
    """Work off so many tasks, and try again where the store asks for it, as `lessor run` does."""
    done = 0
    while done < share:
        try:
            held = bench.lessor.leases.claim(bench.request())
        except BusyError as busy:
            time.sleep(int(busy.facts["retry_ms"] or 0) / 1_000)
            continue
        for grant in held:
            bench.lessor.leases.complete_one(grant.holder, Result())
            done += 1


def branches(largest: int) -> dict[str, object]:
    waited, computed = [], []
    for count in sizes(100, largest, 10):
        print(f"  {count:,} branches", file=sys.stderr, flush=True)
        said = _script("landed.py", count)
        assert said["wrong"] == 0, said["wrong_kinds"]
        waited.append((count, said["seconds"]))
        computed.append((count, said["computed_s"]))
    series = [_series("waited", waited), _series("computed", computed)]
    return {"x": "branches", "y": "seconds to tell what landed", "series": series}


def memory(largest: int) -> dict[str, object]:
    points = []
    for count in sizes(1, largest, 2):
        print(f"  {count} agents", file=sys.stderr, flush=True)
        kilobytes = _script("memory.py", count)["kilobytes"]["together"]["pss"]
        points.append((count, kilobytes / 1_000))
    series = [_series("worker and heartbeats", points)]
    return {"x": "idle agents of one worker", "y": "MB of memory", "series": series}


def _script(name: str, *arguments: object) -> dict[str, Any]:
    line = [sys.executable, "-W", "ignore", str(HERE / name), *map(str, arguments)]
    done = subprocess.run(line, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def _series(name: str, points: list[tuple[int, float]]) -> dict[str, object]:
    slope, ends = exponent(points), largest_to_smallest(points)
    return {
        "name": name,
        "points": [[x, float(f"{y:.4g}")] for x, y in points],
        "exponent": None if slope is None else round(slope, 3),
        "largest_to_smallest": None if ends is None else round(ends, 2),
    }


CURVES = {
    "tasks": tasks,
    "leases": leases,
    "workers": workers,
    "branches": branches,
    "memory": memory,
}


def curve(name: str, largest: int) -> dict[str, object]:
    print(f"curve: {name} to {largest:,}", file=sys.stderr, flush=True)
    return {"curve": name, "largest": largest, **CURVES[name](largest)}


def main() -> None:
    for asked in sys.argv[1:] or CURVES:
        name, _, largest = asked.partition("=")
        print(json.dumps(curve(name, int(largest or SMALL[name]))), flush=True)


if __name__ == "__main__":
    main()
