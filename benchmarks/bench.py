"""Everything in one run: Lessor's own goals, peers and curves; one JSON file and one SVG page.

Usage: bench.py [--full] [--docs] [--rounds=3] [--tasks=600] [PART…]
Parts: goals; postgres, sqlite, paths (beside peers); tasks, leases, workers, branches, memory (curves).
All of them unless told; a part that is named replaces itself in the file there is, the rest stays.
Writes build/bench/bench.json and bench.svg after each part, with --docs also docs/benchmarks.json
and docs/benchmarks.svg. --full takes the largest bounds, and hours.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import apsw
from compare import compare
from contestants import SECTIONS
from curves import FULL, SMALL, curve
from page import draw
from server import server_dsn, server_version

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "bench" / "bench.json"
GOALS = ("postgres.py", "sqlite.py")
PARTS = ("goals", *SECTIONS, *SMALL)


@dataclass(frozen=True)
class Size:
    """How much is measured: rounds, tasks of a round, and whether curves go to their largest size."""

    rounds: int = 3
    tasks: int = 600
    full: bool = False


def made(size: Size) -> dict[str, object]:
    """When, where and with what a run was made."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "size": "full" if size.full else "small",
        "rounds": size.rounds,
        "tasks": size.tasks,
        "cores": os.cpu_count(),
        "load": [round(os.getloadavg()[0], 1)],
        "system": f"{platform.system()} {platform.machine()}",
        "lessor": version("lessor"),
        "python": platform.python_version(),
        "git": git.split()[2],
        "sqlite": apsw.sqlite_lib_version(),
        "postgres": server_version(server_dsn()).split()[0],
    }


def goals(size: Size) -> list[dict]:
    """What Lessor's own scripts print, with the modes that have no like among peers."""
    said = []
    for name in GOALS:
        print(f"goals: {name}", file=sys.stderr, flush=True)
        line = [sys.executable, "-W", "ignore", str(ROOT / "benchmarks" / name)]
        line += [str(size.rounds), str(size.tasks)]
        done = subprocess.run(line, stdout=subprocess.PIPE, check=True, text=True)
        said.append(json.loads(done.stdout.splitlines()[-1]))
    return said


def measure(run: dict, part: str, size: Size) -> None:
    """Put a part's figures into the run."""
    if part == "goals":
        run["goals"] = goals(size)
    elif part in SECTIONS:
        found = compare(size.rounds, size.tasks, (part,))
        run["peers"] = run.get("peers", {}) | {part: found[part]}
    else:
        found = curve(part, (FULL if size.full else SMALL)[part])
        others = [one for one in run.get("curves", ()) if one["curve"] != part]
        order = list(SMALL)
        run["curves"] = sorted([*others, found], key=lambda one: order.index(one["curve"]))


def write(run: dict, *, docs: bool) -> None:
    places = [PLACE]
    if docs:
        places.append(ROOT / "docs" / "benchmarks.json")
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(run, indent=1, ensure_ascii=False) + "\n"
        place.write_text(text, encoding="utf-8")
        place.with_suffix(".svg").write_text(draw(run), encoding="utf-8")


def main() -> None:
    options = dict(a[2:].partition("=")[::2] for a in sys.argv[1:] if a.startswith("--"))
    parts = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if set(options) - {"full", "docs", "rounds", "tasks"} or set(parts) - set(PARTS):
        raise SystemExit(__doc__)
    counts = {name: int(options[name]) for name in ("rounds", "tasks") if name in options}
    size = Size(**counts, full="full" in options)
    run = json.loads(PLACE.read_text(encoding="utf-8")) if parts and PLACE.exists() else {}
    loads = run.get("made", {}).get("load", [])
    run["made"] = made(size)
    for part in parts or PARTS:
        loads = [*loads, round(os.getloadavg()[0], 1)]
        measure(run, part, size)
        loads = [*loads, round(os.getloadavg()[0], 1)]
        run["made"]["load"] = [min(loads), max(loads)]
        write(run, docs="docs" in options)
    print(PLACE.with_suffix(".svg"))


if __name__ == "__main__":
    main()
