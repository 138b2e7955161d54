"""One run from its plan, and what came of it."""

from __future__ import annotations

import hashlib
import traceback
from collections import Counter
from dataclasses import dataclass, field

from simulation.healing import SENTENCES, heal
from simulation.judging import BrokenError
from simulation.people import Nature, People
from simulation.plan import Plan
from simulation.worker import KINDS, Worker
from simulation.world import RULES, World, created

HOUR_MS = 3_600_000
UNEXPECTED = "nothing_unexpected_is_raised"
INVARIANTS = frozenset({*(rule.__name__ for rule in RULES), *SENTENCES, UNEXPECTED})
SENTENCE = "Lessor raises its own errors alone, and those are met where they can happen."


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of a run.

    Attributes:
        invariant: what was broken; empty where nothing was.
        worker_hours: simulated time, times workers.
    """

    plan: Plan
    history: list[str]
    steps: int
    worker_hours: float
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    invariant: str = ""
    sentence: str = ""
    found: str = ""

    @property
    def digest(self) -> str:
        """The whole history in one number."""
        return hashlib.sha256("\n".join(self.history).encode()).hexdigest()[:16]


def simulate(plan: Plan) -> Outcome:
    """Run a plan to its end, or to the first invariant that doesn't hold."""
    with created(plan) as world:
        broken: BrokenError | None = None
        try:
            _play(world)
        except BrokenError as error:
            broken = error
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            if UNEXPECTED not in plan.unjudged:
                broken = BrokenError(UNEXPECTED, SENTENCE, f"{type(error).__name__}: {error}")
            world.history += traceback.format_exc().splitlines()
        hours = plan.workers * world.clock.boottime_ms() / HOUR_MS
        return Outcome(
            plan=plan,
            history=world.history,
            steps=world.steps,
            worker_hours=hours,
            counts=world.counts,
            faults=world.faults,
            invariant=broken.invariant if broken else "",
            sentence=broken.sentence if broken else "",
            found=broken.found if broken else "",
        )


def _play(world: World) -> None:
    plan = world.plan
    people = People(world, "people", [])

    def begin() -> None:
        places = people.found()
        world.faulty = True
        world.scheduler.spawn("people", people.live)
        world.scheduler.spawn("nature", Nature(world).live)
        for number in range(plan.workers):
            worker = Worker(world, f"worker-{number}", KINDS[number % len(KINDS)], places)
            world.scheduler.spawn(worker.name, worker.live, mortal=True)

    world.faulty = False
    world.scheduler.spawn("founder", begin)
    while world.steps < plan.steps and world.scheduler.turn():
        pass
    for kind in KINDS:  # somebody healthy for every task, whoever stands still
        helper = Worker(world, f"helper-{kind}", kind, people.places)
        world.scheduler.spawn(helper.name, helper.live)
    world.scheduler.spawn("helper", People(world, "helper", people.places).live)
    heal(world)
