"""Where the product may choose: its choices are taken over, if they could be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from asking import Ask, Row, Seen
from readiness import blockers, choose, counted, ready, used
from reference import Reference
from world import Lease, Task

RESERVATION_MS = 3_600_000


def notice(ref: Reference, seen: Seen) -> None:
    """Take over which leases were found run out, whose paths were freed, what fell due."""
    for number in sorted(ref.leases):
        lease, row = ref.leases[number], seen.leases[number]
        if lease.ended is None and row["end_reason"] in {"lapsed", "gone"}:
            at = int(row["ended_ms"])
            assert at >= lease.expires, f"lease {number} ended before its time"
            assert at in {ref.clock, ref.at(lease.place)}
            ref.lapse(lease, at=at)
    for number in sorted(ref.leases):
        lease, row = ref.leases[number], seen.leases[number]
        if row["drained"] and not lease.drained and lease.place:
            assert lease.ended is not None, f"lease {number} lost its paths while it lived"
            ref.drain(lease)
    for number, task in ref.tasks.items():
        if task.state == "queued" and not task.due and seen.tasks[number]["due"]:
            assert task.run_at <= ref.clock, f"task {number} was let go before its time"
            task.due = True


def check_settled(ref: Reference, place: int) -> None:
    """A look under the repository's lock leaves nothing there that ran out, ended or fell due."""
    for lease in ref.leases_in(place):
        assert lease.ended is not None or ref.at(place) < lease.expires, f"{lease} was overlooked"
        assert lease.ended is None or lease.drained, f"{lease} still blocks its paths"
    for task in ref.tasks.values():
        waits = task.place == place and task.state == "queued" and not task.due
        fell_due = waits and task.run_at <= ref.clock
        assert not fell_due, f"{task} fell due and was overlooked"


def check_limits(ref: Reference, ask: Ask, place: int) -> None:
    """A limit isn't used up by leases that ran out."""
    for task in ready(ref, ask, place):
        for kind, key in counted(ref, ask, task) & ref.limits.keys():
            maximum = ref.limits[kind, key]
            full = used(ref, kind, key, live=False) >= maximum
            assert not full or used(ref, kind, key, live=True) >= maximum, (
                f"{kind} {key} is full of leases that ran out"
            )


def check_nothing_anywhere(ref: Reference, ask: Ask) -> None:
    """An empty answer from everywhere means that nothing could be had even after a thorough look."""
    ghost = deepcopy(ref)
    ghost.sweep(sorted(ghost.places))
    for task in ghost.tasks.values():
        task.due = task.due or task.run_at <= ghost.clock
    for place in ghost.places:
        found = choose(ghost, ask, place)[0]
        assert not found, f"nothing was granted, but {found[0]} could be had"


def check_parked(blocked: Sequence[Task]) -> None:
    """What a claim found blocked isn't looked at again until that has ended."""
    for task in blocked:
        assert task.waiting_on is not None, f"{task} is blocked and wasn't parked"


def settle_parks(
    ref: Reference,
    ask: Ask,
    seen: Seen,
    fences: Mapping[int, int],
    in_the_way: Mapping[int, Sequence[Lease]],
) -> None:
    """Take over who was parked on which lease, and whose turn was reserved.

    The turn that another one's grant has just used up may be waited for, too: the next claim drains it.
    """
    for number, task in ref.tasks.items():
        waits = seen.tasks[number]["waiting_on"]
        if waits is None or waits == task.waiting_on:
            continue
        assert task in ready(ref, ask, task.place), (
            f"{task} was parked by somebody who can't see it"
        )
        lease = ref.leases[waits]
        known = in_the_way.get(number, [])
        assert lease in known or lease in blockers(ref, task), (
            f"{task} waits for {lease}, which isn't in its way"
        )
        here = ref.places[task.place]
        task.waiting_on = waits
        if task.parked is None:
            first = (int(seen.tasks[number]["parked_fence"]), int(seen.tasks[number]["parked_ms"]))
            assert fences.get(task.place, here.fence) <= first[0] <= here.fence
            assert first[1] == ref.at(task.place)
            task.parked = first
    for number in sorted(seen.leases.keys() - ref.leases.keys()):
        _reserve(ref, number, seen.leases[number])


def _reserve(ref: Reference, number: int, row: Row) -> None:
    """A turn reserved for a task that was passed too often, or waited too long."""
    assert row["kind"] == "reservation", f"{row} came out of nothing"
    task = ref.tasks[int(row["task_id"])]
    here, queue, now = ref.places[task.place], ref.queue(task.queue), ref.at(task.place)
    assert task.state == "queued", f"a turn is reserved for {task}"
    assert not queue.paused
    assert not any(
        lease.kind == "reservation" and lease.ended is None for lease in ref.leases_in(task.place)
    ), "two turns are reserved"
    assert task.parked is not None
    passed, waited = here.fence - task.parked[0], now - task.parked[1]
    assert passed >= queue.overtakes or waited >= queue.overtake_ms, (
        f"{task} wasn't passed so often"
    )
    lease = Lease(
        id=number,
        kind="reservation",
        task=task.id,
        place=task.place,
        epoch=task.epoch,
        fence=here.fence,
        granted=now,
        expires=now + RESERVATION_MS,
        until=now + RESERVATION_MS,
        ttl=RESERVATION_MS,
        queue=task.queue,
        priority=task.priority,
    )
    lease.rows = [(text, mode, here.fence) for text, mode in task.paths]
    ref.leases[number] = lease
    task.parked = (here.fence, now)
    task.history.append("reserved")
