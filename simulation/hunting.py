"""Whether the simulation finds what is wrong: each mutation in a copy, for a while."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from simulation.mutations import MUTATIONS, Mutation, apply
from simulation.world import RULES, SHARED_MEMORY

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """What came of one.

    Attributes:
        invariant: which was broken; empty where none was.
        steps: how many were taken until then, over all seeds.
    """

    mutation: Mutation
    invariant: str
    found: str
    steps: int
    seeds: int

    @property
    def caught(self) -> bool:
        """Whether it was found by an invariant that it breaks."""
        return self.invariant in self.mutation.caught_by


def hunt(mutation: Mutation, *, seconds: float, seed: int = 1, unjudged: str | None = None) -> Hunt:
    """Run the simulation on a mutated copy until something breaks or the time is up.

    Args:
        unjudged: an invariant that isn't looked at, to see whether others find the mutation, too.
    """
    home = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=home) as made:
        apply(mutation, ROOT, Path(made))
        done = subprocess.run(  # noqa: S603 - the copy of this very program
            [
                *(sys.executable, str(Path(made) / "simulation" / "run"), "-o", "json"),
                *("--no-shrink", "--seed", str(seed), "--seconds", str(seconds)),
                *(["--having", ",".join(mutation.needs)] if mutation.needs else []),
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
            found = f"{by}, {one.steps:,} steps, {one.seeds} seeds{mark}"
            sys.stdout.write(f"{one.mutation.name}: {found}\n")
            sys.stdout.flush()
    caught = sum(one.caught for one in hunts)
    sys.stdout.write(f"{caught} of {len(hunts)} caught\n")
    sys.exit(0 if caught == len(hunts) else 1)


def _find_alone(wanted: Sequence[Mutation], *, seconds: float, seed: int, jobs: int) -> None:
    """Say of each mutation that one invariant finds whether another would, and which."""
    known = {rule.__name__ for rule in RULES}
    single = [(m, next(iter(m.caught_by))) for m in wanted if len(m.caught_by) == 1]
    asked = [(m, by) for m, by in single if by in known]
    found = set()
    with ThreadPoolExecutor(jobs) as pool:
        hunts = pool.map(
            lambda one: hunt(one[0], seconds=seconds, seed=seed, unjudged=one[1]), asked
        )
        for (mutation, by), other in zip(asked, hunts, strict=True):
            also = f"also {other.invariant}" if other.invariant else "nobody else"
            spent = f"{other.steps:,} steps, {other.seeds} seeds"
            sys.stdout.write(f"{by}: {mutation.name}: {also}, {spent}\n")
            sys.stdout.flush()
            found |= set() if other.invariant else {by}
    sys.stdout.write(f"{len(found)} invariants find something alone\n")
