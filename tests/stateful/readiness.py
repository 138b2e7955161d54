"""The specification of who is ready, who is in the way, and whom a claim chooses."""

from __future__ import annotations

from asking import Ask
from reference import TERMINAL, Reference
from world import Lease, Paths, Task, clash


def choose(ref: Reference, ask: Ask, place: int) -> tuple[list[Task], list[Task]]:
    """Whom a claim in `place` grants, best first, and whom it finds blocked before it has enough."""
    room = _room(ref, ask)
    granted: list[Task] = []
    blocked: list[Task] = []
    taken: Paths = []
    for task in ready(ref, ask, place):
        if len(granted) == ask.wanted:
            break
        if blockers(ref, task) or clash(task.paths, taken):
            if not is_left_out(ref, task):
                blocked.append(task)
            continue
        limits = counted(ref, ask, task) & room.keys()
        if all(room[limit] > 0 for limit in limits):
            for limit in limits:
                room[limit] -= 1
            taken += task.paths
            granted.append(task)
    return granted, blocked


def ready(ref: Reference, ask: Ask, place: int | None) -> list[Task]:
    """Tasks that the claim may look at, best first; those that were parked aren't among them."""
    worker = ref.workers[ask.worker]
    queue = ask.queue if ask.task is None else ref.tasks[ask.task].queue
    if ref.queue(queue).paused:
        return []
    found = [
        task
        for task in ref.tasks.values()
        if (task.state, task.queue, task.due, task.waiting_on) == ("queued", queue, True, None)
        and place in {None, task.place}
        and ask.task in {None, task.id}
        and task.agent in {None, worker.kind}
        and task.capability in {None, worker.capability}
        and ref.needs_left(task) == 0
    ]
    return sorted(found, key=lambda task: (-task.priority, task.id))


def blockers(ref: Reference, task: Task) -> list[Lease]:
    """Leases whose paths keep the task waiting.

    A reserved turn keeps back the same and lower priorities, and nobody whose own paths are held
    meanwhile: the turn may itself wait for those.
    """
    holds = any(
        own.task == task.id and own.kind == "hold" and own.ended is None
        for own in ref.leases_in(task.place)
    )
    return [
        lease
        for lease in ref.leases.values()
        if lease.place == task.place
        and lease.task != task.id
        and (lease.kind != "reservation" or (lease.priority >= task.priority and not holds))
        and clash(lease.blocks, task.paths)
    ]


def counted(ref: Reference, ask: Ask, task: Task) -> set[tuple[str, str]]:
    """The limits that a lease of the task would count for, set or not."""
    worker = ref.workers[ask.worker]
    mine = {("queue", task.queue), ("agent", worker.agent), ("agent", worker.kind)}
    return mine | ({("key", task.limit_key)} if task.limit_key is not None else set())


def used(ref: Reference, kind: str, key: str, *, live: bool) -> int:
    """How many leases count for a limit; with `live`, without those that ran out."""
    return sum(
        key in {"queue": [lease.queue], "agent": lease.agents, "key": [lease.limit_key]}[kind]
        and lease.kind == "lease"
        and lease.ended is None
        and (not live or ref.clock < lease.expires)
        for lease in ref.leases.values()
    )


def pending(ref: Reference) -> bool:
    """Whether something has become ready, or will by a look at it, that no claim has noticed yet."""
    waited_for = {task.waiting_on for task in ref.tasks.values()}
    return any(
        (lease.ended is None and lease.expires <= ref.at(lease.place))
        or (lease.ended is not None and lease.id in waited_for)
        for lease in ref.leases.values()
    ) or any(
        task.state == "queued" and not task.due and task.run_at <= ref.clock
        for task in ref.tasks.values()
    )


def causes(ref: Reference, task: Task) -> set[str]:
    """What the task may be said to wait for."""
    if task.state != "queued":
        said = {"running": "running", "needs_person": "person"}
        return {said.get(task.state, "finished" if task.state in TERMINAL else "state")}
    if ref.needs_left(task):
        return {"tasks"}
    if not task.due and ref.clock < task.run_at:
        return {"time"}
    if ref.queue(task.queue).paused:
        return {"paused"}
    parked = None if task.waiting_on is None else ref.leases[task.waiting_on]
    if parked is not None and parked.ended is None:
        return {parked.kind}
    blocking = {lease.kind for lease in blockers(ref, task) if lease.ended is None}
    return blocking or ({"ready"} if parked is not None else {"limit", "agent", "ready"})


def is_left_out(ref: Reference, task: Task) -> bool:
    """Whether nobody needs to look at it: the limit of its key is used up."""
    maximum = ref.limits.get(("key", task.limit_key or ""))
    return maximum is not None and used(ref, "key", task.limit_key or "", live=True) >= maximum


def _room(ref: Reference, ask: Ask) -> dict[tuple[str, str], int]:
    return {
        (kind, key): maximum - used(ref, kind, key, live=False)
        for (kind, key), maximum in ref.limits.items()
    }
