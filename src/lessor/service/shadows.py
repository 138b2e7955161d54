"""Results that haven't landed, as a claim meets them, and as a completion leaves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lessor.model.grant import Result
from lessor.model.scope import Mode, conflicts
from lessor.model.shadow import SHADOW_MS, Shadow
from lessor.service.blockers import MOST_PAIRS, stored_scope
from lessor.service.rows import pack, unpack
from lessor.store import Call, Row

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
        }
        for row, result in items
        if is_work(result)
    ]
    return [("cast_shadows", {"rows": pack(rows), "ttl_ms": SHADOW_MS})] if rows else []


def is_work(result: Result) -> bool:
    """Whether a result has something that could land."""
    return bool(result.commit) and result.commit != result.base
