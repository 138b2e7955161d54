"""A side effect outside that is announced before it is tried, and what became of it.

A publish is one: between the push and its record a process may die, and then nobody knows whether
the remote took it. What overlaps it waits until the remote was fenced (no late push can land any
more) and read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lessor.model.lease import MINUTE, LeaseEnd

UNDER_WAY_MS = 15 * MINUTE
"""How long after its announcement a push that nothing would refuse may still be under way.

Lessor's own git is stopped by then; one whose process was itself stopped may come even later.
"""


class IntentKind(StrEnum):
    """The kinds of effects that are announced."""

    PUBLISH = "publish"


class Outcome(StrEnum):
    """What became of an announced effect."""

    DONE = "done"
    FAILED = "failed"  # it didn't happen, and won't any more
    CONFLICT = "conflict"  # the target is neither as before nor as announced: a person looks


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """A push as it is announced; object ids, None where there is no such reference.

    Attributes:
        remote: by name or URL.
        ref: the full name of the reference that is published.
        fence: the value of the lease's fence reference before; None at a remote without one.
        next_fence: what the same atomic push moves it to.
    """

    remote: str
    ref: str
    old: str | None
    new: str
    fence: str | None = None
    next_fence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """An announced publish.

    Attributes:
        number: the task's.
        outcome: None as long as nobody knows.
        response: what the remote said, or how the outcome was found; data.
        over: whether its lease has ended.
        live: whether its lease was live when this was read.
        end: why its lease ended, where it did.
        age_ms: how long ago it was announced, by the store's clock.
    """

    id: int
    task: str
    number: int
    lease: str
    epoch: int
    publish: Publish
    announced_ms: int
    settled_ms: int | None
    outcome: Outcome | None
    response: str
    over: bool
    live: bool
    end: LeaseEnd | None
    age_ms: int


def outcome_of(
    publish: Publish, *, fence: str | None, tip: str | None, shut: bool
) -> Outcome | None:
    """What became of a publish, read after the remote was fenced; None where nobody can know yet.

    Args:
        fence: the value that the fence reference was found at; None where it was gone, or there is
            none.
        tip: what the published reference is at the remote; None where it isn't there.
        shut: whether what is still under way is refused by now, or has had its time.

    The fence reference moves with the published one or not at all, so that its value alone tells.
    """
    if fence is not None and publish.fence is not None:
        return Outcome.FAILED if fence == publish.fence else Outcome.DONE
    if tip == publish.new:
        return Outcome.DONE
    if tip != publish.old:
        return Outcome.CONFLICT
    return Outcome.FAILED if shut else None
