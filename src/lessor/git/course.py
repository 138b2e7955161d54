"""A branch's way since it began: its own commits, where they leave the target, what brought them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lessor.git.ancestry import Ancestry, Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A branch's tip, and the commit that it began from; None where nobody recorded it."""

    tip: str
    base: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One branch against its target.

    Attributes:
        own: the commits that neither the base nor the target leads to, newest first.
        forks: the commits that the own ones begin from, those that another of them leads to left
            out; one unless histories cross or have nothing in common.
        empty: the base leads to the tip.
        carrier: the commit at which the target itself came to have the tip, or the fork where it
            hasn't the tip; None where it has neither.
        brought: the commits since the base that came with that one.
    """

    tip: str
    base: str | None
    own: tuple[str, ...] = ()
    forks: tuple[str, ...] = ()
    empty: bool = False
    carrier: str | None = None
    brought: tuple[str, ...] = ()

    @property
    def is_contained(self) -> bool:
        """Whether the target leads to the tip."""
        return self.carrier is not None and not self.own

    @property
    def fork(self) -> str | None:
        """The commit that the own ones begin from; None where it isn't one."""
        return self.forks[0] if len(self.forks) == 1 else None

    @property
    def is_forward(self) -> bool:
        """Whether the target itself was at what it has: by a fast-forward, or as its own work.

        What was brought may then be anybody's.
        """
        return self.carrier is not None and self.carrier == (self.fork if self.own else self.tip)


def courses(ancestry: Ancestry, begun: Sequence[Begun], *, target: str) -> list[Course]:
    """The courses of all branches; a few passes over the history, however many they are."""
    bases = {branch.base for branch in begun if branch.base}
    reach = ancestry.reached_by([target, *bases])
    found = [_course(ancestry, reach, branch, target) for branch in begun]
    crossed = {fork for course in found if len(course.forks) > 1 for fork in course.forks}
    between = ancestry.reached_by(crossed)
    found = [replace(course, forks=tuple(between.newest(course.forks))) for course in found]
    carriers = ancestry.brought_by(target)
    return [_carried(ancestry, reach, course, carriers, target) for course in found]


def _course(ancestry: Ancestry, reach: Reach, branch: Begun, target: str) -> Course:
    tip, base = branch.tip, branch.base

    def is_old(oid: str) -> bool:
        return _is_old(reach, base, oid)

    if is_old(tip):
        return Course(tip=tip, base=base, empty=True)
    if tip == target:
        return Course(tip=tip, base=base)
    own, edge = ancestry.walk(tip, until=lambda c: reach.leads(target, c) or is_old(c))
    return Course(tip=tip, base=base, own=tuple(own), forks=tuple(edge) if own else ())


def _carried(
    ancestry: Ancestry, reach: Reach, course: Course, carriers: Mapping[str, str], target: str
) -> Course:
    """The course with what the target has of it."""
    there = course.fork if course.own else course.tip
    if course.empty or there is None or not (there == target or reach.leads(target, there)):
        return course
    carrier = carriers.get(there, there)

    def ends(oid: str) -> bool:
        is_others = carrier != there and carriers.get(oid) != carrier
        return is_others or _is_old(reach, course.base, oid)

    # Without a base nothing says how far back the branch's own commits go on the target's line.
    is_known = course.base is not None or (carrier != there and not course.own)
    brought = ancestry.walk(there, until=ends)[0] if is_known else []
    return replace(course, carrier=carrier, brought=tuple(brought))


def _is_old(reach: Reach, base: str | None, oid: str) -> bool:
    return base is not None and (oid == base or reach.leads(base, oid))
