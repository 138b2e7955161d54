"""People: they add work, decide, intrude, land results; and the machine that they all share."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from lessor.errors import LessorError
from lessor.ids import new_request_id
from lessor.model.lifecycle import TaskState
from lessor.model.shadow import Unlanded
from lessor.model.task import AD_HOC, Effects, NewTask, Task
from lessor.service.lessor import Lessor
from simulation.client import Client, SilenceError
from simulation.ground import GLOBS, NARROW, SCOPES
from simulation.world import World

QUEUES = ("default", "default", "default", "slow")
REMOTE = "origin"
_EFFECTS = (*[Effects.WORKSPACE] * 5, *Effects)
_REOPENED = {
    TaskState.NEEDS_PERSON: "answer",
    TaskState.BLOCKED: "unblock",
    TaskState.QUARANTINED: "requeue",
    TaskState.RECONCILING: "requeue",
}


class People:
    """Everybody who isn't a worker, as one process."""

    def __init__(self, world: World, name: str, places: list[str]) -> None:
        self.world = world
        self.client = Client(world, name)
        self.chance = world.chance(name)
        self.places = places
        self._seen: list[Task] = []

    def found(self) -> list[str]:
        """Register the repositories; before anything else."""
        for number in range(self.world.plan.repositories):
            self.client.here("found", partial(self._found, f"example.com/acme/{number}"))
        self.client.here(
            "found", lambda a: a.registry.set_queue("slow", overtake_limit=3, overtake_ms=60_000)
        )
        return self.places

    def _found(self, name: str, lessor: Lessor) -> None:
        made = lessor.registry.add_repository(name)
        lessor.registry.set_unlanded(made.id, Unlanded(self.world.plan.unlanded))
        if self.world.plan.fenced:
            lessor.registry.set_fence_remote(made.id, REMOTE)
        self.places.append(made.id)

    def live(self) -> None:
        """Keep work in the store, and do now and then what people do."""
        while True:
            try:
                self._seen = self.client.here("look", self._open)
                if self.world.faulty:
                    self._add()
                    self._settle()
                    if self.world.hit("person_intrudes"):
                        self._intrude()
                    elif self.world.hit("witness"):
                        self._witness()
                    self._land()
                else:
                    self._tidy()
            except (SilenceError, LessorError) as error:
                self.world.record(f"left it: {getattr(error, 'code', 'silence')}")
            self.world.sleep(self.world.span("people", 500, 20_000 if self.world.faulty else 2_000))

    def _open(self, lessor: Lessor) -> list[Task]:
        found: list[Task] = []
        for place in [None, *self.places]:
            found += lessor.tasks.open_tasks(repository=place)
        return found

    def _add(self) -> None:
        left = self.world.plan.tasks - len(self._seen)
        if left <= 0:
            return
        tasks = [self._wish(place) for place in range(min(left, self.chance.choice((1, 2, 5))))]
        request = new_request_id()
        self.client.insist(
            "submit", lambda a: a.tasks.submit(tasks, submitter="ada", request_id=request)
        )

    def _wish(self, position: int) -> NewTask:
        chance = self.chance
        place = chance.choice([*self.places, *self.places, None])
        scopes: tuple[str, ...] = ()
        reads: tuple[str, ...] = ()
        if place is not None:
            scopes = tuple(
                chance.sample(chance.choice((NARROW, NARROW, SCOPES)), chance.choice((0, 1, 1, 2)))
            )
            reads = (chance.choice((*NARROW, *GLOBS)),) if chance.random() < 0.2 else ()
        effects = chance.choice(_EFFECTS)
        return NewTask(
            title="work",
            queue=chance.choice(QUEUES),
            repository=place,
            scopes=scopes,
            reads=reads,
            strict=chance.random() < 0.1,
            progress=chance.random() < 0.9,
            priority=chance.choice((0, 0, 0, 1, -1)),
            delay=timedelta(seconds=chance.choice((1, 60))) if chance.random() < 0.1 else None,
            needs_index=(chance.randrange(position),) if position and chance.random() < 0.2 else (),
            limit_key="suite" if chance.random() < 0.2 else None,
            agent=chance.choice(("claude", "codex")) if chance.random() < 0.1 else None,
            effects=effects,
            idempotency_key="key"
            if effects is Effects.IDEMPOTENT and chance.random() < 0.7
            else None,
            max_attempts=chance.choice((1, 2, 3)),
        )

    def _settle(self) -> None:
        """Give a decision to one of the tasks that wait for it."""
        waiting = [t for t in self._seen if t.state in _REOPENED]
        if waiting and (not self.world.faulty or self.chance.random() < 0.3):
            task = self.chance.choice(waiting)
            if self.chance.random() < 0.15:
                self._decide("cancel", task)
            else:
                self._decide(_verb(task), task)

    def _decide(self, verb: str, task: Task) -> None:
        request = new_request_id()

        def decide(lessor: Lessor) -> object:
            if verb == "answer":
                return lessor.tasks.answer(task.id, "that one", actor="ada", request_id=request)
            if verb == "force_release":
                return lessor.leases.force_release(
                    task.id, actor="ada", reason="stuck", checked="its host", request_id=request
                )
            act = getattr(lessor.tasks, verb)
            return act([task.id], actor="ada", reason="so", request_id=request)

        self.client.insist(verb, decide)

    def _intrude(self) -> None:
        tasks, what = self._seen, self.chance.random()
        if what < 0.25:
            queue, paused = self.chance.choice(QUEUES), self.chance.random() < 0.5
            self.client.insist("queue", lambda a: a.registry.set_queue(queue, paused=paused))
        elif what < 0.5:
            kind, key = self.chance.choice(
                (("queue", "default"), ("key", "suite"), ("agent", "claude"))
            )
            most = self.chance.choice((None, 0, 1, 2))
            self.client.insist("limit", lambda a: a.registry.set_limit(kind, key, most))
        elif tasks:
            task = self.chance.choice(tasks)
            self._decide(self.chance.choice(("cancel", "block", "force_release")), task)

    def _witness(self) -> None:
        """A host's witness proves that the process of some lease is gone."""
        live = self.client.here("look", lambda a: a.leases.leases(live=True))
        leases = [lease for lease in live if lease.worker is not None]
        if leases:
            lease = self.chance.choice(leases)
            self.client.insist(
                "end_gone",
                lambda a: a.leases.end_gone(lease.task, epoch=lease.epoch, proof="its pid is gone"),
            )

    def _land(self) -> None:
        results = self.client.here("look", lambda a: a.landings.results())
        left = {one.task for one in results}
        ready = [one for one in results if one.on not in left]
        if not ready or (self.world.faulty and self.chance.random() < 0.6):
            return
        one = ready[0]
        if self.chance.random() < 0.2:
            self.client.insist("discard", lambda a: a.landings.discarded(one.task, reason="no"))
        else:
            self.client.insist(
                "land", lambda a: a.landings.landed(one.task, commit=one.head, target="main")
            )

    @staticmethod
    def _lift(lessor: Lessor) -> None:
        for queue in sorted(set(QUEUES)):
            lessor.registry.set_queue(queue, paused=False)
        for kind, key, _ in lessor.registry.limits():
            lessor.registry.set_limit(kind, key, None)

    def _tidy(self) -> None:
        """What people do when they see to everything: nothing stays paused, limited or undecided."""
        self.client.here("tidy", self._lift)
        for task in self._seen:
            if task.state in _REOPENED:
                self._decide(_verb(task), task)
        self._land()


