"""Which of the target's commits make a branch's changes, and whether they were taken out again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from lessor.git.course import Course
from lessor.git.equality import Changes
from lessor.git.provenance import is_copy, is_own
from lessor.model.landing import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What the target has of a branch.

    Attributes:
        way: how all of it came, other than by a merge; None where not all of it did.
        parts: how many of its changes came, those that were reverted since included.
        of: how many changes it has.
        holders: the target's commits that hold them, newest first.
    """

    way: Way | None = None
    parts: int = 0
    reverted: int = 0
    of: int = 0
    holders: tuple[str, ...] = ()


def merged(changes: Changes, course: Course, work: Sequence[str], *, carrier: str) -> Carried:
    """What became of a branch that the target leads to; `work` are its own among what came."""
    whole = changes.of_merge(carrier) or changes.whole(course)
    units = changes.units(work)
    of = max(len(units), 1)
    reverted = of if changes.is_undone([carrier], whole) else _reverted(changes, units)
    return Carried(parts=of, reverted=reverted, of=of, holders=(carrier,))


def with_earlier(
    changes: Changes, carried: Carried, course: Course, work: Sequence[str]
) -> Carried:
    """The same for a branch that went on after a first part of it, `work`, had been merged."""
    units = changes.units(work)
    if not units or course.carrier is None:
        return carried
    reverted = _reverted(changes, units)
    # Of a branch that isn't whole only what is still there counts.
    is_whole = carried.way is not None
    return replace(
        carried,
        parts=carried.parts + len(units) - (0 if is_whole else reverted),
        reverted=carried.reverted + (reverted if is_whole else 0),
        of=carried.of + len(units),
        holders=changes.in_order((*carried.holders, course.carrier)),
    )


def _reverted(changes: Changes, units: Sequence[str]) -> int:
    return sum(changes.is_undone([oid], changes.span_of(oid)) for oid in units)


def copied(changes: Changes, course: Course, branch: str, *, odd: Collection[str] = ()) -> Carried:
    """What the target has of a branch that it doesn't lead to, by what its commits change.

    `odd` are its merges that hold more than git would have merged: changes too, of which nobody
    can say where they went.
    """
    units = changes.units(course.own)
    made = {oid: changes.makers(changes.span_of(oid), since=course.forks) for oid in units}
    whole = changes.makers(changes.whole(course), since=course.forks)
    if len(units) == 1 and not odd:
        whole = whole or made[units[0]]
    if whole:
        return _in_one(changes, course, branch, units, whole)
    if units and all(made.values()) and not odd:
        return _one_by_one(changes, course, branch, made)
    return _in_part(changes, course, made, of=len(units) + len(odd))


def _in_one(
    changes: Changes, course: Course, branch: str, units: Sequence[str], whole: Sequence[str]
) -> Carried:
    own = [changes.commit(oid) for oid in course.own]
    ours = [oid for oid in whole if is_own(changes.commit(oid), branch=branch, own=own)]
    way = Way.SQUASH if ours else Way.OTHERS
    if len(units) == 1 and any(is_copy(changes.commit(o), changes.commit(units[0])) for o in ours):
        way = Way.REBASE
    of = max(len(units), 1)
    undone = changes.is_undone(whole, changes.whole(course))
    holders = changes.in_order(ours or whole)
    return Carried(way=way, parts=of, reverted=of if undone else 0, of=of, holders=holders)


def _one_by_one(
    changes: Changes, course: Course, branch: str, made: dict[str, list[str]]
) -> Carried:
    own = [changes.commit(oid) for oid in course.own]
    ours = {
        oid: [k for k in found if is_own(changes.commit(k), branch=branch, own=own)]
        for oid, found in made.items()
    }
    way = Way.REBASE if any(ours.values()) else Way.OTHERS
    reverted = _undone(changes, made)
    newest = {oid: changes.in_order(ours[oid] or found)[0] for oid, found in made.items()}
    if not reverted and changes.is_undone(newest.values(), changes.whole(course)):
        reverted = len(made)
    return Carried(
        way=way,
        parts=len(made),
        reverted=reverted,
        of=len(made),
        holders=changes.in_order(newest.values()),
    )


def _in_part(changes: Changes, course: Course, made: dict[str, list[str]], *, of: int) -> Carried:
    """Some of its commits, or a squash of its first ones: work went on after it had landed."""
    there = {oid: found for oid, found in made.items() if found}
    parts = len(there) - _undone(changes, there)
    holders = [changes.in_order(found)[0] for found in there.values()]
    for count, span in changes.beginnings(course):
        found = changes.makers(span, since=course.forks)
        if found and count > parts and not changes.is_undone(found, span):
            parts, holders = count, [changes.in_order(found)[0]]
    return Carried(parts=parts, of=of, holders=changes.in_order(holders) if parts else ())


def _undone(changes: Changes, made: dict[str, list[str]]) -> int:
    return sum(
        changes.is_undone(found, changes.span_of(oid)) for oid, found in made.items() if found
    )
