"""A run: slots that claim and work side by side until there is nothing left to claim."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant
from lessor.model.waiting import Cause
from lessor.model.worker import NewWorker, Worker
from lessor.runner.attempt import Attempt
from lessor.runner.desk import Desk
from lessor.runner.judging import Judge
from lessor.runner.outcome import Outcome, exit_code
from lessor.runner.recovering import recover
from lessor.runner.stopping import Stopping

IDLE_MS = 250
MOST_LOOKED_AT = 200
LONGEST_DELAY_MS = 10 * 60_000
_COMES_BY_ITSELF = frozenset({Cause.READY, Cause.RESERVATION, Cause.RUNNING})


@dataclass(slots=True)
class Tally:
    """What became of the tasks of a run: each one's last outcome."""

    last: dict[str, Outcome] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    running: int = 0


class Run:
    """Slots over one repository; one thread each."""

    def __init__(self, desk: Desk, stopping: Stopping) -> None:
        self._desk = desk
        self._stopping = stopping
        self._lock = threading.Lock()
        self.tally = Tally()

    def run(self) -> int:
        """Work until nothing is left, or until asked to stop; the exit code."""
        recover(self._desk)
        slots = [
            threading.Thread(target=self._slot, args=(slot,), name=f"slot-{slot}")
            for slot in range(1, self._desk.options.workers + 1)
        ]
        for thread in slots:
            thread.start()
        # Joined in slices: a signal handler only runs between the main thread's bytecodes.
        while any(thread.is_alive() for thread in slots):
            slots[0].join(timeout=IDLE_MS / 1000)
            self._desk.clock.wait(20)
        return exit_code(self.tally.last.values())

    def _slot(self, slot: int) -> None:
        options, lessor = self._desk.options, self._desk.lessor
        agent = options.agent if options.workers == 1 else f"{options.agent}-{slot}"
        worker = self._register(agent)
        judge = Judge(self._desk, slot=slot)
        while not self._stopping.draining:
            sent_ms = self._desk.clock.boottime_ms()
            grant = self._claim(worker)
            if grant is not None:
                attempt = Attempt(
                    self._desk,
                    grant,
                    agent=agent,
                    judge=judge,
                    stopping=self._stopping,
                    sent_ms=sent_ms,
                )
                self._count(grant, attempt.run())
            elif self._is_over():
                break
            else:
                self._stopping.wait(IDLE_MS)
        lessor.registry.retire_worker(worker.id)

    def _register(self, agent: str) -> Worker:
        host, options = self._desk.host, self._desk.options
        identity = host.identify(os.getpid())
        return self._desk.lessor.registry.add_worker(
            NewWorker(
                agent=agent,
                kind=options.kind,
                host_id=host.id,
                boot_id=host.boot_id,
                pid=identity.pid if identity else None,
                pid_namespace=host.pid_namespace,
                start_ticks=identity.start_ticks if identity else None,
                heartbeat=True,
            )
        )

    def _claim(self, worker: Worker) -> Grant | None:
        options = self._desk.options
        with self._lock:
            grants = self._desk.lessor.leases.claim(
                ClaimRequest(
                    worker=worker.id,
                    request_id=new_request_id(),
                    secret=new_token(),
                    queue=options.queue,
                    repository=self._desk.repository,
                    task=options.task,
                    ttl_ms=options.terms.ttl_ms,
                    max_hold_ms=options.terms.max_hold_ms,
                )
            )
            if grants:
                self.tally.running += 1
        return grants[0] if grants else None

    def _count(self, grant: Grant, outcome: Outcome) -> None:
        with self._lock:
            self.tally.running -= 1
            self.tally.last[grant.task] = outcome
            self.tally.numbers[grant.task] = grant.number

    def _is_over(self) -> bool:
        """Nothing runs here, and nothing will become claimable by itself soon."""
        options = self._desk.options
        with self._lock:
            if self.tally.running or options.stay:
                return False
        tasks = self._desk.lessor.tasks
        if options.task is not None:
            open_ones = [tasks.task(options.task)]
        else:
            open_ones = tasks.open_tasks(repository=self._desk.repository, most=MOST_LOOKED_AT)
        return not any(
            self._comes(task.id)
            for task in open_ones
            if task.queue == options.queue and task.state == "queued"
        )

    def _comes(self, task: str) -> bool:
        why = self._desk.lessor.tasks.why(task)
        if why.cause is Cause.TIME and why.at_ms is not None:
            return why.at_ms - self._desk.lessor.now_ms() <= LONGEST_DELAY_MS
        if why.cause is Cause.LEASE and why.holder is not None:
            return (
                why.holder.latest_ms - self._desk.lessor.now_ms() <= LONGEST_DELAY_MS
                or self._is_heartbeat(why.holder.lease)
            )
        return why.cause in _COMES_BY_ITSELF

    def _is_heartbeat(self, lease: str) -> bool:
        worker = self._desk.lessor.leases.lease(lease).worker
        return worker is not None and self._desk.lessor.registry.worker(worker).heartbeat
