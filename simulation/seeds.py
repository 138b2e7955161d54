"""Many runs, one after another or on several cores; what comes of them is told in the order of their seeds."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from itertools import islice

from simulation.plan import Plan
from simulation.running import Outcome, simulate

AHEAD = 4
"""How many runs each core may be ahead of what was told: enough that none waits for a long one."""


def outcomes(plans: Iterable[Plan], jobs: int) -> Iterator[Outcome]:
    """Run plans, as many at a time as there are jobs.

    Histories of runs that broke nothing are left out where several run at a time.
    """
    if jobs == 1:
        yield from map(simulate, plans)
        return
    left = iter(plans)
    # Forked: each has the same order of sets, and nothing is imported twice.
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork"))
    try:
        under_way: deque[Future[Outcome]] = deque(
            pool.submit(_simulated, plan) for plan in islice(left, jobs * AHEAD)
        )
        while under_way:
            yield under_way.popleft().result()
            under_way.extend(pool.submit(_simulated, plan) for plan in islice(left, 1))
    finally:
        pool.shutdown(cancel_futures=True)


def _simulated(plan: Plan) -> Outcome:
    outcome = simulate(plan)
    return outcome if outcome.invariant else replace(outcome, history=[])
