"""Adding tasks: one or thousands, in a transaction of Lessor's or of the caller's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from lessor.errors import NotFoundError, TransitionRefusedError
from lessor.model.branch import branch_words
from lessor.model.dependencies import check_acyclic
from lessor.model.lifecycle import TERMINAL, TaskState
from lessor.model.scope import Mode, PathRules, Scope, parse_scopes
from lessor.model.task import NewTask, Submitted
from lessor.service.branches import UNTITLED
from lessor.service.naming import Naming
from lessor.service.rows import pack, pack_facts
from lessor.store import Call, RetryRule, Transaction


def submit(
    tx: Transaction,
    naming: Naming,
    tasks: Sequence[NewTask],
    *,
    submitter: str,
    now: int,
    rules: dict[int, PathRules],
) -> list[Submitted]:
    """Write checked tasks; one with the unique key of an unfinished task is that task.

    Args:
        rules: path rules by repository row.

    Raises:
        CycleError: tasks of the batch wait for each other by a unique key that two of them have.
        RetryRule: the unfinished task with a unique key ended in between.
    """
    ids = [int(row[0]) for row in tx.rows("reserve_task_ids", wanted=len(tasks))]
    numbers = _numbers(tx, naming, tasks, ids)
    _lock_needs(tx, naming, tasks)
    scopes = [_scopes(naming, task, rules) for task in tasks]
    rows = [
        _task_row(
            naming,
            task,
            row=ids[i],
            number=numbers[i],
            now=now,
            globs=any(s.pattern for s in scopes[i]),
        )
        for i, task in enumerate(tasks)
    ]
    inserted = {
        int(row[0]) for row in tx.rows("insert_tasks", rows=pack(rows), status=TaskState.QUEUED)
    }
    fresh = [row for row in rows if row["id"] in inserted]
    known = _known(tx, rows, inserted)
    final = [
        ids[i] if ids[i] in inserted else known[row["queue"], row["unique_key"]][0]
        for i, row in enumerate(rows)
    ]
    _refuse_circle(tasks, ids, final)
    needed = {final[place] for task in tasks for place in task.needs_index}
    refuse_unmet(tx, naming, needed - inserted)
    _write_rest(
        tx,
        naming,
        tasks,
        fresh=fresh,
        inserted=inserted,
        ids=ids,
        final=final,
        scopes=scopes,
        submitter=submitter,
    )
    return [
        Submitted(
            task=naming.task(final[i]),
            number=row["number"]
            if row["id"] in inserted
            else known[row["queue"], row["unique_key"]][1],
            created=row["id"] in inserted,
        )
        for i, row in enumerate(rows)
    ]


def scope_rows(
    task: int, scopes: Sequence[Scope], *, first: int = 0, widened: bool = False
) -> list[dict[str, Any]]:
    """Rows of task_scope and scope for `scopes`."""
    return [
        {
            "task_id": task,
            "ord": first + place,
            "text": scope.text,
            "key": scope.key,
            "key_end": scope.key_end,
            "mode": scope.mode,
            "pattern": scope.pattern,
            "ancestors": list(scope.ancestors),
            "widened": int(widened),
        }
        for place, scope in enumerate(scopes)
    ]


def parse_task_scopes(
    scopes: Sequence[str], reads: Sequence[str], rules: PathRules
) -> tuple[Scope, ...]:
    """What a task writes and what it reads; a path that it writes needn't be named as read."""
    return (
        *parse_scopes(scopes, mode=Mode.WRITE, rules=rules),
        *parse_scopes(reads, mode=Mode.READ, rules=rules),
    )


def _numbers(
    tx: Transaction, naming: Naming, tasks: Sequence[NewTask], ids: Sequence[int]
) -> list[int]:
    """A number for each task: counted per repository, the row's own without one."""
    wanted: dict[int, int] = {}
    for task in tasks:
        if task.repository is not None:
            row = naming.repository_row(task.repository)
            wanted[row] = wanted.get(row, 0) + 1
    following: dict[int, int] = {}
    for row in sorted(wanted):  # lock order: repositories by id
        last = tx.rows("next_numbers", repository_id=row, wanted=wanted[row])
        if not last:
            raise NotFoundError("The repository isn't registered.", next_step="Register it first.")
        following[row] = int(last[0][0]) - wanted[row] + 1
    numbers = []
    for task, own in zip(tasks, ids, strict=True):
        if task.repository is None:
            numbers.append(own)
        else:
            row = naming.repository_row(task.repository)
            numbers.append(following[row])
            following[row] += 1
    return numbers


def _lock_needs(tx: Transaction, naming: Naming, tasks: Sequence[NewTask]) -> None:
    """Lock what is needed, so that none of it ends before this commits.

    Raises:
        NotFoundError: a needed task isn't there.
        TransitionRefusedError: it failed or was cancelled, so it can never be met.
    """
    refuse_unmet(tx, naming, {naming.task_row(need) for task in tasks for need in task.needs})