def _verb(task: Task) -> str:
    """What ends a task's waiting for a person; of one that only stood for its paths, nothing is left to do."""
    return "cancel" if task.queue == AD_HOC else _REOPENED[task.state]


class Nature:
    """The machine: its clock, its sleep, its disk, and the way to the remote."""

    def __init__(self, world: World) -> None:
        self.world = world

    def live(self) -> None:
        """Let things happen, as often as the plan says."""
        world, clock = self.world, self.world.clock
        while True:
            world.sleep(world.span("nature", 200, 6_000))
            if world.hit("step_forward"):
                self._note("the clock goes forward", span := world.span("step", 500, 600_000))
                clock.step_wall(span)
                world.memory.clock_was_right = False
            if world.hit("step_back"):
                self._note("the clock goes back", span := world.span("step", 500, 600_000))
                clock.step_wall(-span)
                world.set_back_ms += span
            if world.hit("suspend"):
                self._note("the machine sleeps", span := world.span("suspend", 500, 3_600_000))
                clock.suspend(span)
            if world.hit("disk_full"):
                world.record("the disk is full")
                world.breaking.fill()
                world.sleep(world.span("full", 500, 60_000))
                world.breaking.make_room()
            if world.hit("remote_down"):
                world.record("the remote is down")
                world.remote.down = True
                world.sleep(world.span("down", 500, 120_000))
                world.remote.down = False

    def _note(self, what: str, milliseconds: int) -> None:
        self.world.record(f"{what} by {milliseconds} ms")
