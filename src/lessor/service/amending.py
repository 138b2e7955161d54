"""Changing what a task asks for, as long as nobody works on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields

from lessor.errors import CycleError, InvalidError, NotFoundError, TransitionRefusedError
from lessor.model.branch import branch_words
from lessor.model.lease import LeaseEnd, LeaseKind
from lessor.model.lifecycle import TaskState
from lessor.model.scope import PathRules, Scope
from lessor.model.task import NewTask, Task
from lessor.service.branches import UNTITLED
from lessor.service.naming import Naming
from lessor.service.rows import WaitRow, pack, pack_facts
from lessor.service.submitting import parse_task_scopes, refuse_unmet, scope_rows
from lessor.store import Call, Transaction

AMENDABLE = frozenset(
    (
        "title",
        "prompt",
        "check",
        "scopes",
        "reads",
        "strict",
        "priority",
        "agent",
        "limit_key",
        "needs",
    )
)


def refuse_fixed(known: Task, changed: NewTask) -> None:
    """Refuse a wish for what stays as it was submitted; a field at its default asks for nothing.

    Raises:
        InvalidError: names the fields.
    """
    fixed = [
        field.name
        for field in fields(NewTask)
        if field.name not in AMENDABLE
        and getattr(changed, field.name) not in (field.default, getattr(known, field.name, None))
    ]
    if fixed:
        raise InvalidError(
            f"These stay as they were submitted: {', '.join(fixed)}.",
            next_step="Leave them out, or cancel the task and add it anew.",
            task=known.id,
            fields=fixed,
        )


def amend(
    tx: Transaction,
    naming: Naming,
    task: str,
    changed: NewTask,
    *,
    actor: str,
    rules: PathRules,
) -> None:
    """Write title, prompt, check, scopes, priority, agent and needs of `changed` over a queued task.

    Under the repository's lock: a claim that is deciding has read the scopes that this replaces. A
    turn that was reserved for the old scopes is given up. Amendments that add needs go one after
    another, in whatever repositories: a circle can be closed at two places at once.

    Raises:
        TransitionRefusedError: it isn't queued (any more), or a need can't succeed any more.
        CycleError: it would wait for itself.
    """
    row = naming.task_row(task)
    wait = [WaitRow._make(found) for found in tx.rows("task_wait", task_id=row)]
    if not wait:
        raise NotFoundError(f"{task} isn't there.", next_step="List the tasks: lessor list.")
    repository = wait[0].repository_id
    needs = {naming.task_row(need) for need in changed.needs}
    if needs:
        tx.rows("lock_needs")
    tx.rows("lock_repository", repository_id=repository)
    dropped = {int(r[0]) for r in tx.rows("needs", task_id=row)} - needs
    tx.rows("lock_side_leases", tasks=pack([row]), kinds=pack([LeaseKind.RESERVATION]))
    _lock(tx, naming, row, needs | dropped)
    refuse_unmet(tx, naming, needs)
    _refuse_cycle(tx, naming, row, needs)
    if dropped:
        tx.rows("note_needs", tasks=pack(sorted(dropped)))
    scopes = parse_task_scopes(changed.scopes, changed.reads, rules) if repository else ()
    tx.batch(
        (
            "end_side_leases",
            {
                "tasks": pack([row]),
                "kinds": pack([LeaseKind.RESERVATION]),
                "at_ms": tx.now(),
                "reason": LeaseEnd.RELEASED,
            },
        ),
        *_writes(row, changed, scopes, needs),
        (
            "append_event",
            {"task_id": row, "kind": "amended", "epoch": None, "facts": pack_facts(actor=actor)},
        ),
    )


def _lock(tx: Transaction, naming: Naming, task: int, needs: Collection[int]) -> None:
    """Lock the task and its needs at once, by id, and refuse unless it is queued."""
    locked = {
        int(r[0]): str(r[1]) for r in tx.rows("lock_tasks", tasks=pack(sorted({task, *needs})))
    }
    if locked[task] != TaskState.QUEUED:
        raise TransitionRefusedError(
            f"{naming.task(task)} is {locked[task]}: what it asks for can't change any more.",
            next_step="Add the change as a new task.",
            task=naming.task(task),
            state=locked[task],
        )


def _writes(
    row: int, changed: NewTask, scopes: Sequence[Scope], needs: Collection[int]
) -> list[Call]:
    return [
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
                "branch_words": branch_words(changed.title, fallback=UNTITLED),
                "prompt": changed.prompt,
                "check_command": changed.check,
                "strict": int(changed.strict),
            },
        ),
        ("keep_scopes", {"task_id": row}),
        ("drop_task_scopes", {"task_id": row}),
        ("insert_task_scopes", {"rows": pack(scope_rows(row, scopes))}),
        ("drop_dependencies", {"task_id": row}),
        (
            "insert_dependencies",
            {"rows": pack([{"task_id": row, "needs_id": need} for need in sorted(needs)])},
        ),
        ("recount_needs", {"tasks": pack([row]), "met": TaskState.SUCCEEDED}),
    ]


def _refuse_cycle(tx: Transaction, naming: Naming, task: int, needs: Collection[int]) -> None:
    if not needs:
        return
    above = {int(r[0]) for r in tx.rows("needed_by", tasks=pack(sorted(needs)))}
    if task in above:
        raise CycleError(
            f"{naming.task(task)} would wait for itself.",
            next_step="Take one of these needs out.",
            task=naming.task(task),
        )
