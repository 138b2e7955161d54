"""Adding tasks: one or thousands, in a transaction of Lessor's or of the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lessor.errors import InvalidError, NotFoundError, TransitionRefusedError
from lessor.model.branch import parse_branch
from lessor.model.dependencies import check_acyclic
from lessor.model.lifecycle import TERMINAL, TaskState
from lessor.model.scope import Mode, PathRules, Scope, parse_scopes
from lessor.model.task import Effects, NewTask, Submitted
from lessor.service.naming import Naming
from lessor.service.rows import pack, pack_facts
from lessor.service.wording import (
    LONGEST_PROMPT,
    LONGEST_TEXT,
    check_count,
    check_name,
    check_text,
    check_title,
)
from lessor.store import Call, Transaction

MOST_TASKS = 10_000
MOST_NEEDS = 1_000
FARTHEST_MS = 10 * 366 * 24 * 3_600_000


def check_tasks(tasks: Sequence[NewTask]) -> None:
    """Refuse a batch in which anything can't be meant; nothing is written.

    Raises:
        InvalidError: names the first fault, with the task's place in the batch.
        CycleError: tasks of the batch would wait for each other.
    """
    if len(tasks) > MOST_TASKS:
        raise InvalidError(
            f"{len(tasks)} tasks at once are too many.",
            next_step=f"Submit at most {MOST_TASKS} a call.",
        )
    for task in tasks:
        _check(task)
    check_acyclic([task.needs_index for task in tasks])


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
    known = _known(tx, [row for row in rows if row["id"] not in inserted])
    final = [
        ids[i] if ids[i] in inserted else known[row["queue"], row["unique_key"]][0]
        for i, row in enumerate(rows)
    ]
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


def _check(task: NewTask) -> None:
    if type(task) is not NewTask:
        raise InvalidError(
            "A task has to be a NewTask.", next_step="Make one with NewTask(title=…)."
        )
    _check_texts(task)
    check_count(task.priority, "priority", low=-1000, high=1000)
    check_count(task.max_attempts, "max attempts", low=1, high=1000)
    if type(task.effects) is not Effects:
        raise InvalidError(
            f"{str(task.effects)[:40]!r} is no class of effects.",
            next_step=f"One of: {', '.join(Effects)}.",
        )
    if (task.scopes or task.reads) and task.repository is None:
        raise InvalidError(
            "A scope needs a repository.", next_step="Name the repository, or leave the scope out."
        )
    if task.branch is not None:
        parse_branch(task.branch)
    _check_time(task)


def _check_texts(task: NewTask) -> None:
    check_title(task.title)
    check_text(task.prompt, "prompt", longest=LONGEST_PROMPT)
    check_name(task.queue, "queue")
    for what in ("unique_key", "idempotency_key", "agent", "limit_key"):
        value = getattr(task, what)
        if value is not None:
            check_name(value, what.replace("_", " "))
    for capability in _several(task.capabilities, "capabilities", most=100):
        check_name(capability, "capability")
    for what in ("scopes", "reads"):
        for text in _several(getattr(task, what), what, most=10_000):
            check_text(text, "scope", longest=LONGEST_TEXT)
    _several(task.needs, "needs", most=MOST_NEEDS)
    _several(task.needs_index, "needs_index", most=MOST_NEEDS)
    if task.check is not None:
        check_text(task.check, "check", longest=LONGEST_TEXT, empty=False)


def _several(value: object, what: str, *, most: int) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list) or len(value) > most:
        raise InvalidError(
            f"{what} has to be a list of at most {most}.",
            next_step="Give a shorter list.",
            what=what,
        )
    return tuple(value)


def _check_time(task: NewTask) -> None:
    if task.delay is not None and task.run_at is not None:
        raise InvalidError(
            "Both a delay and an instant are given.", next_step="Give one of delay and run_at."
        )
    if task.delay is not None and not timedelta(0) <= task.delay <= timedelta(
        milliseconds=FARTHEST_MS
    ):
        raise InvalidError(
            f"A delay of {task.delay} isn't possible.", next_step="Give 0 to ten years."
        )
    if task.run_at is not None and task.run_at.tzinfo is None:
        raise InvalidError("run_at has no time zone.", next_step="Give an instant with a zone.")


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
    rows = sorted({naming.task_row(need) for task in tasks for need in task.needs})
    if not rows:
        return
    found = {int(r[0]): TaskState(r[1]) for r in tx.rows("finished_needs", tasks=pack(rows))}
    for row in rows:
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
    tx: Transaction, rows: Sequence[dict[str, Any]]
) -> dict[tuple[str, str], tuple[int, int]]:
    if not rows:
        return {}
    found = {}
    for queue in sorted({row["queue"] for row in rows}):
        asked = [
            {"queue": queue, "unique_key": row["unique_key"]}
            for row in rows
            if row["queue"] == queue
        ]
        for task, key, number in tx.rows("unfinished_by_key", rows=pack(asked)):
            found[queue, key] = (task, number)
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
