"""A task: a unit of work in a queue, and what a person or program asks for when adding one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from lessor.model.lifecycle import TaskState

TaskId = NewType("TaskId", str)


class Effects(StrEnum):
    """The side-effect class: what may have happened outside when a run stops halfway."""

    READ_ONLY = "read-only"
    WORKSPACE = "workspace"  # ordinary coding work: effects only inside the worktree
    IDEMPOTENT = "idempotent"
    BROKERED = "brokered"  # effects only through the executor, after announcing them
    UNSAFE = "unsafe"
    UNDECLARED = "undeclared"


class Stage(StrEnum):
    """How far a result got; "done" in an agent's mouth is none of these."""

    NONE = "none"
    SUBMITTED = "submitted"
    UNVERIFIED = "unverified"  # no check was there to run
    VERIFIED = "verified"
    PUSHED = "pushed"
    LANDED = "landed"


AD_HOC = "ad-hoc"
"""The queue of tasks that only stand for paths: acquired by a script, held by a person."""

DRILL = "lessor-drill"
"""The queue of drills, and the repository of those that need none: what is in them is nobody's work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """What is asked for.

    Attributes:
        repository: the repository's id, or None for a task without one.
        scopes: paths or globs it starts with for writing; none means that its scope grows.
        reads: paths or globs it reads and that nobody may write meanwhile.
        strict: whether it is confined to the scopes it starts with.
        priority: higher goes first; -1000 to 1000.
        delay: how long from now (the store's) until it may be claimed.
        run_at: the instant from which it may be claimed; not together with `delay`.
        needs: ids of tasks that have to succeed first.
        needs_index: the same for tasks of this batch, by position.
        unique_key: at most one unfinished task of a queue has it; submitting again returns that one.
        idempotency_key: names the real-world action across attempts.
        max_attempts: attempts that count before it is quarantined.
        check: the command that judges the result, run in a clean checkout.
        agent: the agent that has to do it; None means any.
        capabilities: what the worker needs to offer.
        limit_key: counted against the concurrency limit of that key, where one is set.
        progress: whether the holder can show progress; without it the term is fixed and never renewed.
        branch: a branch name; else one is made at the claim.
        prompt: what the agent is told; data, never an instruction to Lessor.
    """

    title: str
    prompt: str = ""
    queue: str = "default"
    repository: str | None = None
    scopes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    strict: bool = False
    priority: int = 0
    delay: timedelta | None = None
    run_at: datetime | None = None
    needs: tuple[str, ...] = ()
    needs_index: tuple[int, ...] = ()
    unique_key: str | None = None
    idempotency_key: str | None = None
    effects: Effects = Effects.WORKSPACE
    max_attempts: int = 3
    check: str | None = None
    agent: str | None = None
    capabilities: tuple[str, ...] = ()
    limit_key: str | None = None
    progress: bool = True
    branch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The answer to one submitted task; `created` is False where it was there already."""

    task: TaskId
    number: int
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as the store has it; instants are milliseconds of the store's clock."""

    id: TaskId
    number: int
    title: str
    prompt: str
    queue: str
    repository: str | None
    priority: int
    state: TaskState
    stage: Stage
    effects: Effects
    agent: str | None
    check: str | None
    branch: str | None
    strict: bool
    progress: bool
    unique_key: str | None
    idempotency_key: str | None
    limit_key: str | None
    capabilities: tuple[str, ...]
    epoch: int
    attempts: int
    charged: int
    max_attempts: int
    run_at_ms: int
    queued_ms: int
    created_ms: int
    finished_ms: int | None
    needs_left: int
    waiting_on: str | None
    last_error: str | None
    base: str | None
    commit: str | None
    said: str | None
    scopes: tuple[str, ...] = field(default=())
    reads: tuple[str, ...] = field(default=())
