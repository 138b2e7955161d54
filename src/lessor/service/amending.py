"""Changing what a task asks for, as long as nobody has begun it."""

from __future__ import annotations

from lessor.errors import CycleError, NotFoundError, TransitionRefusedError
from lessor.model.lifecycle import TaskState
from lessor.model.scope import PathRules
from lessor.model.task import NewTask
from lessor.service.naming import Naming
from lessor.service.rows import pack, pack_facts
from lessor.service.submitting import parse_task_scopes, scope_rows
from lessor.store import Call, Transaction


def amend(
    tx: Transaction,
    naming: Naming,
    task: str,
    changed: NewTask,
    *,
    actor: str,
    rules: dict[int, PathRules],
) -> None:
    """Write title, prompt, check, scopes, priority, agent and needs of `changed` over a queued task.

    Raises:
        TransitionRefusedError: it isn't queued (any more).
        CycleError: it would wait for itself.
    """
    row = naming.task_row(task)
    locked = tx.rows("lock_tasks", tasks=pack([row]))
    if not locked:
        raise NotFoundError(f"{task} isn't there.", next_step="List the tasks: lessor list.")
    _, status, _, repository, *_ = locked[0]
    if status != TaskState.QUEUED:
        raise TransitionRefusedError(
            f"{task} is {status}: what it asks for can't change any more.",
            next_step="Add the change as a new task.",
            task=task,
            state=status,
        )
    needs = sorted({naming.task_row(need) for need in changed.needs})
    _refuse_cycle(tx, naming, row, needs)
    scopes = (
        parse_task_scopes(changed.scopes, changed.reads, rules[repository]) if repository else ()
    )
    calls: list[Call] = [
        (
            "amend_task",
            {
                "task_id": row,
                "from_status": TaskState.QUEUED,
                "rank": -changed.priority,
                "agent": changed.agent,
                "limit_key": changed.limit_key,
                "globs": int(any(s.pattern for s in scopes)),
                "needs_left": 0,
            },
        ),
        (
            "amend_submission",
            {
                "task_id": row,
                "title": changed.title,
                "prompt": changed.prompt,
                "check_command": changed.check,
                "strict": int(changed.strict),
            },
        ),
        ("drop_task_scopes", {"task_id": row}),
        ("insert_task_scopes", {"rows": pack(scope_rows(row, scopes))}),
        ("drop_dependencies", {"task_id": row}),
        (
            "insert_dependencies",
            {"rows": pack([{"task_id": row, "needs_id": need} for need in needs])},
        ),
        ("recount_needs", {"tasks": pack([row]), "met": TaskState.SUCCEEDED}),
        (
            "append_event",
            {"task_id": row, "kind": "amended", "epoch": None, "facts": pack_facts(actor=actor)},
        ),
    ]
    tx.batch(*calls)


def _refuse_cycle(tx: Transaction, naming: Naming, task: int, needs: list[int]) -> None:
    if not needs:
        return
    above = {int(r[0]) for r in tx.rows("needed_by", tasks=pack(needs))}
    known = {int(r[0]) for r in tx.rows("finished_needs", tasks=pack(needs))}
    for need in needs:
        if need not in known:
            raise NotFoundError(
                f"{naming.task(need)} isn't there.", next_step="List the tasks: lessor list."
            )
    if task in above:
        raise CycleError(
            f"{naming.task(task)} would wait for itself.",
            next_step="Take one of these needs out.",
            task=naming.task(task),
        )
