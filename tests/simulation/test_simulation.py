"""The simulation repeats itself exactly, judges by its own means, and finds what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from simulation.ground import SCOPES, covers
from simulation.plan import FAULTS, draw_plan
from simulation.running import Outcome, simulate
from simulation.shrinking import shrink

from lessor.model.scope import overlaps, parse_scope
from lessor.store.statements import load_statements

RUN = Path(__file__).parents[2] / "simulation" / "run"


def run(*args: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, str(RUN), *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("seed", [1, 9])
def test_the_same_seed_has_the_same_history_in_every_process(seed: int) -> None:
    """Byte by byte, on the store in memory and on one in a file."""
    one, other = (
        [
            line
            for line in run("--seed", str(seed), "--history").splitlines()
            if "a second" not in line
        ]
        for _ in range(2)
    )
    assert one == other
    assert len(one) > 100


def test_another_seed_has_another_history() -> None:
    assert len({simulate(draw_plan(seed)).digest for seed in (5, 6, 7)}) == 3


def test_every_kind_of_fault_is_in_some_plan_and_missing_in_another() -> None:
    plans = [draw_plan(seed) for seed in range(100)]
    for fault in FAULTS:
        assert {fault in plan.rates for plan in plans} == {True, False}, fault


def test_pushes_reach_the_remote_and_move_it() -> None:
    """A way to git that isn't led to the simulated remote would end every push, and nothing be judged."""
    counts = Counter[str]()
    for seed in range(1, 13):
        counts += simulate(draw_plan(seed)).counts
    assert counts["pushes"] > 20


@pytest.mark.parametrize(("one", "other"), list(product(SCOPES, SCOPES)))
def test_the_judge_and_the_product_agree_on_every_overlap(one: str, other: str) -> None:
    assert overlaps(parse_scope(one), parse_scope(other)) == bool(covers(one) & covers(other))


def test_what_is_broken_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    statements = load_statements("sqlite")
    for name in ("complete_leases", "complete_one"):
        text = statements[name]
        monkeypatch.setitem(statements, name, text.replace("AND :now < l.expires_ms", ""))
        assert statements[name] != text
    found = next(o for o in map(broken, range(60)) if o.invariant)
    assert found.invariant == "only_the_live_holder_ends_it_as_done"
    least = shrink(found, go_on=iter([True] * 20 + [False]).__next__)
    assert least.invariant == found.invariant
    assert len(least.plan.rates) < len(found.plan.rates)
    assert least.steps <= found.steps
    assert simulate(least.plan).digest == least.digest


def broken(seed: int) -> Outcome:
    return simulate(replace(draw_plan(seed), steps=300))


def test_a_report_in_json_says_what_was_done() -> None:
    report = json.loads(run("--seed", "3", "--runs", "2", "-o", "json"))
    assert (report["first_seed"], report["seeds"]) == (3, 2)
    assert report["steps"] > 100
    assert report["worker_hours"] > 0


def test_several_at_a_time_come_to_the_same() -> None:
    alone, together = (
        json.loads(
            run("--seed", "3", "--runs", "5", "--steps", "100", "--jobs", jobs, "-o", "json")
        )
        for jobs in ("1", "3")
    )
    spent = {"seconds", "steps_per_second"}
    assert {k: v for k, v in alone.items() if k not in spent} == {
        k: v for k, v in together.items() if k not in spent
    }


def test_when_all_has_to_heal_every_queue_is_looked_at() -> None:
    """Chance let this seed's workers look past a task that wanted no repository."""
    assert simulate(replace(draw_plan(5005), steps=1499)).invariant == ""
