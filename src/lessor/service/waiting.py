"""Why a task doesn't run: read from what is recorded, said in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lessor.errors import NotFoundError
from lessor.model.intent import UNDER_WAY_MS
from lessor.model.lease import MINUTE, LeaseKind
from lessor.model.lifecycle import TaskState, is_terminal
from lessor.model.scope import Scope, conflicts
from lessor.model.waiting import Cause, Why
from lessor.service.blockers import MOST_PAIRS, stored_scope
from lessor.service.grounds import awaited_landing, ground_for, ground_text
from lessor.service.naming import Naming
from lessor.service.publish_rows import IntentRow
from lessor.service.rows import LeaseRow, TaskRow, WaitRow, WorkerRow, pack, unpack
from lessor.service.scopes import conflicting, held_by
from lessor.store import Store

_CAUSES = {
    LeaseKind.LEASE: Cause.LEASE,
    LeaseKind.RESERVATION: Cause.RESERVATION,
    LeaseKind.HOLD: Cause.HOLD,
    LeaseKind.SHADOW: Cause.SHADOW,
}


def why(store: Store, naming: Naming, task_row: int) -> Why:
    """Why the task is where it is; reads only.

    Raises:
        NotFoundError: there is no such task.
    """
    rows = store.read("task_wait", task_id=task_row)
    tasks = store.read("tasks", tasks=pack([task_row]))
    if not rows or not tasks:
        raise NotFoundError("There is no such task.", next_step="List the tasks: lessor list.")
    wait, task = WaitRow._make(rows[0]), TaskRow._make(tasks[0])
    for reason in _REASONS:
        answer = reason(store, naming, wait, task)
        if answer is not None:
            return answer
    raise AssertionError  # the last reason always answers


def _answer(
    naming: Naming, wait: WaitRow, task: TaskRow, cause: Cause, sentence: str, **more: object
) -> Why:
    queued = wait.status == TaskState.QUEUED
    return Why(
        task=naming.task(task.id),
        number=task.number,
        state=TaskState(wait.status),
        cause=cause,
        sentence=f"#{task.number} {sentence}",
        overdue=queued and wait.due == 1 and wait.now - wait.queued_ms >= wait.wait_max_ms,
        **more,  # type: ignore[arg-type]
    )


def _finished(_store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    if not is_terminal(TaskState(wait.status)):
        return None
    return _answer(
        naming,
        wait,
        task,
        Cause.FINISHED,
        f"{'is' if wait.status == TaskState.CANCELLED else 'has'} {wait.status}.",
        next_step=f"lessor show {task.number}",
    )


def _running(store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    if wait.status != TaskState.RUNNING:
        return None
    leases = [LeaseRow._make(r) for r in store.read("task_leases", task_id=task.id, live=1, most=5)]
    lease = next((row for row in leases if row.kind == LeaseKind.LEASE), None)
    if lease is None:
        return _answer(naming, wait, task, Cause.RUNNING, "is just being handed on.")
    scopes = [str(r[2]) for r in store.read("lease_scopes", leases=pack([lease.id]))]
    left = max(0, lease.expires_ms - wait.now) // 1000
    over = " (it has run out; the next claim ends it)" if left == 0 else ""
    stands = store.read("stand", task_id=task.id)
    ground = (
        f", on top of #{stands[0][1]} ({stands[0][3][:7]}), which it can't land before"
        if stands
        else ""
    )
    return _answer(
        naming,
        wait,
        task,
        Cause.RUNNING,
        f"runs: {lease.agent} holds it at epoch {lease.epoch} for {left} s unless renewed{over}{ground}.",
        holder=held_by(naming, lease, scopes),
        at_ms=lease.expires_ms,
        next_step=f"lessor logs {task.number} -f",
    )


def _publishing(
    store: Store, naming: Naming, wait: WaitRow, task: TaskRow, *, whose: int, what: str
) -> Why | None:
    """The answer where nobody knows yet what became of a push of the task `whose`."""
    rows = (IntentRow._make(row) for row in store.read("task_intents", task_id=whose))
    unsettled = [row for row in rows if row.settled_ms is None]
    if not unsettled:
        return None
    sentence = f"waits until the remote was asked what became of {what}."
    left = unsettled[0].announced_ms + UNDER_WAY_MS - unsettled[0].now
    if unpack(unsettled[0].facts)["fence"] is None and left > 0:
        # Whether hooks are there, which settle it at once, only a clone can see.
        minutes = -(-left // MINUTE)
        sentence = (
            f"waits until it is known what became of {what}: the remote isn't fenced, and for "
            f"{minutes} m more it may still be under way."
        )
    step = "lessor sweep-stale"
    return _answer(naming, wait, task, Cause.LEASE, sentence, next_step=step)


def _state(store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    match TaskState(wait.status):
        case TaskState.NEEDS_PERSON:
            return _answer(
                naming,
                wait,
                task,
                Cause.PERSON,
                "needs you: it asked a question.",
                next_step=f"lessor show {task.number}",
            )
        case TaskState.BLOCKED | TaskState.QUARANTINED | TaskState.RECONCILING as state:
            steps = {TaskState.BLOCKED: f"lessor unblock {task.number}"}
            if state is TaskState.RECONCILING:
                asked = _publishing(store, naming, wait, task, whose=task.id, what="its push")
                if asked is not None:
                    return asked
            words = {
                TaskState.BLOCKED: "is blocked by a person or for want of a credential",
                TaskState.QUARANTINED: "is quarantined: it failed too often, or the same way each time",
                TaskState.RECONCILING: "is reconciling: it may have had effects outside; somebody has to look first",
            }
            return _answer(
                naming,
                wait,
                task,
                Cause.STATE,
                f"{words[state]}.",
                next_step=steps.get(state, f"lessor retry {task.number}"),
            )
        case _:
            return None


def _tasks(store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    if wait.needs_left == 0:
        return None
    needs = [row for row in store.read("needs", task_id=task.id) if row[3] != TaskState.SUCCEEDED]
    listed = ", ".join(
        f"#{number} ({TaskState(status).word})" for _, number, _, status in needs[:5]
    )
    dead = [number for _, number, _, status in needs if is_terminal(TaskState(status))]
    sentence = f"waits for {listed}{' and others' if len(needs) > 5 else ''}."  # noqa: PLR2004
    if dead:
        sentence = f"can't start: #{dead[0]}, which it needs, won't succeed any more."
    return _answer(
        naming,
        wait,
        task,
        Cause.TASKS,
        sentence,
        needs=tuple(naming.task(row[0]) for row in needs),
        next_step=f"lessor why {needs[0][1]}" if needs else "",
    )


def _time(_store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    if wait.due == 1 or wait.run_at_ms <= wait.now:
        return None
    left = (wait.run_at_ms - wait.now + 999) // 1000
    return _answer(naming, wait, task, Cause.TIME, f"may start in {left} s.", at_ms=wait.run_at_ms)


def _paused(_store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    if not wait.paused:
        return None
    return _answer(
        naming,
        wait,
        task,
        Cause.PAUSED,
        f"waits: the queue {wait.queue} is paused.",
        next_step=f"lessor queue resume {wait.queue}",
    )


def _held(store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    mine = _scopes(store.read("task_scopes", tasks=pack([task.id])))
    parked = None if wait.waiting_on is None else _lease(store, wait.waiting_on)
    blocker = (
        parked
        if parked is not None and parked.ended_ms is None
        else _blocker(store, wait, task, mine)
    )
    if blocker is not None and blocker.kind == LeaseKind.SHADOW:
        if ground_for(store, wait, task).wait is not None:
            return _unlanded(store, naming, wait, task, blocker)
        # Another shadow has ended since it was parked: the next claim begins it, unless it is held.
        parked, blocker = None, _blocker(store, wait, task, mine)
    if blocker is not None:
        return _behind(store, naming, wait, task, mine, blocker)
    if parked is None:
        ground = ground_for(store, wait, task)
        lease = None if ground.wait is None else _lease(store, ground.wait.lease)
        return None if lease is None else _unlanded(store, naming, wait, task, lease)
    what = f"the push of #{parked.number}"
    asked = _publishing(store, naming, wait, task, whose=parked.task_id, what=what)
    if asked is not None:
        return asked
    return _answer(
        naming,
        wait,
        task,
        Cause.READY,
        f"is about to be looked at: #{parked.number}, which it waited for, has ended.",
        next_step="lessor run",
    )


def _lease(store: Store, row: int) -> LeaseRow | None:
    found = store.read("lease", lease_id=row)
    return LeaseRow._make(found[0]) if found else None


def _blocker(store: Store, wait: WaitRow, task: TaskRow, mine: Sequence[Scope]) -> LeaseRow | None:
    """What the next claim would park the task on; no claim has looked at it yet."""
    if not wait.repository_id or not mine:
        return None
    own = store.read("task_leases", task_id=task.id, live=1, most=5)
    holds = any(LeaseRow._make(row).kind == LeaseKind.HOLD for row in own)
    for _, hit in conflicting(store.read, mine, repository=wait.repository_id, reserved=True):
        lower = hit.reserved_rank is not None and (holds or hit.reserved_rank > wait.rank)
        lease = None if hit.task_id == task.id or lower else _lease(store, hit.lease_id)
        if lease is not None and lease.ended_ms is None:
            return lease
    return None


def _unlanded(store: Store, naming: Naming, wait: WaitRow, task: TaskRow, lease: LeaseRow) -> Why:
    mine = _scopes(store.read("task_scopes", tasks=pack([task.id])))
    found = awaited_landing(store, wait, task, mine, lease)
    return _answer(
        naming,
        wait,
        task,
        Cause.SHADOW,
        found.sentence,
        holder=held_by(naming, lease, found.paths[:50]),
        overlaps=found.overlaps,
        at_ms=lease.max_until_ms,
        next_step=found.step,
    )


def _behind(
    store: Store,
    naming: Naming,
    wait: WaitRow,
    task: TaskRow,
    mine: Sequence[Scope],
    lease: LeaseRow,
) -> Why:
    theirs = _scopes(
        [(0, *row[1:6], 0) for row in store.read("lease_scopes", leases=pack([lease.id]))]
    )
    pairs = [(a.text, b.text) for a in mine for b in theirs if conflicts(a, b)][:20]
    before = int(
        store.read("waiting_position", lease_id=lease.id, rank=wait.rank, task_id=task.id)[0][0]
    )
    own = store.read("task_leases", task_id=task.id, live=1, most=5)
    reserved = any(LeaseRow._make(row).kind == LeaseKind.RESERVATION for row in own)
    paths = ", ".join(sorted({b for _, b in pairs})[:3]) or f"more than {MOST_PAIRS} pairs of paths"
    latest = max(0, lease.max_until_ms - wait.now) // 60_000
    turn = (
        "; its turn is reserved" if reserved else (f"; {before} wait before it" if before else "")
    )
    return _answer(
        naming,
        wait,
        task,
        _CAUSES[LeaseKind(lease.kind)],
        f"waits for #{lease.number} {lease.title} ({paths}; {lease.agent or 'nobody'}), {latest} min at the latest{turn}.",
        holder=held_by(naming, lease, [b.text for b in theirs][:50]),
        overlaps=tuple(pairs),
        position=before + 1,
        at_ms=lease.expires_ms,
        reserved=reserved,
        next_step=f"lessor show {lease.number}",
    )


def _limit(store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    usage = store.read(
        "limit_usage",
        queue=wait.queue,
        agent=wait.agent or "",
        agent_kind=wait.agent or "",
        keys=pack([wait.limit_key] if wait.limit_key else []),
    )
    for kind, key, maximum, holding, _ in usage:
        if holding >= maximum:
            return _answer(
                naming,
                wait,
                task,
                Cause.LIMIT,
                f"waits: {holding} of {maximum} at once run for the {kind} {key}.",
            )
    return None


def _agent(store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    needed = set(unpack(wait.capabilities))
    if wait.agent is None and not needed:
        return None
    workers = [WorkerRow._make(r) for r in store.read("live_workers", host_id="")]
    if any(
        (wait.agent in {None, w.kind}) and needed <= set(unpack(w.capabilities)) for w in workers
    ):
        return None
    wish = " ".join(
        [wait.agent or "any agent", *(["with", ", ".join(sorted(needed))] if needed else [])]
    )
    return _answer(
        naming,
        wait,
        task,
        Cause.AGENT,
        f"waits for a worker: {wish}.",
        next_step=f"lessor run --agent {wait.agent or 'KIND -- CMD'}",
    )


def _ready(store: Store, naming: Naming, wait: WaitRow, task: TaskRow) -> Why | None:
    before = int(
        store.read(
            "ready_position",
            queue=wait.queue,
            repository_id=wait.repository_id,
            rank=wait.rank,
            task_id=task.id,
        )[0][0]
    )
    ground = ground_text(store, ground_for(store, wait, task))
    sentence = (
        f"is ready; {before} {'goes' if before == 1 else 'go'} before it{ground}."
        if before
        else f"is next in line{ground}."
    )
    # Agents of a run work in a clone; what has none is claimed by whoever does it.
    step = "lessor run" if wait.repository_id else "lessor claim --repo none"
    return _answer(naming, wait, task, Cause.READY, sentence, position=before + 1, next_step=step)


def _scopes(rows: Sequence[Sequence[object]]) -> list[Scope]:
    return [
        stored_scope(str(key), str(mode), None if pattern is None else str(pattern), text=str(text))
        for _, _, text, key, mode, pattern, _ in rows
    ]


_REASONS: tuple[Callable[[Store, Naming, WaitRow, TaskRow], Why | None], ...] = (
    _finished,
    _running,
    _state,
    _tasks,
    _time,
    _paused,
    _held,
    _limit,
    _agent,
    _ready,
)
