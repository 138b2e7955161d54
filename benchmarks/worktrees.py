"""A look at a worktree, and its salvage beside large dependencies: how long, and how many bytes.

Usage: worktrees.py [FILES [LOOKS [MEGABYTES]]]     default 5000, 20, 1000
Prints one JSON line: milliseconds of a look at a clean and at a dirty worktree of so many files
(the median and the longest, and what this process and git computed), and the seconds and bytes of a
salvage beside a node_modules of that size.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lessor.git.inspection import inspect_worktree, take_snapshot
from lessor.git.repository import find_repository, head_commit
from lessor.git.salvage import salvage
from lessor.git.worktree import add_worktree
from lessor.runner.occupants import occupants

PER_DIRECTORY = 50
PER_PACKAGE = 40
DEPENDENCIES = 20_000


def git(cwd: Path, *args: str) -> None:
    named = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *named, *args], cwd=cwd, check=True, capture_output=True)


def make(top: Path, files: int) -> None:
    """A repository with so many files of 5 kB."""
    for number in range(files):
        path = top / f"d{number // PER_DIRECTORY}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 500)
    (top / ".gitignore").write_text("node_modules/\n.env\nbuild/\n")
    git(top, "init", "-q", "-b", "main")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "begin")


def depend(worktree: Path, megabytes: int) -> None:
    """Dependencies of so many megabytes in twenty thousand files, as a package manager leaves them."""
    block = os.urandom(megabytes * 1_000_000 // DEPENDENCIES)
    for number in range(DEPENDENCIES):
        path = worktree / "node_modules" / f"p{number // PER_PACKAGE}" / f"{number}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(block)


def timed(looks: int, call: Callable[[], object]) -> list[float]:
    """Milliseconds of each call."""
    taken = []
    for _ in range(looks):
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def main(files: int = 5_000, looks: int = 20, megabytes: int = 1_000) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top, worktree = Path(directory) / "mid", Path(directory) / "trees" / "1-x-e1"
        make(top, files)
        repo, base = find_repository(top), head_commit(top)
        add_worktree(repo, path=worktree, branch="ai/1-x", base=base, task="1", epoch=1, reason="x")
        (worktree / ".env").write_text("SECRET=1\n")
        snapshot = take_snapshot(worktree)

        def look() -> None:
            inspect_worktree(worktree, base=base, snapshot=snapshot, occupants=occupants)

        before = os.times()
        clean = timed(looks, look)
        computed = (sum(os.times()[:4]) - sum(before[:4])) * 1000 / looks
        depend(worktree, megabytes)
        beside = timed(looks, look)
        (worktree / "new.txt").write_text("new\n" * 1000)
        (worktree / "d0" / "f0.txt").write_text("changed\n")
        (worktree / "build").mkdir()
        (worktree / "build" / "out").write_text("made\n")
        dirty = timed(looks, look)
        archives = Path(directory) / "salvage"
        began = time.perf_counter()
        saved = salvage(
            worktree,
            common_dir=repo.common_dir,
            task="1",
            epoch=1,
            snapshot=snapshot,
            archive_dir=archives,
        )
        took = time.perf_counter() - began
        size = sum(path.stat().st_size for path in archives.iterdir())
    print(
        json.dumps(
            {
                "benchmark": "worktrees",
                "files": files,
                "clean_ms": round(statistics.median(clean), 1),
                "clean_computed_ms": round(computed, 1),
                "clean_longest_ms": round(max(clean), 1),
                "beside_dependencies_ms": round(statistics.median(beside), 1),
                "dirty_ms": round(statistics.median(dirty), 1),
                "dependencies_mb": megabytes,
                "salvage_s": round(took, 2),
                "salvage_bytes": size,
                "salvaged_files": len(saved.files),
                "load": round(os.getloadavg()[0], 1),
            }
        )
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
