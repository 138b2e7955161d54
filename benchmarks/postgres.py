"""PostgreSQL: Lessor beside bare SQL on the same server, in interleaved rounds.

Usage: postgres.py [ROUNDS [TASKS]]     TASKS a mode and round, default 3 rounds of 600 (batches: 10 times that)
Prints one JSON line: tasks a second, and the median of each round's ratio to the raw limit.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict

from raw_postgres import raw_rate
from server import fresh_database, server_version
from work import Bench

from lessor import connect

MODES = {"one": "one", "fused": "fused", "batch": "batch", "fused_batch": "batch"}


def main() -> None:
    rounds, tasks = (int(a) for a in (*sys.argv[1:], *("3", "600")[len(sys.argv) - 1 :]))
    raw = fresh_database("bench_raw")
    dsns = {scopes: fresh_database(f"bench_scopes_{int(scopes)}") for scopes in (False, True)}
    benches = {scopes: Bench(connect(dsn), scopes=scopes) for scopes, dsn in dsns.items()}
    rates, ratios = defaultdict(list), defaultdict(list)
    for bench in benches.values():
        bench.submit(400)
        bench.one(50), bench.fused(50), bench.batch(200)
    for _ in range(rounds):
        limit = {}
        for mode, base in MODES.items():
            count = tasks * (10 if "batch" in mode else 1)
            if base not in limit:
                limit[base] = raw_rate(raw, base, tasks=count)
                rates[f"raw {base}"].append(limit[base])
            for scopes, bench in benches.items():
                name = f"{mode} {'scopes' if scopes else 'free'}"
                bench.submit(count)
                rates[name].append(getattr(bench, mode)(count))
                ratios[name].append(rates[name][-1] / limit[base])
                # fused against one at a time, both Lessor's, of the same round
                if mode == "fused":
                    one = rates[name.replace("fused", "one")][-1]
                    ratios[f"{name} to one"].append(rates[name][-1] / one)
    for bench in benches.values():
        bench.lessor.close()
    print(
        json.dumps(
            {
                "benchmark": "postgres",
                "server": server_version(raw),
                "tasks": tasks,
                "rounds": rounds,
                "per_s": {k: round(statistics.median(v), 1) for k, v in rates.items()},
                "ratio": {k: round(statistics.median(v), 3) for k, v in ratios.items()},
                "ratio_rounds": {k: [round(x, 3) for x in v] for k, v in ratios.items()},
            }
        )
    )


main()
