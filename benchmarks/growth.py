"""What a claim costs beside much of everything: live leases, and parked tasks.

Usage: growth.py [SCALE [STORE]]     default 100000, both stores ("sqlite" or "postgres" for one)
Prints one JSON line a store: p50 and p99 of a claim, without and beside.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from server import fresh_database
from work import Bench, percentiles

from lessor import NewTask, Result, connect

SAMPLES = 2_400
TURNS = 12
_RESULT = Result()


def claims(bench: Bench, samples: int) -> list[float]:
    """Claim and complete one by one; the seconds that each claim took."""
    times = []
    for _ in range(samples):
        began = time.perf_counter()
        (grant,) = bench.lessor.leases.claim(bench.request())
        times.append(time.perf_counter() - began)
        bench.lessor.leases.complete_one(grant.holder, _RESULT)
    return times


def globs(bench: Bench, samples: int = SAMPLES) -> list[float]:
    """The same for tasks whose scope is a glob."""
    bench.lessor.tasks.submit(
        [
            NewTask(title=f"glob {n}", repository=bench.repository, scopes=(f"web/g{n}/**/*.ts",))
            for n in range(samples)
        ]
    )
    return claims(bench, samples)


def beside_live_leases(bench: Bench, scale: int) -> None:
    bench.submit(scale)
    left = scale
    while left > 0:
        held = bench.lessor.leases.claim(bench.request(min(1_000, left)))
        left -= len(held)


def beside_waiters(bench: Bench, scale: int) -> None:
    """One lease over `hot`, and a backlog that all waits for it."""
    bench.lessor.tasks.submit([NewTask(title="hot", repository=bench.repository, scopes=("hot",))])
    (_,) = bench.lessor.leases.claim(bench.request())
    for start in range(0, scale, 5_000):
        bench.lessor.tasks.submit(
            [
                NewTask(title=f"wait {n}", repository=bench.repository, scopes=(f"hot/f{n}",))
                for n in range(start, min(start + 5_000, scale))
            ]
        )
    bench.submit(1)
    while not (held := bench.lessor.leases.claim(bench.request())):
        pass  # each claim parks what it passes, thousands at a time
    bench.lessor.leases.complete_one(held[0].holder, _RESULT)


def one_store(kind: str, scale: int) -> dict[str, object]:
    """A store with the load and one without, measured in turns: a busy minute meets both."""
    answer: dict[str, object] = {"benchmark": "growth", "store": kind, "scale": scale}
    for name, load in (("live leases", beside_live_leases), ("waiters", beside_waiters)):
        with tempfile.TemporaryDirectory() as folder:
            plain, loaded = (Bench(connect(_place(kind, folder, n)), scopes=True) for n in (1, 2))
            load(loaded, scale)
            taken = {f"without {name}": [], f"beside {name}": []}
            for _ in range(TURNS):
                for bench, label in zip((plain, loaded), taken, strict=True):
                    bench.submit(SAMPLES // TURNS)
                    taken[label] += claims(bench, SAMPLES // TURNS)
            if name == "live leases":
                taken["globs beside live leases"] = globs(loaded)
            answer |= {label: percentiles(times) for label, times in taken.items()}
            plain.lessor.close(), loaded.lessor.close()
    return answer


def _place(kind: str, folder: str, number: int) -> str:
    if kind == "sqlite":
        return str(Path(folder, f"{number}.db"))
    return fresh_database(f"bench_growth_{number}")


def main() -> None:
    scale = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for kind in sys.argv[2:] or ["sqlite", "postgres"]:
        print(json.dumps(one_store(kind, scale)), flush=True)


if __name__ == "__main__":
    main()
