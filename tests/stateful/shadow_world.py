"""What may begin where results lie that haven't landed: said once more, in plain Python.

One repository, one queue, leases that never run out. It knows nothing of the product's rules: paths
are compared by listing them, and every claim is decided anew from what is true now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from world import Paths, clash

HOUR = 3_600_000
HOLD_MS, SHADOW_MS = 4 * HOUR, 72 * HOUR


@dataclass(slots=True, kw_only=True)
class Errand:
    """A task: what it has for writing and reading, where it is, and what its last epoch left.

    Attributes:
        fresh: it has no branch yet.
        held_until: its question holds its paths until then.
        head: the commit that it reported last, if it has one of its own.
        shadow_until: its work lies on its paths until then.
        below: the tasks on whose work it stands, the nearest first.
        stand: the one that its first epoch began on, and at which commit; None means the target.
        fate: what became of its result: "open", "landed", "given up"; None without one.
    """

    id: int
    paths: Paths
    state: str = "queued"
    fresh: bool = True
    head: str | None = None
    held_until: int | None = None
    shadow_until: int | None = None
    below: tuple[int, ...] = ()
    stand: tuple[int, str | None] | None = None
    fate: str | None = None

    @property
    def shade(self) -> Paths:
        """What its shadow lies on."""
        return [(text, mode) for text, mode in self.paths if mode == "w"]


@dataclass(slots=True, kw_only=True)
class Begun:
    """A grant: on whose work, at which commit, it begins; None means the target."""

    task: int
    on: int | None = None
    head: str | None = None


@dataclass(slots=True, kw_only=True)
class ShadowWorld:
    """Everything that is true."""

    now: int
    unlanded: str = "stack"
    errands: dict[int, Errand] = field(default_factory=dict)

    def end_what_ran_out(self) -> None:
        """What a claim or a sweep finds."""
        for one in self.errands.values():
            if one.held_until is not None and one.held_until <= self.now:
                one.held_until = None
                if one.head is not None:
                    one.shadow_until, one.fate = self.now + SHADOW_MS, "open"
            elif one.shadow_until is not None and one.shadow_until <= self.now:
                one.shadow_until = None

    def claim(self, wanted: int) -> list[Errand]:
        """Who begins; each says on what it stands."""
        self.end_what_ran_out()
        begun: list[Errand] = []
        for one in sorted(self.errands.values(), key=lambda errand: errand.id):
            if one.state != "queued" or len(begun) == wanted or self._is_blocked(one):
                continue
            ground = self._ground(one)
            if ground is None:
                continue
            one.state, one.held_until, one.shadow_until = "running", None, None
            if ground.on is not None:
                one.below = (ground.on, *self.errands[ground.on].below)
                one.stand = (ground.on, ground.head)
            one.fresh = False
            begun.append(one)
        return begun

    def complete(self, task: int, head: str | None) -> None:
        """Its result, with a commit of its own or without."""
        one = self.errands[task]
        one.state, one.head = "succeeded", head
        if head is not None:
            one.shadow_until, one.fate = self.now + SHADOW_MS, "open"

    def ask(self, task: int, head: str | None) -> None:
        """A question, with a commit or without."""
        one = self.errands[task]
        one.state, one.head, one.held_until = "needs_person", head, self.now + HOLD_MS

    def release(self, task: int) -> None:
        """Given back: nothing is held, and nothing left."""
        self.errands[task].state = "queued"

    def answer(self, task: int) -> None:
        """Its hold or its shadow stays until it is claimed."""
        self.errands[task].state = "queued"

    def cancel(self, task: int) -> None:
        """Nothing of it is in anybody's way any more."""
        one = self.errands[task]
        one.state, one.held_until, one.shadow_until = "cancelled", None, None

    def settle(self, task: int, fate: str) -> bool | None:
        """Landed, or given up; whether that is news, None where there is no result."""
        one = self.errands[task]
        if one.fate is None:
            return None
        if one.fate in {"landed", fate}:
            return False
        one.fate, one.shadow_until = fate, None
        return True

    def shadows(self) -> set[int]:
        """Whose work lies on its paths."""
        return {one.id for one in self.errands.values() if one.shadow_until is not None}

    def _is_blocked(self, one: Errand) -> bool:
        return any(
            clash(one.paths, other.paths)
            for other in self.errands.values()
            if other is not one and (other.state == "running" or other.held_until is not None)
        )

    def _ground(self, one: Errand) -> Begun | None:
        """Where it would begin; None while it waits for a landing."""
        met = [
            other
            for other in self.errands.values()
            if other.shadow_until is not None
            and other is not one
            and one.id not in other.below
            and clash(one.paths, other.shade)
        ]
        if not met or self.unlanded == "ignore":
            return Begun(task=one.id)
        if self.unlanded == "wait":
            return None
        if not one.fresh:
            return Begun(task=one.id)
        tops = [top for top in met if _contains(top, met)]
        return Begun(task=one.id, on=tops[0].id, head=tops[0].head) if tops else None


def _contains(top: Errand, met: Sequence[Errand]) -> bool:
    return all(other is top or other.id in top.below for other in met)
