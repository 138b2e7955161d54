"""The words for a task's state, the same on every page."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lessor.cli.text import Tone
from lessor.model.lifecycle import TaskState
from lessor.model.task import Stage, Task

NEEDS_YOU = TaskState.NEEDS_PERSON.word

_TONES: Mapping[str, Tone] = MappingProxyType(
    {
        NEEDS_YOU: Tone.WARN,
        TaskState.QUARANTINED: Tone.WARN,
        TaskState.RECONCILING: Tone.WARN,
        TaskState.FAILED: Tone.BAD,
        TaskState.RUNNING: Tone.GOOD,
        Stage.VERIFIED: Tone.GOOD,
    }
)


def state_text(task: Task) -> str:
    """The state of a task; of one that succeeded, how far its result got, where it has one."""
    if task.state is TaskState.SUCCEEDED and task.stage is not Stage.NONE:
        return task.stage
    return task.state.word


def state_words(state: str) -> str:
    """A state as the end of a sentence about the task: `is queued`, `has failed`."""
    if state in {TaskState.SUCCEEDED, TaskState.FAILED}:
        return f"has {state}"
    return NEEDS_YOU if state == TaskState.NEEDS_PERSON else f"is {state}"


def tone_of(word: str) -> Tone:
    """The colour of one of these words."""
    return _TONES.get(word, Tone.PLAIN)
