"""The command line: one seed again, or seeds one after another until the time is up."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import click

from lessor.clock import SystemClock
from lessor.git.command import run_git
from lessor.ids import new_random
from simulation.plan import FAULTS, Plan, draw_plan
from simulation.running import INVARIANTS, Outcome
from simulation.seeds import outcomes
from simulation.shrinking import shrink as shrunk

ROOT = Path(__file__).parent.parent
PROGRESS_MS = 5_000
SHRINK_MS = 60_000
LAST_LINES = 60


@dataclass(slots=True)
class Total:
    """What all runs came to."""

    runs: int = 0
    steps: int = 0
    worker_hours: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        self.runs += 1
        self.steps += outcome.steps
        self.worker_hours += outcome.worker_hours
        self.counts += outcome.counts
        self.faults += outcome.faults


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seed", type=int, help="Run this seed alone, or begin with it.")
@click.option("--seconds", type=float, help="Go on with the next seeds until the time is up.")
@click.option("--runs", type=int, help="Go on until so many seeds were run.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="How many run at a time.")
@click.option("--steps", type=int, help="Stop the faults after so many steps, not the plan's own.")
@click.option("--workers", type=int, help="So many workers, not the plan's own.")
@click.option("--tasks", type=int, help="So many tasks, not the plan's own.")
@click.option("--repositories", type=int, help="So many repositories, not the plan's own.")
@click.option("--faults", help="Only these of the plan's own faults, with commas; 'none' for none.")
@click.option("--having", help="Only seeds whose own plan has all of these faults, with commas.")
@click.option("--lacking", help="Only seeds whose own plan has none of these faults, with commas.")
@click.option("--files/--memory", default=None, help="A file that each process opens, or memory.")
@click.option(
    "--fenced/--unfenced", default=None, help="Repositories fenced at the remote, or not."
)
@click.option("--unjudged", help="Look for everything but these invariants, with commas.")
@click.option("--shrink/--no-shrink", default=True, help="Look for the smallest run that fails.")
@click.option("--history", is_flag=True, help="Print the whole history of the run.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text")
def main(
    *,
    seed: int | None,
    seconds: float | None,
    runs: int | None,
    jobs: int,
    output: str,
    history: bool,
    shrink: bool,
    having: str | None,
    lacking: str | None,
    **changes: object,
) -> None:
    """Run Lessor under a simulated clock, network, remote and set of processes."""
    clock = SystemClock()
    began = clock.boottime_ms()
    alone = seed is not None and seconds is None and runs is None
    first = new_random().randrange(10**9) if seed is None else seed
    until = began + int((seconds or (60 if runs is None else 10**6)) * 1000)
    commit = _commit()
    _say(f"commit {commit}, seeds from {first}", output)
    total, told = Total(), began
    needed, unwanted = _named(having or "none"), _named(lacking or "none")
    drawn = (draw_plan(number) for number in itertools.count(first))
    fitting = (
        plan
        for plan in drawn
        if alone or (needed <= set(plan.rates) and not unwanted & set(plan.rates))
    )
    plans = (_changed(plan, changes) for plan in fitting)
    for outcome in outcomes(plans, 1 if history or alone else jobs):
        total.add(outcome)
        now = clock.boottime_ms()
        if history:
            sys.stdout.write("\n".join(outcome.history) + "\n")
        if outcome.invariant:
            least = _least(outcome, clock, output) if shrink else outcome
            _fail(least, total, commit, now - began, output)
        if alone or now >= until or total.runs == runs:
            break
        if now - told >= PROGRESS_MS:
            told = now
            _say(_line(total, now - began), output)
    _sum_up(outcome, total, commit, clock.boottime_ms() - began, output, first=first)


def _changed(plan: Plan, changes: dict[str, object]) -> Plan:
    faults = changes.get("faults")
    if isinstance(faults, str):
        named = _named(faults)
        plan = replace(plan, rates={k: v for k, v in plan.rates.items() if k in named})
    given = {k: v for k, v in changes.items() if k != "faults" and v is not None}
    if isinstance(unjudged := given.get("unjudged"), str):
        given["unjudged"] = _invariants(unjudged)
    return replace(plan, **given)  # type: ignore[arg-type]


def _invariants(names: str) -> tuple[str, ...]:
    if unknown := set(names.split(",")) - INVARIANTS:
        raise click.UsageError(f"There are no invariants {', '.join(sorted(unknown))}.")
    return tuple(names.split(","))


def _named(faults: str) -> set[str]:
    named = set() if faults == "none" else set(faults.split(","))
    if unknown := named - set(FAULTS):
        raise click.UsageError(f"There are no faults {', '.join(sorted(unknown))}.")
    return named


def _least(outcome: Outcome, clock: SystemClock, output: str) -> Outcome:
    _say(f"\n{outcome.invariant} is broken by seed {outcome.plan.seed}: {outcome.found}", output)
    _say("looking for the smallest run that breaks it …", output)
    until = clock.boottime_ms() + SHRINK_MS
    return shrunk(outcome, go_on=lambda: clock.boottime_ms() < until)


def _fail(least: Outcome, total: Total, commit: str, spent_ms: int, output: str) -> None:
    if output == "json":
        report = _report(total, commit, spent_ms, first=least.plan.seed)
        broken = {
            "seed": least.plan.seed,
            "invariant": least.invariant,
            "sentence": least.sentence,
            "found": least.found,
            "steps": least.steps,
            "plan": asdict(least.plan),
            "history": least.history,
            "repeat": _repeat(least.plan),
        }
        sys.stdout.write(json.dumps({**report, "broken": broken}) + "\n")
    else:
        sys.stdout.write("\n".join(least.history[-LAST_LINES:]) + "\n\n")
        sys.stdout.write(f"{least.invariant}: {least.sentence}\n  {least.found}\n")
        sys.stdout.write(f"  after {least.steps} steps, commit {commit}\n")
        sys.stdout.write(f"again: {_repeat(least.plan)}\n")
    sys.exit(1)


def _repeat(plan: Plan) -> str:
    own = draw_plan(plan.seed)
    words = ["simulation/run", "--seed", str(plan.seed)]
    for name in ("steps", "workers", "tasks", "repositories"):
        if getattr(plan, name) != getattr(own, name):
            words += [f"--{name}", str(getattr(plan, name))]
    if plan.rates != own.rates:
        words += ["--faults", ",".join(plan.rates) or "none"]
    if plan.files != own.files:
        words.append("--files" if plan.files else "--memory")
    if plan.fenced != own.fenced:
        words.append("--fenced" if plan.fenced else "--unfenced")
    if plan.unjudged:
        words += ["--unjudged", ",".join(plan.unjudged)]
    return " ".join(words)


def _line(total: Total, spent_ms: int) -> str:
    speed = total.steps * 1000 // max(1, spent_ms)
    return (
        f"{spent_ms // 1000:>5} s  {total.runs} seeds, {total.worker_hours:,.0f} worker-hours, "
        f"{total.steps:,} steps ({speed:,} a second), {sum(total.faults.values()):,} faults"
    )


def _sum_up(
    outcome: Outcome, total: Total, commit: str, spent_ms: int, output: str, *, first: int
) -> None:
    if output == "json":
        sys.stdout.write(json.dumps(_report(total, commit, spent_ms, first=first)) + "\n")
        return
    _say(_line(total, spent_ms), output)
    for name, word in (("calls", "calls"), ("transactions", "transactions"), ("pushes", "pushes")):
        _say(f"  {total.counts[name]:>10,} {word}", output)
    for fault in FAULTS:
        if total.faults[fault]:
            _say(f"  {total.faults[fault]:>10,} {fault}: {FAULTS[fault]}", output)
    if total.runs == 1:
        _say(f"history {outcome.digest} ({len(outcome.history)} lines)", output)
    _say("no invariant was broken", output)


def _report(total: Total, commit: str, spent_ms: int, *, first: int) -> dict[str, object]:
    return {
        "commit": commit,
        "first_seed": first,
        "seeds": total.runs,
        "seconds": spent_ms / 1000,
        "steps": total.steps,
        "steps_per_second": round(total.steps * 1000 / max(1, spent_ms)),
        "worker_hours": round(total.worker_hours, 1),
        **dict(total.counts),
        "faults": dict(total.faults),
    }


def _commit() -> str:
    found = run_git(["rev-parse", "--short", "HEAD"], cwd=ROOT, check=False)
    changed = run_git(["status", "--porcelain", "--untracked-files=no"], cwd=ROOT, check=False)
    return (found.text or "unknown") + ("+" if changed.text else "")


def _say(text: str, output: str) -> None:
    stream = sys.stderr if output == "json" else sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


def steady(act: Callable[[], object]) -> None:
    """Call in a process whose sets have the same order every time; a new one where this isn't it."""
    if os.environ.get("PYTHONHASHSEED") == "0":
        act()
    else:
        os.execve(  # noqa: S606 - this very program
            sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"}
        )
