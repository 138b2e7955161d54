"""What became of thousands of branches of every kind: how long it takes, and how many are right.

Usage: landed.py [BRANCHES [SEED]]     default 5000, 1
Prints one JSON line: seconds of this process and of git (waited and computed), processes, mistakes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "git"))

from branch_kinds import tell

from lessor.git.landed import Asked, what_landed
from lessor.git.target import named_target


def count_processes(directory: Path) -> Path:
    """Put a program in git's place that notes each start; the file with a line for each."""
    where = subprocess.run(["git", "--exec-path"], capture_output=True, check=True, text=True)
    log = directory / "started"
    log.touch()
    program = directory / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho >> '{log}'\nexec '{where.stdout.strip()}/git' \"$@\"\n")
    program.chmod(0o755)
    os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    return log


def main(branches: int = 5_000, seed: int = 1) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory) / "many"
        subprocess.run(["git", "init", "-q", "-b", "main", str(top)], check=True)
        made = tell(top, seed=seed, branches=branches)
        asked = [Asked(branch=one.branch, base=one.base, seen=one.seen) for one in made]
        listed = ["git", "rev-list", "--count", "--all"]
        commits = subprocess.run(listed, cwd=top, capture_output=True, check=True).stdout
        log = count_processes(Path(directory))
        before, began = os.times(), time.perf_counter()
        target = named_target(top / ".git", "main")
        found = what_landed(top / ".git", asked, target=target)
        took, after = time.perf_counter() - began, os.times()
        processes = len(log.read_text().splitlines())
    wrong = [
        one.kind for one, other in zip(made, found, strict=True) if one.verdict != other.verdict
    ]
    computed = sum(after[:4]) - sum(before[:4])
    print(
        json.dumps(
            {
                "benchmark": "landed",
                "branches": branches,
                "commits": int(commits),
                "seconds": round(took, 2),
                "computed_s": round(computed, 2),
                "processes": processes,
                "wrong": len(wrong),
                "wrong_kinds": sorted(set(wrong)),
                "load": round(os.getloadavg()[0], 1),
            }
        )
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
