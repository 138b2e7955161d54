"""How many worktrees a repository may keep on a host: it is reported and proposed, never enforced.

Age, count and bytes are compared with what stays after everything went that nothing is lost with.
What is proposed is a person's to name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may stay; None where nobody settled it.

    Attributes:
        bytes: on disk, of all together.
        age_ms: since the last change of one's record.
    """

    count: int | None = None
    bytes: int | None = None
    age_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A worktree that stays.

    Attributes:
        id: the workspace's number.
        at_ms: its record's last change.
        may_be_named: whether a person could discard it now; one in use can't be.
    """

    id: int
    bytes: int
    at_ms: int
    may_be_named: bool


class Measure(StrEnum):
    """What a budget counts."""

    COUNT = "count"
    BYTES = "bytes"
    AGE = "age"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """One measure that is over: how much there is of it, and how much may be.

    For the age `have` is how many are older, and `most` the age in milliseconds.
    """

    measure: Measure
    have: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """What is over, and the workspaces to discard for it, the oldest first."""

    excesses: tuple[Excess, ...] = ()
    proposed: tuple[int, ...] = ()


def judge_budget(budget: Budget, stays: Sequence[Stay], *, now_ms: int) -> Overrun:
    """Compare what stays with the budget."""
    old = [stay for stay in stays if _is_old(budget, stay, now_ms=now_ms)]
    together = sum(stay.bytes for stay in stays)
    found = (
        (Measure.COUNT, len(stays), budget.count),
        (Measure.BYTES, together, budget.bytes),
    )
    excesses = [
        Excess(measure=measure, have=have, most=most)
        for measure, have, most in found
        if most is not None and have > most
    ]
    if old and budget.age_ms is not None:
        excesses.append(Excess(measure=Measure.AGE, have=len(old), most=budget.age_ms))
    return Overrun(excesses=tuple(excesses), proposed=_proposed(budget, stays, old))


def _proposed(budget: Budget, stays: Sequence[Stay], old: Sequence[Stay]) -> tuple[int, ...]:
    count, together = len(stays), sum(stay.bytes for stay in stays)
    chosen: list[int] = []
    for stay in sorted(stays, key=lambda stay: (stay.at_ms, stay.id)):
        too_many = budget.count is not None and count > budget.count
        too_large = budget.bytes is not None and together > budget.bytes
        if stay.may_be_named and (stay in old or too_many or too_large):
            chosen.append(stay.id)
            count, together = count - 1, together - stay.bytes
    return tuple(chosen)


def _is_old(budget: Budget, stay: Stay, *, now_ms: int) -> bool:
    return budget.age_ms is not None and now_ms - stay.at_ms > budget.age_ms
