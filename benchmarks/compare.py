"""The same work by bare SQL, Lessor and its peers, in one run on one server and one disk.

Usage: compare.py [ROUNDS [TASKS [SECTION…]]]
                              default 3 rounds of 600 tasks (batches: 10 times that); the sections are
                              postgres, sqlite, paths
Prints one JSON line. Before each contestant's turn bare SQL has one: a ratio is to that. Settings are durable
everywhere. Peers are installed below benchmarks/.peers; who can't be is told with the reason.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import apsw
from contestants import MODES, SECTIONS, SHARE, Contestant, FailedError, assemble, raw
from server import server_dsn, server_version

WARM = 100


def compare(rounds: int, tasks: int, sections: tuple[str, ...] = SECTIONS) -> dict[str, object]:
    found: dict[str, object] = {"benchmark": "peers", "rounds": rounds, "tasks": tasks}
    for section in sections:
        print(f"peers: {section}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            found[section] = one_section(section, Path(folder), rounds, tasks)
    return found


def one_section(section: str, folder: Path, rounds: int, tasks: int) -> dict[str, object]:
    present, absent = assemble(section, folder)
    limits, per_s, ratios = defaultdict(list), defaultdict(list), defaultdict(list)
    stale = {}
    try:
        for turn in range(rounds + 1):
            for one in list(present):
                try:
                    if turn:
                        a_turn(section, one, tasks, limits, per_s, ratios)
                    else:
                        stale[one.name] = one.stale()
                        one.rate("one", WARM // SHARE.get(section, 1))
                except FailedError as why:
                    absent[one.name] = f"failed: {why}"
                    present.remove(one)
                    one.close()
    finally:
        for one in present:
            one.close()
    return {
        "engine": engine(section),
        "raw_per_s": {mode: round(statistics.median(limits[mode]), 1) for mode in MODES},
        "contestants": [told(one, stale[one.name], per_s, ratios) for one in present],
        "absent": absent,
    }


def a_turn(
    section: str, one: Contestant, tasks: int, limits: dict, per_s: dict, ratios: dict
) -> None:
    for mode in MODES:
        count = tasks * (10 if mode == "batch" else 1)
        limit = raw(section, mode, count)
        limits[mode].append(limit)
        own = count // SHARE.get(section, 1) if one.kind == "peer" else count
        rate = one.rate(mode, max(100, own // 100 * 100) if mode == "batch" else max(1, own))
        if rate is not None:
            per_s[one.name, mode].append(rate)
            ratios[one.name, mode].append(rate / limit)


def told(one: Contestant, stale: dict, per_s: dict, ratios: dict) -> dict[str, object]:
    answer: dict[str, object] = {
        "name": one.name,
        "version": one.version,
        "kind": one.kind,
        "note": one.note,
        "stale": stale,
    }
    for mode in MODES:
        if ratios[one.name, mode]:
            answer[mode] = {
                "per_s": round(statistics.median(per_s[one.name, mode]), 1),
                "ratio": round(statistics.median(ratios[one.name, mode]), 4),
                "ratio_rounds": [round(ratio, 4) for ratio in ratios[one.name, mode]],
            }
    return answer


def engine(section: str) -> str:
    if section == "postgres":
        return f"PostgreSQL {server_version(server_dsn()).split()[0]}"
    return f"SQLite {apsw.sqlite_lib_version()}, synchronous=FULL"


def main() -> None:
    rounds, tasks = (int(a) for a in (*sys.argv[1:3], *("3", "600")[len(sys.argv[1:3]) :]))
    print(json.dumps(compare(rounds, tasks, tuple(sys.argv[3:]) or SECTIONS)))


if __name__ == "__main__":
    main()
