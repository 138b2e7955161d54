"""The smallest plan of a seed that still breaks the same invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from simulation.plan import Plan
from simulation.running import Outcome, simulate


def shrink(found: Outcome, *, go_on: Callable[[], bool]) -> Outcome:
    """Take away faults, workers, tasks and steps for as long as the same invariant breaks.

    Args:
        go_on: whether there is time for another try.
    """
    best = _shorter(found)
    tried: set[str] = set()
    improved = True
    while improved:
        improved = False
        for plan in _smaller(best.plan):
            if not go_on():
                return best
            if repr(plan) in tried:
                continue
            tried.add(repr(plan))
            outcome = simulate(plan)
            if outcome.invariant == best.invariant:
                best, improved = _shorter(outcome), True
                break
    return best


def _shorter(outcome: Outcome) -> Outcome:
    """The same, said with no more steps than it took."""
    steps = min(outcome.plan.steps, outcome.steps + 1)
    return replace(outcome, plan=replace(outcome.plan, steps=steps))


def _smaller(plan: Plan) -> Iterator[Plan]:
    for fault in sorted(plan.rates):
        yield plan.without(fault)
    for name, least in (("workers", 1), ("tasks", 1), ("repositories", 1), ("steps", 10)):
        value = getattr(plan, name)
        for smaller in (value // 2, value * 3 // 4, value - 1):
            if least <= smaller < value:
                yield replace(plan, **{name: smaller})
    if plan.files:
        yield replace(plan, files=False)
    if plan.fenced:
        yield replace(plan, fenced=False)
