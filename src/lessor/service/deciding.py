"""What people and witnesses decide about tasks: cancel, retry, block, force, proof of death.

Locks live leases first, then tasks (the lock order); a task that was claimed in between is met by
reading again. All of it is repeatable by request id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessor.errors import InvalidError, NotFoundError, TransitionRefusedError
from lessor.model.lease import LeaseEnd, LeaseKind
from lessor.model.lifecycle import TaskEvent, TaskState, next_state
from lessor.model.recovery import decide_recovery
from lessor.service.lapsing import end_row, ended_lease, forced_rule, move_to
from lessor.service.naming import Naming
from lessor.service.rows import LockedRow, pack, pack_facts
from lessor.store import RetryRule, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Where a task is after a decision."""

    task: str
    state: TaskState


def cancel(
    tx: Transaction, naming: Naming, tasks: Sequence[str], *, actor: str, reason: str
) -> list[Decided]:
    """End tasks for good; a live lease is revoked at once, its holder hears of it when it renews.

    Raises:
        TransitionRefusedError: a task is finished already.
    """
    return _decide(
        tx, naming, tasks, TaskEvent.CANCEL, end=LeaseEnd.CANCELLED, actor=actor, reason=reason
    )


def block(
    tx: Transaction, naming: Naming, tasks: Sequence[str], *, actor: str, reason: str
) -> list[Decided]:
    """Keep tasks from being claimed until they are unblocked; a live lease ends, uncharged."""
    return _decide(
        tx, naming, tasks, TaskEvent.BLOCK, end=LeaseEnd.FORCED, actor=actor, reason=reason
    )


def unblock(
    tx: Transaction, naming: Naming, tasks: Sequence[str], *, actor: str, reason: str
) -> list[Decided]:
    """Let blocked tasks be claimed again."""
    return _decide(tx, naming, tasks, TaskEvent.UNBLOCK, end=None, actor=actor, reason=reason)


def requeue(
    tx: Transaction,
    naming: Naming,
    tasks: Sequence[str],
    *,
    actor: str,
    reason: str,
    addition: str = "",
) -> list[Decided]:
    """Queue tasks again with their attempts forgotten; `addition` is appended to their prompts."""
    decided = _decide(
        tx, naming, tasks, TaskEvent.REQUEUE, end=None, actor=actor, reason=reason, fresh=True
    )
    _append(tx, naming, tasks, addition)
    return decided


def answer(tx: Transaction, naming: Naming, task: str, *, actor: str, text: str) -> list[Decided]:
    """Answer a task's question: it is queued again with the answer in its prompt."""
    decided = _decide(tx, naming, [task], TaskEvent.ANSWER, end=None, actor=actor, reason=text)
    _append(tx, naming, [task], text)
    return decided


def force_release(
    tx: Transaction, naming: Naming, task: str, *, actor: str, reason: str, checked: str
) -> Decided:
    """End somebody else's lease: a person's decision, with what they checked.

    Raises:
        InvalidError: no reason, or nothing was checked.
        TransitionRefusedError: the task has no lease that hasn't ended.
    """
    if not reason.strip() or not checked.strip():
        raise InvalidError(
            "Releasing by force needs a reason and what was checked.",
            next_step='Say both: --reason "…" --checked "…".',
        )
    facts = {"actor": actor, "reason": reason, "checked": checked}
    return _end_live(tx, naming, task, end=LeaseEnd.FORCED, proof=None, facts=facts)


def end_gone(tx: Transaction, naming: Naming, task: str, *, epoch: int, proof: str) -> Decided:
    """End a lease whose process tree the host's own witness proves gone; no attempt is spent.

    A lease that ran out and that no claim has ended yet counts: the proof came before the lapse.

    Raises:
        TransitionRefusedError: the task has no lease at `epoch` that hasn't ended.
    """
    return _end_live(
        tx, naming, task, end=LeaseEnd.GONE, proof=proof, facts={"proof": proof}, epoch=epoch
    )


