"""Liveness: once the faults have stopped, everything heals within two lease times."""

from __future__ import annotations

from collections.abc import Callable

from lessor.model.intent import UNDER_WAY_MS
from simulation.ground import clash
from simulation.judging import BrokenError
from simulation.tables import Row
from simulation.world import World

_TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
LEASE_TIMES = 2
LOOK_EVERY = 10
SETTLING_MS = 30_000
"""What people and the delays after failures take, beside the lease times."""


def heal(world: World) -> None:
    """Stop the faults, let two lease times pass, and judge what is left.

    Raises:
        BrokenError: something has not healed.
    """
    world.faulty = False
    # Somebody sets the clock right: the store waits for a clock that was set back, as it should.
    right = max(world.memory.latest, world.began_ms + world.clock.boottime_ms())
    if right > world.clock.wall_ms():
        world.clock.step_wall(right - world.clock.wall_ms())
        world.memory.clock_was_right = False
    world.remote.down = False
    world.breaking.make_room()
    claimable = {task["id"]: task["epoch"] for task in _claimable(world)}

    def waiting() -> list[int]:
        return [n for n, epoch in claimable.items() if _waits(world, n, epoch)]

    _pass(world, until=lambda: not waiting())
    for number in waiting():
        _judge(world, "everything_claimable_is_claimed", f"task {number} waits still")
    _pass(world, until=lambda: not _left_behind(world))
    for invariant, found in _left_behind(world):
        _judge(world, invariant, found)
    left = len(_unfinished(world))
    while left:
        _pass(world, until=lambda: not _unfinished(world))
        before, left = left, len(_unfinished(world))
        if left == before:
            task = _unfinished(world)[0]
            _judge(world, "everything_is_finished", f"task {task['id']} is {task['status']}")
            return


def _waits(world: World, number: int, epoch: int) -> bool:
    task = world.tables.task(number)
    return (
        task is not None
        and (task["status"], task["epoch"]) == ("queued", epoch)
        and _can_run(world, task)
        and not _is_blocked(world, task)
    )


def _is_blocked(world: World, task: Row) -> bool:
    """Whether somebody else holds what it wants, rightly, just now."""
    for row in world.tables.scopes[task["repository_id"]].values():
        lease = world.tables.lease(row["lease_id"])
        if lease is None or lease["ended_ms"] is not None or row["task_id"] == task["id"]:
            continue
        for path in world.tables.paths(task["id"]):
            if clash(row["text"], row["mode"], path["text"], path["mode"]):
                return True
    return False


def _unfinished(world: World) -> list[Row]:
    return [
        task
        for task in world.tables.rows["task"].values()
        if task["status"] not in _TERMINAL and _can_run(world, task)
    ]


def _left_behind(world: World) -> list[tuple[str, str]]:
    found = []
    for task in world.tables.rows["task"].values():
        lease = world.tables.lease(task["waiting_on"])
        if lease is not None and lease["ended_ms"] is not None:
            found.append(
                (
                    "nothing_stays_parked_on_what_has_ended",
                    f"task {task['id']} waits for lease {lease['id']} ({lease['end_reason']})",
                )
            )
    found += [
        ("what_ran_out_is_ended", f"lease {lease['id']} isn't ended")
        for lease in world.tables.live_leases()
        if lease["kind"] == "lease" and world.stores[0]._now() >= lease["expires_ms"]
    ]
    for intent in world.tables.rows["intent"].values():
        lease = world.tables.lease(intent["lease_id"])
        over = lease is not None and lease["ended_ms"] is not None
        if intent["settled_ms"] is None and over:
            found.append(("every_push_is_settled", f"push {intent['id']} is nobody's"))
    return [one for one in found if one[0] not in world.plan.unjudged]


SENTENCES = {
    "everything_claimable_is_claimed": "When the faults stop, each task that nobody keeps out is claimed within two lease times.",
    "everything_is_finished": "When the faults stop, tasks are finished until none is left that can still be done.",
    "nothing_stays_parked_on_what_has_ended": "No task stays parked on a lease that has ended.",
    "what_ran_out_is_ended": "A lease that ran out is ended.",
    "every_push_is_settled": "A push of a lease that has ended doesn't stay unsettled.",
}


def _judge(world: World, invariant: str, found: str) -> None:
    if invariant not in world.plan.unjudged:
        raise BrokenError(invariant, SENTENCES[invariant], found)


def _pass(world: World, *, until: Callable[[], bool]) -> None:
    """Let two lease times pass, or less where all is well before.

    A lease lasts longer by what the clock was set back meanwhile: that is safe, and nobody can tell it.
    """
    longest = LEASE_TIMES * world.plan.ttl_ms + SETTLING_MS + world.set_back_ms
    if not world.plan.fenced and any(
        intent["settled_ms"] is None for intent in world.tables.rows["intent"].values()
    ):
        longest += UNDER_WAY_MS  # nothing there refuses it: it gets its time
    end = world.clock.boottime_ms() + longest
    turns = 0
    while world.clock.boottime_ms() < end and world.scheduler.turn():
        turns += 1
        if turns % LOOK_EVERY == 0 and until():
            return


def _claimable(world: World) -> list[Row]:
    return [
        task
        for task in world.tables.rows["task"].values()
        if task["status"] == "queued" and task["needs_left"] == 0 and _can_run(world, task)
    ]


def _can_run(world: World, task: Row) -> bool:
    """Whether nothing that it needs, however far away, has ended without success."""
    for number, need in world.tables.rows["dependency"]:
        other = world.tables.task(need)
        if number != task["id"] or other is None or other["status"] == "succeeded":
            continue
        if other["status"] in _TERMINAL or not _can_run(world, other):
            return False
    return True
