"""Whether the simulation finds what is wrong: each mutation in a copy, for a while."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lessor.clock import SystemClock
from simulation.mutation import Mutation, apply
from simulation.mutations import MUTATIONS
from simulation.running import INVARIANTS
from simulation.world import SHARED_MEMORY

ROOT = Path(__file__).parent.parent
LONGEST_S = 300
"""How long a fault is looked for before it is asked who else finds it."""
TEST_S = 100
"""How long a test may take: one that waits for what never comes has found it."""
ENOUGH = 1.5
"""How many times the steps that it took the others get."""
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """What came of one.

    Attributes:
        invariant: which was broken, or which test failed; empty where none did.
        steps: how many were taken until then, over all seeds.
    """

    mutation: Mutation
    invariant: str
    found: str
    steps: int
    seeds: int

    @property
    def caught(self) -> bool:
        """Whether it was found by what it breaks."""
        return self.invariant in finders(self.mutation)


def finders(mutation: Mutation) -> frozenset[str]:
    """What may find it: invariants, or a test."""
    return frozenset(mutation.caught_by) or frozenset({mutation.test})


def hunt(mutation: Mutation, *, seconds: float, seed: int = 1, unjudged: str | None = None) -> Hunt:
    """Run the simulation on a mutated copy until something breaks or the time is up, or its test.

    Args:
        unjudged: what isn't looked at, to see whether others find the mutation, too: other invariants,
            or the other tests of the file.
    """
    if mutation.test:
        return _by_test(mutation, others=unjudged is not None)
    home = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=home) as made:
        apply(mutation, ROOT, Path(made))
        done = subprocess.run(  # noqa: S603 - the copy of this very program
            [
                *(sys.executable, str(Path(made) / "simulation" / "run"), "-o", "json"),
                *("--no-shrink", "--seed", str(seed), "--seconds", str(seconds)),
                *(["--having", ",".join(mutation.needs)] if mutation.needs else []),
                *(["--lacking", ",".join(mutation.lacks)] if mutation.lacks else []),
                *(["--fenced"] if mutation.fenced else []),
                *(["--unjudged", unjudged] if unjudged else []),
            ],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        )
    if not done.stdout:
        raise RuntimeError(f"{mutation.name}: {done.stderr[-2000:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    broken = report.get("broken") or {"invariant": "", "found": ""}
    return Hunt(
        mutation=mutation,
        invariant=broken["invariant"],
        found=broken["found"],
        steps=report["steps"],
        seeds=report["seeds"],
    )


def _by_test(mutation: Mutation, *, others: bool) -> Hunt:
    file = mutation.test.partition("::")[0]
    asked = [file, "--deselect", mutation.test] if others else [mutation.test]
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as made:
        apply(mutation, ROOT, Path(made))
        done = subprocess.run(  # noqa: S603 - this project's own tests, on the copy
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                f"--timeout={TEST_S}",
                *asked,
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=made,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(made) / "src"),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )
    failed = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode > 1 or bool(failed) != bool(done.returncode):
        raise RuntimeError(f"{mutation.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    # A test that is asked for by its name without its cases is all of them.
    by = "" if not failed else ", ".join(failed) if others else mutation.test
    return Hunt(mutation=mutation, invariant=by, found=", ".join(failed), steps=0, seeds=0)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", nargs=-1)
@click.option("--seconds", type=float, default=60, help="How long to look for each.")
@click.option("--seed", type=int, default=1, help="The first seed.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="How many at a time.")
@click.option("--alone", is_flag=True, help="Leave out what finds it: does anything else?")
def main(words: tuple[str, ...], *, seconds: float, seed: int, jobs: int, alone: bool) -> None:
    """Put one thing wrong into a copy of Lessor after another, and say what finds it."""
    wanted = [m for m in MUTATIONS if all(word in m.name for word in words)]
    if alone:
        _find_alone(wanted, seconds=seconds, seed=seed, jobs=jobs)
        return
    hunts = []
    with ThreadPoolExecutor(jobs) as pool:  # each hunt is a process of its own
        for one in pool.map(lambda m: hunt(m, seconds=seconds, seed=seed), wanted):
            hunts.append(one)
            by = one.invariant or "nobody"
            mark = "" if one.caught else "  <- not by what it breaks"
            sys.stdout.write(f"{one.mutation.name}: {by}{_spent(one)}{mark}\n")
            sys.stdout.flush()
    caught = sum(one.caught for one in hunts)
    sys.stdout.write(f"{caught} of {len(hunts)} caught\n")
    sys.exit(0 if caught == len(hunts) else 1)


def _find_alone(wanted: Sequence[Mutation], *, seconds: float, seed: int, jobs: int) -> None:
    """Say of each mutation that one invariant finds whether another would, and which.

    They are looked for in the same seeds, for twice as long as it took, or `seconds` if that is more.
    """

    def look(mutation: Mutation) -> tuple[Hunt, Hunt]:
        began = _CLOCK.boottime_ms()
        first = hunt(mutation, seconds=LONGEST_S, seed=seed)
        spent = (_CLOCK.boottime_ms() - began) / 1000
        (by,) = finders(mutation)
        return first, hunt(mutation, seconds=max(seconds, 2 * spent), seed=seed, unjudged=by)

    single = [mutation for mutation in wanted if len(finders(mutation)) == 1]
    alone: set[str] = set()
    with ThreadPoolExecutor(jobs) as pool:
        for first, other in pool.map(look, single):
            (by,) = finders(first.mutation)
            also = f"also {other.invariant}" if other.invariant else "nobody else"
            what = (
                f"{first.invariant or 'nobody'}{_spent(first)}; without {by}: {also}{_spent(other)}"
            )
            sys.stdout.write(f"{first.mutation.name}: {what}\n")
            sys.stdout.flush()
            if first.caught and not other.invariant and other.steps >= ENOUGH * first.steps:
                alone.add(by)
    found = len(alone & INVARIANTS)
    sys.stdout.write(
        f"{found} of {len(INVARIANTS)} invariants and {len(alone) - found} tests find something alone\n"
    )
    if left := sorted(INVARIANTS - alone):
        sys.stdout.write(f"not {', '.join(left)}\n")


def _spent(one: Hunt) -> str:
    return f", {one.steps:,} steps, {one.seeds} seeds" if one.seeds else ""
