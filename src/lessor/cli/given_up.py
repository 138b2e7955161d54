"""Results that a cleaning finds landed or gone, and those that a person gives up."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.cli.finding import find_task
from lessor.cli.invocation import Invocation
from lessor.cli.text import Line, Piece, Tone, pad, shown
from lessor.model.task import Task
from lessor.runner.cleaning import Cleaning

LABEL = 9
_DELETED = "its branch was deleted"


def unlanded_of(invocation: Invocation, named: Sequence[str]) -> list[Task]:
    """Those of the named tasks whose work hasn't landed and casts a shadow, or could land."""
    landings = invocation.lessor.landings
    tasks = {task.id: task for task in (find_task(invocation, name) for name in named)}
    return [
        task
        for task in tasks.values()
        if any(result.is_open for result in landings.results(task=task.id, unfinished=True))
    ]


def going_lines(results: Sequence[Task]) -> list[Line]:
    """What is given up with a discard, before the person agrees."""
    return [
        [
            Piece(f"#{task.number} ", Tone.STRONG),
            f"its result is given up; its branch stays: {task.branch}",
        ]
        for task in results
    ]


def with_results(lines: Sequence[Line], results: Sequence[Task], *, dry: bool) -> list[Line]:
    """A discard's lines, with the results that were given up; the next command stays last."""
    label = Piece(pad("gives up" if dry else "given up", LABEL), Tone.WARN)
    told: list[Line] = [
        [label, f"the result of #{task.number}; its branch stays: {task.branch}"]
        for task in results
    ]
    return [*lines[:-1], *told, *lines[-1:]]


def found_lines(done: Cleaning) -> list[Line]:
    """What a cleaning found of results."""
    lines: list[Line] = [
        [
            Piece(pad("landed", LABEL), Tone.GOOD),
            f"#{one.task.number} {shown(one.task.title)}: {one.how}, in {one.commit[:7]}",
        ]
        for one in done.settled
    ]
    lines += [
        [
            Piece(pad("given up", LABEL), Tone.WARN),
            f"#{task.number} {shown(task.title)}: {_DELETED}",
        ]
        for task in done.given_up
    ]
    return lines


def found_records(done: Cleaning) -> list[dict[str, object]]:
    """The same for programs."""
    return [
        *(result_record(one.task, "landed", f"{one.how}, in {one.commit}") for one in done.settled),
        *(result_record(task, "given up", _DELETED) for task in done.given_up),
    ]


def result_record(task: Task, fate: str, why: str) -> dict[str, object]:
    """What became of a task's result."""
    return {
        "taskId": task.id,
        "number": task.number,
        "branch": task.branch,
        "verdict": "result",
        "fate": fate,
        "why": why,
        "removed": False,
    }
