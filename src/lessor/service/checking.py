"""Tasks as they come in: refused where anything in them can't be meant; nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from lessor.errors import BranchInvalidError, ConflictError, InvalidError
from lessor.model.branch import parse_branch
from lessor.model.dependencies import check_acyclic
from lessor.model.scope import MAX_SCOPES
from lessor.model.task import AD_HOC, Effects, NewTask
from lessor.service.wording import (
    LONGEST_PROMPT,
    LONGEST_TEXT,
    check_count,
    check_flag,
    check_name,
    check_several,
    check_text,
    check_title,
)

MOST_TASKS = 10_000
MOST_NEEDS = 1_000
MOST_CAPABILITIES = 100
NOW = timedelta(0)
FARTHEST = timedelta(days=3660)


def check_tasks(tasks: Sequence[NewTask]) -> None:
    """Refuse a batch in which anything can't be meant.

    Raises:
        InvalidError: names the first fault.
        CycleError: tasks of the batch would wait for each other.
        ConflictError: two of them ask for one branch.
    """
    for task in check_several(tasks, "tasks", most=MOST_TASKS):
        check_task(task)
    check_acyclic([task.needs_index for task in tasks])
    branches = Counter((task.repository, task.branch) for task in tasks if task.branch is not None)
    twins = [branch for (_, branch), times in branches.items() if times > 1]
    if twins:
        raise ConflictError(
            f"Several tasks of the batch ask for the branch {twins[0]}.",
            next_step="Give each task a branch of its own, or none.",
            branch=str(twins[0]),
        )


def check_task(task: NewTask) -> None:
    """Refuse one task in which anything can't be meant; its place in a batch isn't looked at."""
    if type(task) is not NewTask:
        raise InvalidError(
            "A task has to be a NewTask.", next_step="Make one with NewTask(title=…)."
        )
    _check_texts(task)
    _check_lists(task)
    check_count(task.priority, "priority", low=-1000, high=1000)
    check_count(task.max_attempts, "max attempts", low=1, high=1000)
    check_flag(task.strict, "strict")
    check_flag(task.progress, "progress")
    if type(task.effects) is not Effects:
        raise InvalidError(
            f"{str(task.effects)[:40]!r} is no class of effects.",
            next_step=f"One of: {', '.join(Effects)}.",
        )
    _check_place(task)
    _check_time(task)


def refuse_ad_hoc(tasks: Sequence[NewTask]) -> None:
    """Refuse work in the queue of acquired paths: a lease that runs out there cancels its task."""
    for task in tasks:
        if task.queue == AD_HOC:
            raise InvalidError(
                f"The queue {AD_HOC} is for paths that are acquired or held, not for work.",
                next_step="Name another queue.",
                queue=AD_HOC,
            )


def _check_texts(task: NewTask) -> None:
    check_title(task.title)
    check_text(task.prompt, "prompt", longest=LONGEST_PROMPT)
    check_name(task.queue, "queue")
    for what in ("unique_key", "idempotency_key", "agent", "limit_key"):
        value = getattr(task, what)
        if value is not None:
            check_name(value, what.replace("_", " "))
    if task.check is not None:
        check_text(task.check, "check", longest=LONGEST_TEXT, empty=False)


def _check_lists(task: NewTask) -> None:
    for capability in check_several(task.capabilities, "capabilities", most=MOST_CAPABILITIES):
        check_name(capability, "capability")
    for what in ("scopes", "reads"):
        for text in check_several(getattr(task, what), what, most=MAX_SCOPES):
            check_text(text, "scope", longest=LONGEST_TEXT)
    check_several(task.needs, "needs", most=MOST_NEEDS)
    check_several(task.needs_index, "needs_index", most=MOST_NEEDS)


def _check_place(task: NewTask) -> None:
    """What only a task in a repository can have."""
    branch: object = task.branch
    if branch is not None:
        if not isinstance(branch, str):
            raise BranchInvalidError("The branch has to be text.", next_step="Give its name.")
        parse_branch(branch)
    if task.repository is None and (task.scopes or task.reads or task.branch is not None):
        raise InvalidError(
            "A scope and a branch need a repository.",
            next_step="Name the repository, or leave them out.",
        )


def _check_time(task: NewTask) -> None:
    delay: object = task.delay
    run_at: object = task.run_at
    if delay is not None and run_at is not None:
        raise InvalidError(
            "Both a delay and an instant are given.", next_step="Give one of delay and run_at."
        )
    if delay is not None and not (isinstance(delay, timedelta) and NOW <= delay <= FARTHEST):
        raise InvalidError(
            f"A delay of {str(delay)[:40]} isn't possible.",
            next_step="Give 0 to ten years as a timedelta.",
        )
    if run_at is not None and not (isinstance(run_at, datetime) and run_at.tzinfo is not None):
        raise InvalidError(
            "run_at has to be an instant with a time zone.",
            next_step="Give a datetime with a zone.",
        )
