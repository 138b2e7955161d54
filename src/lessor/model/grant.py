"""What claiming, renewing and ending are asked with and answered by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lessor.model.lease import Holder, LeaseEnd, LeaseId
from lessor.model.lifecycle import TaskState
from lessor.model.task import Effects, Stage, TaskId


class Reach(StrEnum):
    """Which tasks a claim that names no repository is about."""

    ANYWHERE = "anywhere"
    NO_REPOSITORY = "no-repository"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """A wish for work; a retry sends the same one.

    Attributes:
        repository: the repository's id, or a `Reach`.
        task: only this task.
        wanted: how many leases at most, all of them in one repository or all without.
        request_id: made by the caller; the same id with the same wish gets the same answer.
        secret: from which the tokens of the grants are derived; the store never sees it.
        ttl_ms: how long a grant lasts unrenewed; None means the worker's class decides.
        max_hold_ms: the longest total hold; None means the class decides.
    """

    worker: str
    request_id: str
    secret: str = field(repr=False)
    queue: str = "default"
    repository: str | Reach = Reach.ANYWHERE
    task: str | None = None
    wanted: int = 1
    ttl_ms: int | None = None
    max_hold_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The result that a task begins on: one that hasn't landed and has the same paths.

    Attributes:
        commit: where it was when the task was first granted; what the task's own work is counted from.
    """

    task: TaskId
    number: int
    branch: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A lease just granted, with everything that its holder needs.

    Attributes:
        holder: what the holder shows at each write; contains the token.
        ttl_ms: how much of the term is left, counted from when the request was *sent*.
        fence: what resources compare, together with `term`; 0 without a repository.
        scopes: paths it covers for writing; empty means that its scope grows.
        reads: paths that nobody may write meanwhile.
        expires_ms: the deadline on the store's clock, for people.
        stand: the result that its work begins on; None means the target.
    """

    holder: Holder
    lease: LeaseId
    task: TaskId
    number: int
    epoch: int
    title: str
    prompt: str
    check: str | None
    effects: Effects
    progress: bool
    strict: bool
    idempotency_key: str | None
    queue: str
    repository: str | None
    branch: str | None
    label: str
    fence: int
    term: int
    attempts: int
    ttl_ms: int
    granted_ms: int
    expires_ms: int
    max_until_ms: int
    scopes: tuple[str, ...]
    reads: tuple[str, ...]
    stand: Stand | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """A renewal that was taken.

    Attributes:
        ttl_ms: what is left from the moment the request was sent.
        last: no later deadline can be had: the longest hold is reached.
    """

    lease: LeaseId
    version: int
    ttl_ms: int
    expires_ms: int
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run has to show.

    Attributes:
        said: the agent's last words; data.
        no_change: why nothing had to be changed, where that is the result.
        facts: anything countable about the run (cost, tokens, model, check's duration).
    """

    stage: Stage = Stage.UNVERIFIED
    said: str = ""
    base: str | None = None
    commit: str | None = None
    no_change: str | None = None
    error: str | None = None
    facts: Mapping[str, str | int | float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt stopped.

    Attributes:
        error: in words, for people.
        fingerprint: the same for the same kind of failure; empty means `error` itself is taken.
        retry: False ends the task as failed; True lets the recovery rules decide.
        credential: it stopped for want of a credential.
    """

    error: str
    fingerprint: str = ""
    retry: bool = True
    credential: bool = False
    result: Result | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A lease that its holder ended, and where the task is now.

    Attributes:
        repeated: the same ending had been taken before; nothing was written again.
        rule: the recovery rule that decided, where one did.
        run_at_ms: when the task may be claimed again, on the store's clock.
    """

    lease: LeaseId
    task: TaskId
    end: LeaseEnd
    state: TaskState
    repeated: bool = False
    rule: str = ""
    run_at_ms: int | None = None
