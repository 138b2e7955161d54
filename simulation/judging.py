"""The judge: after every commit and every answer, all invariants, by the tables and by who was told what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lessor.ids import token_hash
from lessor.model.grant import Failure
from lessor.model.lease import Holder
from lessor.service.naming import Naming
from simulation.tables import Change, Row, Tables

Changes = Mapping[str, Sequence[Change]]
NONE: Sequence[Change] = ()


class BrokenError(BaseException):
    """An invariant doesn't hold; no process may catch this."""

    def __init__(self, invariant: str, sentence: str, found: str) -> None:
        super().__init__(f"{invariant}: {found}")
        self.invariant = invariant
        self.sentence = sentence
        self.found = found


@dataclass(slots=True, kw_only=True)
class Doing:
    """What a process is about to do, as the outside knows it.

    Attributes:
        holders: the proofs that it shows.
        request: the request id of a claim, with the worker's id.
        failure: what the holder says of why it stopped.
        wrote: what was committed on its behalf so far.
        interrupted: whether others could act while it was under way.
    """

    kind: str
    holders: Sequence[Holder] = ()
    request: tuple[str, str] | None = None
    failure: Failure | None = None
    wrote: list[Changes] = field(default_factory=list)
    interrupted: bool = False


IDLE = Doing(kind="nothing")


class Memory:
    """What was true once and has to stay so."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}  # the highest granted, by task
        self.fences: dict[int, int] = {}  # the highest granted, by repository
        self.written: dict[
            tuple[int, int], tuple[int, int]
        ] = {}  # by repository and file: fence, task
        self.read: dict[tuple[int, int], tuple[int, int]] = {}
        self.unblocked: dict[int, int] = {}  # how often with no attempt left, by task
        self.errors: dict[int, tuple[str, int]] = {}  # the last, and how often in a row, by task
        self.completed: dict[int, int] = {}  # the lease, by task
        self.answers: dict[tuple[str, str], frozenset[int]] = {}  # leases, by worker and request
        self.latest = 0  # the latest that the store's clock ever said
        self.clock_was_right = True  # it was never set forward, so that no lease ended too early
        self.believed: dict[
            int, tuple[int, str]
        ] = {}  # until when (boot time) and by whom, by lease


@dataclass(slots=True, kw_only=True)
class Commit:
    """What one transaction changed.

    Attributes:
        now: the store's clock as the transaction read it.
        slept: by how much it extended the live leases for a suspend.
    """

    tables: Tables
    naming: Naming
    memory: Memory
    doing: Doing
    now: int
    changes: Changes
    slept: int = 0
    _floors: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def of(self, table: str) -> Sequence[Change]:
        """The rows of a table that were changed."""
        return self.changes.get(table, NONE)

    def rows(self, table: str) -> Iterator[tuple[Row, Row]]:
        """Rows that were there before and are there now."""
        for change in self.of(table):
            if change.old is not None and change.new is not None:
                yield change.old, change.new

    def made(self, table: str) -> Iterator[Row]:
        """Rows that weren't there before."""
        for change in self.of(table):
            if change.old is None and change.new is not None:
                yield change.new

    def latest(self, repository: int) -> int:
        """The store's clock, or the repository's floor where that is later."""
        row = self.tables.rows["counter"].get((repository,))
        return max(self.now, 0 if row is None else row["floor_ms"])

    def held(self, lease: Row, *, versioned: bool) -> bool:
        """Whether one of the proofs shown is the live holder's of this lease, as it was before."""
        return any(self.proves(holder, lease, versioned=versioned) for holder in self.doing.holders)

    def proves(self, holder: Holder, lease: Row, *, versioned: bool) -> bool:
        """Whether a proof is the live holder's of this lease, as it was before."""
        return (
            names(self.naming, holder, lease)
            and lease["ended_ms"] is None
            and self.now < lease["expires_ms"] + self.slept
            and (not versioned or lease["version"] == holder.version)
        )


def names(naming: Naming, holder: Holder, lease: Row) -> bool:
    """Whether a proof names this lease, live or not."""
    return bool(
        lease["kind"] == "lease"
        and lease["task_id"] == naming.task_row(holder.task)
        and lease["epoch"] == holder.epoch
        and lease["worker_id"] == naming.worker_row(holder.worker)
        and lease["token_hash"] == token_hash(holder.token)
    )


@dataclass(slots=True, kw_only=True)
class Answer:
    """What a process was told.

    Attributes:
        value: the answer; None where it was refused.
        code: the refusal's code; empty where there was none.
        at_ms: the boot clock, by which processes measure their authority.
    """

    tables: Tables
    naming: Naming
    memory: Memory
    doing: Doing
    value: Any
    code: str
    now: int
    at_ms: int


CommitRule = Callable[[Commit], Iterator[str]]
AnswerRule = Callable[[Answer], Iterator[str]]


def judge(
    rules: Sequence[Callable[[Any], Iterator[str]]], case: Any, *, unjudged: Collection[str] = ()
) -> None:
    """Raise BrokenError with the first thing that a rule finds, but for those that are `unjudged`."""
    for rule in rules:
        for found in rule(case):
            if rule.__name__ in unjudged:
                continue  # to its end all the same: it remembers what it goes by
            raise BrokenError(rule.__name__, (rule.__doc__ or "").partition("\n")[0], found)
