"""Results that haven't landed, as a claim meets them, and as a completion or a question leaves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lessor.model.grant import Result
from lessor.model.scope import Mode, conflicts
from lessor.model.shadow import SHADOW_MS, Shadow, is_work
from lessor.service.blockers import MOST_PAIRS, stored_scope
from lessor.service.results import read_result
from lessor.service.rows import pack, unpack
from lessor.store import Call, Row, Transaction

Read = Callable[..., list[Row]]


def find_shadows(read: Read, tasks: Sequence[int]) -> dict[int, tuple[Shadow, ...]]:
    """For each of `tasks` the results that haven't landed and whose paths overlap its own.

    Args:
        read: a store's or a transaction's way to run a statement.
    """
    found: dict[int, dict[int, Shadow]] = {}
    for row in read("shadow_pairs", tasks=pack(list(tasks)), most=MOST_PAIRS):
        task, other, lease, branch, head, below, key, mode, pattern, its_key, its_pattern = row
        met = found.setdefault(task, {})
        if lease in met:
            continue
        mine, its = stored_scope(key, mode, pattern), stored_scope(its_key, Mode.WRITE, its_pattern)
        if conflicts(mine, its):
            met[lease] = Shadow(
                lease=lease, task=other, branch=branch, head=head, below=tuple(unpack(below))
            )
    return {task: tuple(met.values()) for task, met in found.items()}


def put_stands(stands: Mapping[int, Shadow]) -> list[Call]:
    """The statement that records on which results granted tasks begin; none where none does."""
    rows = [
        {
            "task_id": task,
            "on_task": shadow.task,
            "head": shadow.head,
            "below": pack([shadow.task, *shadow.below]),
        }
        for task, shadow in stands.items()
    ]
    return [("put_stands", {"rows": pack(rows)})] if rows else []


def cast_shadows(items: Iterable[tuple[Mapping[str, object], Result]]) -> list[Call]:
    """The statement that leaves the shadows of results with a commit; none where none has one.

    Args:
        items: what complete_leases takes for each, with its result.
    """
    rows = [
        {
            "task_id": row["task_id"],
            "epoch": row["epoch"],
            "digest": row["digest"],
            "head": result.commit,
            "held": None,
        }
        for row, result in items
        if is_work(result.commit, base=result.base)
    ]
    return [_cast(rows, at_ms=None)] if rows else []


def cast_left(tx: Transaction, holds: Sequence[int], *, at_ms: int) -> set[int]:
    """Leave the shadows of holds that ran out where there are commits; the holds that left one.

    What there is, the question's own record says: the commit that was reported with it. Where it
    doesn't say what that began from, the workspace's record does. No branch is looked at.
    """
    if not holds:
        return set()
    rows = []
    for hold, task, epoch, digest, packed, base in tx.rows(
        "asked_results", holds=pack(list(holds))
    ):
        result = read_result(packed)
        if is_work(result.commit, base=result.base or base):
            row = {"task_id": task, "epoch": epoch, "digest": digest, "head": result.commit}
            rows.append({**row, "held": hold})
    if not rows:
        return set()
    name, values = _cast(rows, at_ms=at_ms)
    cast = {(task, epoch) for task, epoch in tx.rows(name, **values)}
    return {int(row["held"]) for row in rows if (row["task_id"], row["epoch"]) in cast}


def _cast(rows: Sequence[Mapping[str, Any]], *, at_ms: int | None) -> Call:
    return "cast_shadows", {"rows": pack(rows), "ttl_ms": SHADOW_MS, "at_ms": at_ms}