def _decide(
    tx: Transaction,
    naming: Naming,
    tasks: Sequence[str],
    event: TaskEvent,
    *,
    end: LeaseEnd | None,
    actor: str,
    reason: str,
    fresh: bool = False,
) -> list[Decided]:
    ids = list(dict.fromkeys(naming.task_row(task) for task in tasks))
    rows = [LockedRow._make(row) for row in tx.rows("lock_live_leases", tasks=pack(ids))]
    if event in _GIVES_UP:
        tx.rows("lock_side_leases", tasks=pack(ids), kinds=pack(_BESIDE))
    statuses = {
        int(r[0]): TaskState(r[1]) for r in tx.rows("lock_tasks", tasks=pack(sorted(set(ids))))
    }
    for row in rows:
        if row.task_id not in statuses:
            raise NotFoundError(
                f"{naming.task(row.task_id)} isn't there.", next_step="List the tasks: lessor list."
            )
        if (statuses[row.task_id] is TaskState.RUNNING) != (row.lease_id is not None):
            raise RetryRule  # claimed or ended between the two locks
    facts = {"actor": actor, "reason": reason}
    states = {
        row.task_id: _move(statuses[row.task_id], event, naming.task(row.task_id)) for row in rows
    }
    live = [row for row in rows if row.lease_id is not None]
    if live and end is not None:
        rule = forced_rule(event, event, "A person decided.")
        ends = [end_row(row, reason=end, rule=rule, now=row.now, facts=facts) for row in live]
        tx.rows(
            "end_leases",
            rows=pack([{**e, "charge": 0, "kind": _EVENT[event]} for e in ends]),
            at_ms=rows[0].now,
        )
    still = [row for row in rows if row.lease_id is None]
    if still:
        _move_still(tx, still, states, statuses, event, facts=facts, fresh=fresh)
    return [Decided(task=naming.task(row.task_id), state=states[row.task_id]) for row in rows]


_GIVES_UP = frozenset({TaskEvent.CANCEL, TaskEvent.BLOCK})
_BESIDE = (LeaseKind.RESERVATION, LeaseKind.HOLD, LeaseKind.SHADOW)
_EVENT = {
    TaskEvent.CANCEL: "cancelled",
    TaskEvent.BLOCK: "blocked",
    TaskEvent.UNBLOCK: "unblocked",
    TaskEvent.REQUEUE: "requeued",
    TaskEvent.ANSWER: "answered",
}


def _move_still(
    tx: Transaction,
    rows: Sequence[LockedRow],
    states: dict[int, TaskState],
    statuses: dict[int, TaskState],
    event: TaskEvent,
    *,
    facts: dict[str, str],
    fresh: bool,
) -> None:
    """Move tasks that nobody holds, and end what was kept for them."""
    now = rows[0].now
    if event in _GIVES_UP:
        ids = pack(sorted({row.task_id for row in rows}))
        tx.rows(
            "end_side_leases",
            tasks=ids,
            kinds=pack(_BESIDE),
            at_ms=now,
            reason=LeaseEnd.CANCELLED,
        )
    moves = [
        {
            "task_id": row.task_id,
            "from_status": statuses[row.task_id],
            **move_to(states[row.task_id], now=now),
            "charged": 0 if fresh else None,
            "kind": _EVENT[event],
            "facts": pack_facts(**facts),
        }
        for row in rows
    ]
    if event is TaskEvent.UNBLOCK:
        moves = [{**move, "due": None, "run_at_ms": None} for move in moves]
    if len(tx.rows("move_tasks", rows=pack(moves), at_ms=now)) != len(moves):
        raise RetryRule


def _move(state: TaskState, event: TaskEvent, task: str) -> TaskState:
    try:
        return next_state(state, event)
    except TransitionRefusedError as error:
        error.facts = {**error.facts, "task": task}
        raise


def _end_live(
    tx: Transaction,
    naming: Naming,
    task: str,
    *,
    end: LeaseEnd,
    proof: str | None,
    facts: dict[str, str],
    epoch: int | None = None,
) -> Decided:
    row = LockedRow._make(tx.rows("lock_live_leases", tasks=pack([naming.task_row(task)]))[0])
    if row.status is None:
        raise NotFoundError(f"{task} isn't there.", next_step="List the tasks: lessor list.")
    if row.lease_id is None or epoch not in {None, row.epoch}:
        raise TransitionRefusedError(
            f"{task} has no lease{'' if epoch is None else f' at epoch {epoch}'} that could be ended.",
            next_step="See who holds it: lessor why TASK.",
            task=task,
            state=row.status or "",
        )
    rule = decide_recovery(ended_lease(row, end=end))
    tx.rows(
        "end_leases",
        rows=pack(
            [end_row(row, reason=end, rule=rule, now=row.now, proof=proof, facts=dict(facts))]
        ),
        at_ms=row.now,
    )
    return Decided(task=task, state=next_state(TaskState(row.status or ""), rule.event))


def _append(tx: Transaction, naming: Naming, tasks: Sequence[str], addition: str) -> None:
    if addition:
        for task in tasks:
            tx.rows("append_prompt", task_id=naming.task_row(task), addition=f"\n\n{addition}")