def refuse_unmet(tx: Transaction, naming: Naming, rows: Collection[int]) -> None:
    """Lock and mark what is needed; refuse it where it isn't there or can't succeed any more."""
    if not rows:
        return
    found = {int(r[0]): TaskState(r[1]) for r in tx.rows("note_needs", tasks=pack(sorted(rows)))}
    for row in sorted(rows):
        if row not in found:
            raise NotFoundError(
                f"{naming.task(row)}, which a task needs, isn't there.",
                next_step="List the tasks: lessor list.",
            )
        if found[row] in TERMINAL and found[row] is not TaskState.SUCCEEDED:
            raise TransitionRefusedError(
                f"A task needs {naming.task(row)}, which is {found[row]}.",
                next_step="Add that work again and need the new task.",
                task=naming.task(row),
                state=found[row],
            )


def _refuse_circle(tasks: Sequence[NewTask], ids: Sequence[int], final: Sequence[int]) -> None:
    """Two of the batch with one unique key are one task: what needs either needs both."""
    first = {row: place for place, row in reversed(list(enumerate(final)))}
    check_acyclic(
        [
            [first[final[need]] for need in task.needs_index] if ids[place] == final[place] else []
            for place, task in enumerate(tasks)
        ]
    )


def _scopes(naming: Naming, task: NewTask, rules: dict[int, PathRules]) -> tuple[Scope, ...]:
    if task.repository is None:
        return ()
    return parse_task_scopes(task.scopes, task.reads, rules[naming.repository_row(task.repository)])


def _task_row(
    naming: Naming, task: NewTask, *, row: int, number: int, now: int, globs: bool
) -> dict[str, Any]:
    run_at = now
    if task.delay is not None:
        run_at = now + task.delay // timedelta(milliseconds=1)
    elif task.run_at is not None:
        run_at = int(task.run_at.timestamp() * 1000)
    return {
        "id": row,
        "queue": task.queue,
        "repository_id": naming.repository_row(task.repository)
        if task.repository is not None
        else 0,
        "rank": -task.priority,
        "due": int(run_at <= now),
        "run_at_ms": run_at,
        "needs_left": int(bool(task.needs or task.needs_index)),  # counted once its rows are there
        "agent": task.agent,
        "capabilities": sorted(set(task.capabilities)) or None,
        "limit_key": task.limit_key,
        "unique_key": task.unique_key,
        "branch": task.branch,
        "effects": task.effects,
        "progress": int(task.progress),
        "globs": int(globs),
        "max_attempts": task.max_attempts,
        "queued_ms": now,
        "number": number,
        "title": task.title,
        "branch_words": branch_words(task.title, fallback=UNTITLED),
        "prompt": task.prompt,
        "check_command": task.check,
        "idempotency_key": task.idempotency_key,
        "strict": int(task.strict),
    }


def _needs_calls(needs: list[dict[str, int]]) -> list[Call]:
    if not needs:
        return []
    tasks = sorted({need["task_id"] for need in needs})
    return [
        ("insert_dependencies", {"rows": pack(needs)}),
        ("recount_needs", {"tasks": pack(tasks), "met": TaskState.SUCCEEDED}),
    ]


def _known(
    tx: Transaction, rows: Sequence[dict[str, Any]], inserted: Collection[int]
) -> dict[tuple[str, str], tuple[int, int]]:
    """The task and number that has each unique key which wasn't inserted: of this batch, or before."""
    found = {
        (row["queue"], row["unique_key"]): (row["id"], row["number"])
        for row in rows
        if row["id"] in inserted and row["unique_key"] is not None
    }
    missing = {
        (row["queue"], row["unique_key"]) for row in rows if row["id"] not in inserted
    } - found.keys()
    asked = [{"queue": queue, "unique_key": key} for queue, key in sorted(missing)]
    if asked:
        for task, queue, key, number in tx.rows("unfinished_by_key", rows=pack(asked)):
            found[queue, key] = (task, number)
    if missing - found.keys():
        raise RetryRule
    return found


def _write_rest(
    tx: Transaction,
    naming: Naming,
    tasks: Sequence[NewTask],
    *,
    fresh: list[dict[str, Any]],
    inserted: set[int],
    ids: Sequence[int],
    final: Sequence[int],
    scopes: Sequence[tuple[Scope, ...]],
    submitter: str,
) -> None:
    if not fresh:
        return
    scope = [
        row for i, s in enumerate(scopes) if ids[i] in inserted for row in scope_rows(ids[i], s)
    ]
    needs = [
        {"task_id": ids[i], "needs_id": need}
        for i, task in enumerate(tasks)
        if ids[i] in inserted
        for need in (
            *(naming.task_row(n) for n in task.needs),
            *(final[j] for j in task.needs_index),
        )
    ]
    events = [
        {
            "task_id": row["id"],
            "n": 1,
            "at_ms": row["queued_ms"],
            "kind": "submitted",
            "epoch": 0,
            "facts": pack_facts(submitter=submitter, number=row["number"]),
        }
        for row in fresh
    ]
    tx.batch(
        ("insert_submissions", {"rows": pack(fresh), "submitter": submitter}),
        *([("insert_task_scopes", {"rows": pack(scope)})] if scope else []),
        *_needs_calls(needs),
        ("insert_events", {"rows": pack(events)}),
    )
