"""Pushes raced against re-claims, by what protects the remote; judged by the remote's own history.

Usage: push_race.py [PUSHES [SEED]]     default 10000, half of them each way
Prints one JSON line, and one for each round while it goes on. `stale_tried` are pushes whose lease
was over when the answer came, `stale_accepted` those that moved a branch after another had the task,
`live_refused` holders that were refused while their lease lived; the last two have to be 0, and it
exits with 1 where they aren't. `between` moved a branch after the lease had run out and before
another had the task.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "publish"))

from push_race import WAYS, race

ROUND = 500
LONGEST_S = 900.0
MEMORY = Path("/dev/shm")


def main() -> int:
    pushes = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    ways = {way: raced(way, pushes // len(WAYS), seed) for way in WAYS}
    print(json.dumps({"benchmark": "push_race", "ways": ways}))
    return 1 if any(figures["faults"] for figures in ways.values()) else 0


def raced(way: str, pushes: int, seed: int) -> dict[str, int]:
    """The sum of as many rounds as it takes, each with a remote and a store of its own."""
    total: dict[str, int] = {}
    while (left := pushes - total.get("tried", 0)) > 0:
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            found = race(Path(folder), way, pushes=min(ROUND, left), seed=seed, seconds=LONGEST_S)
        for fault in found.faults:
            print(f"{way}, seed {seed}: {fault}", file=sys.stderr)
        for name, value in asdict(found).items():
            number = len(value) if name == "faults" else value
            total[name] = total.get(name, 0) + number
        print(f"{way}, seed {seed}: {json.dumps(total)}", file=sys.stderr, flush=True)
        seed += 1
    return total


if __name__ == "__main__":
    sys.exit(main())
