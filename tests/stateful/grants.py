"""The specification of adding and claiming: who gets what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asking import Ask, Seen, Wish
from choices import (
    check_limits,
    check_nothing_anywhere,
    check_parked,
    check_settled,
    notice,
    settle_parks,
)
from readiness import blockers, choose, pending, ready
from reference import TERMINAL, Reference, Refused
from world import Lease, Task, settle

LONGEST_HOLD_MS = 12 * 3_600_000


def submit(ref: Reference, wishes: Sequence[Wish], answer: Sequence[tuple[int, bool]]) -> None:
    """Add tasks; `answer` is each one's id and whether it was made.

    Raises:
        Refused: something that one of them needs can't succeed any more.
    """
    for wish in wishes:
        if any(ref.tasks[need].state in {"failed", "cancelled"} for need in wish.needs):
            raise Refused("transition_refused")
    highest = max(ref.tasks, default=0)
    fresh: list[tuple[Task, Wish]] = []
    for wish, (number, made) in zip(wishes, answer, strict=True):
        known = _unfinished(ref, wish)
        assert made == (known is None), f"task {number} of {wish}: it is {known}"
        if known is not None:
            assert number == known.id
            continue
        assert number > highest
        highest = number
        ref.tasks[number] = _task(number, wish, now=ref.clock)
        fresh.append((ref.tasks[number], wish))
    for task, wish in fresh:
        task.needs = {*wish.needs, *(answer[place][0] for place in wish.before)}


def claim(
    ref: Reference, ask: Ask, seen: Seen, *, hasty: bool = False, beside: bool = False
) -> list[Lease]:
    """The leases that the claim is answered with; a repeat gets those of the first time.

    Args:
        hasty: without a repository the store may grant what it knows is ready before it looks
            at what has become ready by time alone.
        beside: another claim is under way, and what it has locked is passed over.

    Raises:
        Refused: the request was another one, or all that it was granted has ended.
    """
    again = (ask.actor, ask.request) in ref.requests
    calm = ask.place is None and ask.task is None and not pending(ref)
    best = ready(ref, ask, None)[:1] if calm else []
    notice(ref, seen)
    if again:
        assert not seen.granted or set(seen.granted) <= set(ref.leases)
        settle_parks(ref, ask, seen, {}, {})
        return repeated(ref, ask)
    place = _place(ref, ask, seen)
    if place is None:
        check_nothing_anywhere(ref, ask)
        settle_parks(ref, ask, seen, {}, {})
        return []
    if beside:
        return _claim_beside(ref, ask, seen)
    fences = {number: at.fence for number, at in ref.places.items()}
    hasty = hasty and place == 0 and bool(seen.granted)
    if not hasty:
        check_settled(ref, place)
    check_limits(ref, ask, place)
    wanted, blocked = choose(ref, ask, place)
    granted = [int(seen.leases[lease]["task_id"]) for lease in seen.granted]
    expected = [task.id for task in wanted]
    assert granted == expected, f"granted {granted}, expected {expected}"
    if best and best[0] in choose(ref, ask, best[0].place)[0]:
        assert granted[0] == best[0].id, f"granted {granted}, best was {best[0].id}"
    in_the_way = {task.id: blockers(ref, task) for task in ready(ref, ask, place)}
    leases = _grant(ref, ask, place, seen)
    settle_parks(ref, ask, seen, fences, in_the_way)
    check_parked(blocked)
    return leases


def _claim_beside(ref: Reference, ask: Ask, seen: Seen) -> list[Lease]:
    """Grants that could be had, though others might have come first; without a repository."""
    free = ready(ref, ask, 0)
    granted = [ref.tasks[int(seen.leases[lease]["task_id"])] for lease in seen.granted]
    assert all(task in free for task in granted), f"{granted} weren't free"
    room = choose(ref, replace(ask, wanted=len(free)), 0)[0]
    assert len(granted) <= len(room), "more than the limits leave"
    return _grant(ref, ask, 0, seen)


def repeated(ref: Reference, ask: Ask) -> list[Lease]:
    """What the request was granted and that is still live."""
    digest, answer = ref.requests[ask.actor, ask.request]
    if digest != ask:
        raise Refused("request_reused")
    assert isinstance(answer, tuple)
    live = [
        ref.leases[lease]
        for lease in answer
        if ref.leases[lease].ended is None and ref.clock < ref.leases[lease].expires
    ]
    if not live:
        raise Refused("grant_over")
    return live


def _task(number: int, wish: Wish, *, now: int) -> Task:
    paths = [(text, "w") for text in settle(wish.writes)]
    return Task(
        id=number,
        place=wish.place,
        queue=wish.queue,
        priority=wish.priority,
        paths=paths + [(text, "r") for text in settle(wish.reads)],
        strict=wish.strict,
        progress=wish.progress,
        effects=wish.effects,
        keyed=wish.keyed,
        max_attempts=wish.max_attempts,
        agent=wish.agent,
        capability=wish.capability,
        limit_key=wish.limit_key,
        unique=wish.unique,
        run_at=now + wish.delay,
        due=wish.delay == 0,
    )


def _unfinished(ref: Reference, wish: Wish) -> Task | None:
    return next(
        (
            task
            for task in ref.tasks.values()
            if wish.unique is not None
            and (task.queue, task.unique) == (wish.queue, wish.unique)
            and task.state not in TERMINAL
        ),
        None,
    )


def _place(ref: Reference, ask: Ask, seen: Seen) -> int | None:
    """Where the claim was answered from; None where it looked everywhere and found nothing."""
    if ask.place is not None:
        return ask.place
    if ask.task is not None:
        return ref.tasks[ask.task].place
    places = {int(seen.leases[lease]["repository_id"]) for lease in seen.granted}
    assert len(places) <= 1, "one claim granted in several repositories"
    return places.pop() if places else None


def _grant(ref: Reference, ask: Ask, place: int, seen: Seen) -> list[Lease]:
    if not seen.granted:
        return []
    now, here, worker = ref.at(place), ref.places[place], ref.workers[ask.worker]
    leases = []
    for number, token in zip(seen.granted, seen.tokens, strict=True):
        task = ref.tasks[int(seen.leases[number]["task_id"])]
        for own in ref.leases.values():
            if own.task == task.id and own.kind != "lease" and own.ended is None:
                own.ended, own.end, own.rows = now, "granted", []
        task.state, task.parked = "running", None
        task.epoch += 1
        task.attempts += 1
        task.history.append("claimed")
        here.fence += place > 0
        hold = ask.ttl if not task.progress else ask.hold or max(LONGEST_HOLD_MS, ask.ttl)
        lease = Lease(
            id=number,
            kind="lease",
            task=task.id,
            place=place,
            epoch=task.epoch,
            fence=here.fence,
            granted=now,
            expires=now + ask.ttl,
            until=now + hold,
            ttl=ask.ttl,
            worker=worker.id,
            token=token,
            queue=task.queue,
            agents=(worker.agent, worker.kind),
            limit_key=task.limit_key,
        )
        ref.take(lease, task.paths, here.fence)
        ref.leases[number] = ref.granted[task.id, task.epoch] = lease
        leases.append(lease)
    if place:
        here.floor = now
    ref.requests[ask.actor, ask.request] = (ask, tuple(sorted(seen.granted)))
    return leases
