"""Where a task's work would begin, as far as results go that haven't landed: for `why`; reads only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lessor.model.claiming import Ground, ground_of
from lessor.model.lifecycle import TaskState, is_terminal
from lessor.model.scope import Scope, conflicts
from lessor.model.shadow import Unlanded
from lessor.service.blockers import stored_scope
from lessor.service.rows import LeaseRow, TaskRow, WaitRow, pack
from lessor.service.shadows import find_shadows
from lessor.store import Store

_MOST_PAIRS = 20


class AwaitedLanding(NamedTuple):
    """What a task waits for that overlaps results which haven't landed.

    Attributes:
        paths: what the shadow lies on.
        step: the one command that ends it.
    """

    sentence: str
    paths: list[str]
    overlaps: tuple[tuple[str, str], ...]
    step: str


def ground_for(store: Store, wait: WaitRow, task: TaskRow) -> Ground:
    """Where the next claim would have the task begin."""
    if not wait.repository_id:
        return Ground()
    unlanded = Unlanded(store.read("repository_by_id", repository_id=wait.repository_id)[0][7])
    if unlanded is Unlanded.IGNORE:
        return Ground()
    shadows = find_shadows(store.read, [task.id]).get(task.id, ())
    return ground_of(shadows, unlanded, fresh=task.branch is None, task=task.id)


def ground_text(store: Store, ground: Ground) -> str:
    """What a task begins on, as the end of a sentence; empty where that is the target."""
    if ground.stand is None:
        return ""
    below = _task(store, ground.stand.task)
    what = (
        f"the result of #{below.number}, which hasn't landed"
        if _is_finished(below)
        else f"the work of #{below.number}, which isn't finished"
    )
    return f"; it begins on top of {what}"


def awaited_landing(
    store: Store, wait: WaitRow, task: TaskRow, mine: Sequence[Scope], lease: LeaseRow
) -> AwaitedLanding:
    """What the task waits for.

    Args:
        mine: the task's paths.
        lease: the shadow's.
    """
    shadows = find_shadows(store.read, [task.id]).get(task.id, ())
    theirs = [
        stored_scope(key, mode, pattern, text=text)
        for _, _, text, key, mode, pattern in store.read("shadow_scopes", leases=pack([lease.id]))
    ]
    pairs = [(a.text, b.text) for a in mine for b in theirs if conflicts(a, b)][:_MOST_PAIRS]
    paths = ", ".join(sorted({b for _, b in pairs})[:3])
    others = len({shadow.lease for shadow in shadows} - {lease.id})
    lie = "lies" if others == 1 else "lie"
    more = f"; {others} more {lie} on its paths, and none contains the others" if others else ""
    hours = max(0, lease.max_until_ms - wait.now) // 3_600_000
    what, step = _caster(lease, _task(store, lease.task_id))
    return AwaitedLanding(
        sentence=f"waits for {what} ({paths}){more}; {hours} h at the latest.",
        paths=[scope.text for scope in theirs],
        overlaps=tuple(pairs),
        step=step,
    )


def _caster(lease: LeaseRow, caster: TaskRow) -> tuple[str, str]:
    """Whose work it is, and the command that ends the waiting."""
    named = f"#{lease.number} {lease.title}"
    if _is_finished(caster):
        return f"the result of {named} to land", f"lessor land {lease.number}"
    asks = caster.status == TaskState.NEEDS_PERSON
    step = f'lessor answer {lease.number} "…"' if asks else f"lessor why {lease.number}"
    return f"{named}, which isn't finished", step


def _is_finished(task: TaskRow) -> bool:
    return is_terminal(TaskState(task.status))


def _task(store: Store, row: int) -> TaskRow:
    return TaskRow._make(store.read("tasks", tasks=pack([row]))[0])
