"""The task's lifecycle: one table says which event leads from which state to which.

SQL never lists states: it moves a task from the state that was read to the state that this table
gives, guarded by the epoch. `docs/lifecycle.md` is drawn from `TRANSITIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from lessor.errors import TransitionRefusedError


class TaskState(StrEnum):
    """Where a task is in its life; who holds it is the lease's matter."""

    QUEUED = "queued"
    RUNNING = "running"
    NEEDS_PERSON = "needs_person"
    RECONCILING = "reconciling"
    BLOCKED = "blocked"
    QUARANTINED = "quarantined"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def word(self) -> str:
        """The state as people read it: only `needs_person` has another word for them."""
        return "needs you" if self is TaskState.NEEDS_PERSON else self.value


class TaskEvent(StrEnum):
    """What happens to a task."""

    CLAIM = "claim"
    COMPLETE = "complete"
    FAIL = "fail"
    RETRY = "retry"
    RELEASE = "release"
    ASK = "ask"
    ANSWER = "answer"
    SUSPECT = "suspect"
    BLOCK = "block"
    UNBLOCK = "unblock"
    QUARANTINE = "quarantine"
    REQUEUE = "requeue"
    CANCEL = "cancel"


TERMINAL = frozenset({TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED})

_S, _E = TaskState, TaskEvent

TRANSITIONS: Mapping[tuple[TaskState, TaskEvent], TaskState] = MappingProxyType(
    {
        (_S.QUEUED, _E.CLAIM): _S.RUNNING,
        (_S.QUEUED, _E.BLOCK): _S.BLOCKED,
        (_S.QUEUED, _E.CANCEL): _S.CANCELLED,
        (_S.RUNNING, _E.COMPLETE): _S.SUCCEEDED,
        (_S.RUNNING, _E.FAIL): _S.FAILED,
        (_S.RUNNING, _E.RETRY): _S.QUEUED,
        (_S.RUNNING, _E.RELEASE): _S.QUEUED,
        (_S.RUNNING, _E.ASK): _S.NEEDS_PERSON,
        (_S.RUNNING, _E.SUSPECT): _S.RECONCILING,
        (_S.RUNNING, _E.BLOCK): _S.BLOCKED,
        (_S.RUNNING, _E.QUARANTINE): _S.QUARANTINED,
        (_S.RUNNING, _E.CANCEL): _S.CANCELLED,
        (_S.NEEDS_PERSON, _E.ANSWER): _S.QUEUED,
        (_S.NEEDS_PERSON, _E.REQUEUE): _S.QUEUED,
        (_S.NEEDS_PERSON, _E.CANCEL): _S.CANCELLED,
        (_S.RECONCILING, _E.COMPLETE): _S.SUCCEEDED,
        (_S.RECONCILING, _E.FAIL): _S.FAILED,
        (_S.RECONCILING, _E.RETRY): _S.QUEUED,
        (_S.RECONCILING, _E.QUARANTINE): _S.QUARANTINED,
        (_S.RECONCILING, _E.REQUEUE): _S.QUEUED,
        (_S.RECONCILING, _E.CANCEL): _S.CANCELLED,
        (_S.BLOCKED, _E.UNBLOCK): _S.QUEUED,
        (_S.BLOCKED, _E.CANCEL): _S.CANCELLED,
        (_S.QUARANTINED, _E.REQUEUE): _S.QUEUED,
        (_S.QUARANTINED, _E.CANCEL): _S.CANCELLED,
    }
)
"""Terminal states have no way out (invariant 6): a failed task's work is asked for again as a new task."""


def next_state(state: TaskState, event: TaskEvent) -> TaskState:
    """The state that `event` leads to.

    Raises:
        TransitionRefusedError: the table has no such move; the facts name the events it allows.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        allowed = sorted(e.value for s, e in TRANSITIONS if s is state)
        raise TransitionRefusedError(
            f"A task that is {state.value} can't {event.value}.",
            next_step=f"It can: {', '.join(allowed)}." if allowed else "It is finished.",
            state=state.value,
            event=event.value,
            allowed=allowed,
        ) from None


def is_terminal(state: TaskState) -> bool:
    """Whether nothing leads out of `state`."""
    return state in TERMINAL
