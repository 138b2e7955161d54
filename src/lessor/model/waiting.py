"""Why a task doesn't run, and who holds a path: answers for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lessor.model.lifecycle import TaskState


class Cause(StrEnum):
    """What a task waits for."""

    RUNNING = "running"
    READY = "ready"
    LEASE = "lease"  # somebody holds paths that it needs
    RESERVATION = "reservation"  # a starved task's turn comes first
    HOLD = "hold"
    SHADOW = "shadow"
    TASKS = "tasks"  # others have to succeed first
    TIME = "time"
    PAUSED = "paused"
    LIMIT = "limit"
    AGENT = "agent"  # no live worker is of the kind, or offers what it needs
    PERSON = "person"
    STATE = "state"  # blocked, quarantined, reconciling
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A live lease that covers paths.

    Attributes:
        paths: the scope's texts that are meant; all of them, or those that overlap.
        ends_ms: the deadline on the store's clock.
        latest_ms: the latest that renewals can make of it.
    """

    lease: str
    kind: str
    task: str
    number: int
    title: str
    agent: str
    epoch: int
    paths: tuple[str, ...]
    since_ms: int
    ends_ms: int
    latest_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a task is where it is.

    Attributes:
        sentence: for people; says what it waits for and when that ends at the latest.
        overlaps: pairs of (own path, held path) where a lease is in the way.
        position: how many go before it, plus one; 0 where it isn't waiting in line.
        reserved: its turn is reserved after it was passed too often.
        overdue: it has waited longer than its queue allows.
        next_step: one command.
    """

    task: str
    number: int
    state: TaskState
    cause: Cause
    sentence: str
    holder: Held | None = None
    overlaps: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()
    position: int = 0
    at_ms: int | None = None
    reserved: bool = False
    overdue: bool = False
    next_step: str = ""
