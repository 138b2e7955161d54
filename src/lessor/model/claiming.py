"""Which of the ready tasks a claim gets: decided over the list, in order, from what was read.

A candidate that overlaps a live lease, or one granted in this very batch, is parked on it and left
out of every scan until that lease ends. A candidate at a limit is only passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lessor.model.scope import Scope, conflicts
from lessor.model.shadow import Shadow, Unlanded, foundation


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A ready task as it was read under the lock.

    Attributes:
        blocker: a live lease that overlaps it, where that is already known.
        scopes: needed only when more than one task is claimed at once.
        shadows: the results that haven't landed whose paths it overlaps.
    """

    task: int
    epoch: int
    rank: int
    number: int
    title: str
    branch: str | None
    limit_key: str | None
    progress: bool
    has_own: bool
    blocker: int | None
    scopes: tuple[Scope, ...] = ()
    shadows: tuple[Shadow, ...] = ()


@dataclass(slots=True, kw_only=True)
class Room:
    """What the concurrency limits leave; None means no limit is set."""

    queue: int | None = None
    agent: int | None = None
    keys: dict[str, int] = field(default_factory=dict)

    def admits(self, limit_key: str | None) -> bool:
        """Whether one more lease fits under every limit that counts it."""
        return (
            (self.queue is None or self.queue > 0)
            and (self.agent is None or self.agent > 0)
            and (limit_key is None or self.keys.get(limit_key, 1) > 0)
        )

    def is_closed(self) -> bool:
        """Whether no lease at all fits any more."""
        return (self.queue is not None and self.queue <= 0) or (
            self.agent is not None and self.agent <= 0
        )

    def full_keys(self) -> set[str]:
        """Keys under which no lease fits any more."""
        return {key for key, left in self.keys.items() if left <= 0}

    def take(self, limit_key: str | None) -> None:
        """Count one more lease."""
        if self.queue is not None:
            self.queue -= 1
        if self.agent is not None:
            self.agent -= 1
        if limit_key is not None and limit_key in self.keys:
            self.keys[limit_key] -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """A task that waits: for a live lease, or for the one that `behind` gets in this batch.

    Attributes:
        shadow: the lease is a result's that has to land; nobody passes who waits for that.
    """

    task: int
    lease: int | None = None
    behind: int | None = None
    shadow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Who gets a lease, in order, who waits, and which of the granted begins on which result."""

    grants: list[Candidate]
    parks: list[Park]
    stands: dict[int, Shadow] = field(default_factory=dict)


def decide(
    candidates: Iterable[Candidate],
    *,
    wanted: int,
    room: Room,
    glob_blockers: Mapping[int, int],
    unlanded: Unlanded = Unlanded.IGNORE,
    earlier: Sequence[Candidate] = (),
) -> Decision:
    """Grant at most `wanted` of `candidates`, in their order.

    Args:
        candidates: ready tasks in claim order.
        wanted: how many leases at most.
        room: what the limits leave; counted down here.
        glob_blockers: task to a lease that overlaps it by a glob, decided exactly before.
        unlanded: the repository's setting.
        earlier: what is granted already of the same `wanted`; `room` doesn't count it yet.
    """
    grants: list[Candidate] = []
    parks: list[Park] = []
    stands: dict[int, Shadow] = {}
    taken = _taken_by(earlier, room)
    wanted -= len(earlier)
    for candidate in candidates:
        blocker = candidate.blocker or glob_blockers.get(candidate.task)
        if blocker is not None:
            parks.append(Park(task=candidate.task, lease=blocker))
            continue
        ground = ground_of(
            candidate.shadows, unlanded, fresh=candidate.branch is None, task=candidate.task
        )
        if ground.wait is not None:
            parks.append(Park(task=candidate.task, lease=ground.wait.lease, shadow=True))
            continue
        if len(grants) >= wanted:
            continue
        behind = taken.overlapping(candidate.scopes) if grants or earlier else None
        if behind is not None:
            parks.append(Park(task=candidate.task, behind=behind))
        elif room.admits(candidate.limit_key):
            room.take(candidate.limit_key)
            taken.add(candidate.task, candidate.scopes)
            grants.append(candidate)
            if ground.stand is not None:
                stands[candidate.task] = ground.stand
    return Decision(grants=grants, parks=parks, stands=stands)


def _taken_by(earlier: Sequence[Candidate], room: Room) -> Taken:
    taken = Taken()
    for grant in earlier:
        room.take(grant.limit_key)
        taken.add(grant.task, grant.scopes)
    return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a task's work would begin: on `stand`, else on the target; not before `wait` landed."""

    stand: Shadow | None = None
    wait: Shadow | None = None


