"""Whether something is still to come for a run whose slots find nothing to claim."""

from __future__ import annotations

from collections.abc import Collection

from lessor.errors import NotFoundError
from lessor.model.lifecycle import TaskState
from lessor.model.retry import RetryPolicy
from lessor.model.task import Task
from lessor.model.waiting import Cause, Why
from lessor.runner.desk import Desk
from lessor.runner.host import Presence
from lessor.runner.witness import worker_presence
from lessor.service.reading import LeaseRecord

MOST_LOOKED_AT = 200
LONGEST_DELAY_MS = RetryPolicy().ceiling_ms
"""A delayed retry is waited for; what somebody put off for longer isn't."""


class Coming:
    """What a run may wait for: retries, and ends of leases that come without a person."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def is_anything(self, *, own: Collection[str]) -> bool:
        """Whether a task of this run's may become claimable by itself, soon.

        Args:
            own: the workers of this run, none of which is at work.
        """
        seen: set[str] = set()
        return any(self._comes(task, own, seen) for task in self._ours())

    def would_be_checked(self) -> bool:
        """Whether a task is queued that the configured check judges, and not one of its own."""
        return any(t.state is TaskState.QUEUED and t.check is None for t in self._ours())

    def _ours(self) -> list[Task]:
        lessor, options = self._desk.lessor, self._desk.options
        if options.task is not None:
            return [lessor.tasks.task(options.task)]
        tasks = lessor.tasks.open_tasks(repository=self._desk.repository, most=MOST_LOOKED_AT)
        return [task for task in tasks if self._is_ours(task)]

    def _is_ours(self, task: Task) -> bool:
        options = self._desk.options
        return (
            task.queue == options.queue
            and task.agent in {None, options.kind}
            and not task.capabilities
        )

    def _comes(self, task: Task, own: Collection[str], seen: set[str]) -> bool:
        if task.id in seen:
            return False
        seen.add(task.id)
        if task.state is TaskState.RUNNING:
            return self._runs_out(task, own)
        if task.state is not TaskState.QUEUED:
            return False
        why = self._desk.lessor.tasks.why(task.id)
        if why.cause is Cause.TASKS:
            return self._all_come(why, own, seen)
        if why.cause is Cause.RESERVATION and why.holder is not None:
            # Somebody else's turn comes first, and that turn has to come itself.
            first = self._desk.lessor.tasks.task(why.holder.task)
            return self._is_soon(why.holder.latest_ms) or self._comes(first, own, seen)
        return self._gets_free(why)

    def _gets_free(self, why: Why) -> bool:
        """Whether what a queued task waits for ends without a person."""
        match why.cause:
            case Cause.READY:
                return True
            case Cause.TIME:
                return self._is_soon(why.at_ms)
            case Cause.LEASE | Cause.HOLD | Cause.SHADOW:
                return why.holder is not None and (
                    self._is_soon(why.holder.latest_ms) or self._has_heartbeat(why)
                )
            case Cause.LIMIT:
                return any(self._lasts(lease) for lease in self._live())
            case _:
                return False

    def _runs_out(self, task: Task, own: Collection[str]) -> bool:
        """Whether its lease has run out, or only has to: its holder is dead, or ours and idle."""
        leases = self._desk.lessor.leases.leases(task=task.id, live=True)
        return any(
            not lease.live or lease.worker in own or self._is_dead(lease)
            for lease in leases
            if lease.worker is not None
        )

    def _all_come(self, why: Why, own: Collection[str], seen: set[str]) -> bool:
        """Whether every task that this one needs may still succeed without a person."""
        needed = [self._desk.lessor.tasks.task(task) for task in why.needs]
        return bool(needed) and all(
            self._runs(task) or self._comes(task, own, seen) for task in needed
        )

    def _runs(self, task: Task) -> bool:
        return task.state is TaskState.RUNNING and any(
            self._lasts(lease) for lease in self._desk.lessor.leases.leases(task=task.id, live=True)
        )

    def _live(self) -> list[LeaseRecord]:
        return self._desk.lessor.leases.leases(live=True, most=MOST_LOOKED_AT)

    def _lasts(self, lease: LeaseRecord) -> bool:
        """Whether a live worker's heartbeat keeps it: its end comes when the work is done."""
        if lease.worker is None or not lease.live:
            return False
        return self._desk.lessor.registry.worker(lease.worker).heartbeat

    def _has_heartbeat(self, why: Why) -> bool:
        if why.holder is None:
            return False
        try:
            return self._lasts(self._desk.lessor.leases.lease(why.holder.lease))
        except NotFoundError:
            return False

    def _is_dead(self, lease: LeaseRecord) -> bool:
        worker = self._desk.lessor.registry.worker(str(lease.worker))
        return worker_presence(worker, self._desk.host).presence is Presence.GONE

    def _is_soon(self, at_ms: int | None) -> bool:
        return at_ms is not None and at_ms - self._desk.lessor.now_ms() <= LONGEST_DELAY_MS