def ground_of(
    shadows: Sequence[Shadow], unlanded: Unlanded, *, fresh: bool, task: int = 0
) -> Ground:
    """What the results that a task overlaps mean for it.

    Args:
        task: its own; what was built on its earlier work waits for it, and never the other way.
        fresh: it has no branch yet. One that has, from an earlier epoch or by its own wish, goes on
            where that is: commits that exist can't begin on top of something. Landing finds out
            whether they fit.
    """
    shadows = [shadow for shadow in shadows if task not in shadow.below]
    if not shadows or unlanded is Unlanded.IGNORE:
        return Ground()
    if unlanded is Unlanded.WAIT:
        return Ground(wait=shadows[0])
    if not fresh:
        return Ground()
    stand = foundation(shadows)
    return Ground(wait=shadows[0]) if stand is None else Ground(stand=stand)


class Taken:
    """The scopes granted in one batch, looked up by key: a hundred against a hundred costs little."""

    def __init__(self) -> None:
        self._writers: dict[str, int] = {}
        self._readers: dict[str, int] = {}
        self._above_writers: dict[str, int] = {}
        self._above_readers: dict[str, int] = {}
        self._globs: list[tuple[Scope, int]] = []
        self._plain: list[tuple[Scope, int]] = []

    def add(self, task: int, scopes: Iterable[Scope]) -> None:
        """Remember that `task` has `scopes` now."""
        for scope in scopes:
            if scope.pattern is not None:
                self._globs.append((scope, task))
                continue
            self._plain.append((scope, task))
            writes = scope.mode == "w"
            (self._writers if writes else self._readers)[scope.key] = task
            above = self._above_writers if writes else self._above_readers
            for key in scope.ancestors:
                above[key] = task

    def overlapping(self, scopes: Iterable[Scope]) -> int | None:
        """A task of this batch that `scopes` conflict with."""
        for scope in scopes:
            hit = (
                self._plain_hit(scope)
                if scope.pattern is None
                else self._slow_hit(scope, self._plain)
            )
            hit = hit if hit is not None else self._slow_hit(scope, self._globs)
            if hit is not None:
                return hit
        return None

    def _plain_hit(self, scope: Scope) -> int | None:
        writes = scope.mode == "w"
        below = self._above_writers.get(scope.key)
        if below is None and writes:
            below = self._above_readers.get(scope.key)
        if below is not None:
            return below
        for key in scope.ancestors:
            hit = self._writers.get(key)
            if hit is None and writes:
                hit = self._readers.get(key)
            if hit is not None:
                return hit
        return None

    @staticmethod
    def _slow_hit(scope: Scope, held: list[tuple[Scope, int]]) -> int | None:
        return next((task for other, task in held if conflicts(scope, other)), None)


RESERVATION_MS = 3_600_000


def is_starved(
    *, fence: int, now: int, parked_fence: int, parked_ms: int, limit: int, limit_ms: int
) -> bool:
    """Whether a parked task was passed by so many grants, or for so long, that its turn is reserved.

    No counter is written: every grant moves the repository's fence by one.
    """
    return fence - parked_fence >= limit or now - parked_ms >= limit_ms
