"""One slot of a run: a worker that claims, works, and claims again, in a thread of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from lessor.errors import (
    BusyError,
    GrantOverError,
    LessorError,
    RemoteUnreachableError,
    StoreUnavailableError,
)
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant
from lessor.model.lease import MINUTE
from lessor.model.worker import NewWorker, WorkerId
from lessor.runner.attempt import Attempt
from lessor.runner.baseline import Baseline
from lessor.runner.coming import Coming
from lessor.runner.desk import Desk
from lessor.runner.judging import Judge
from lessor.runner.noting import NoteKind
from lessor.runner.outcome import Outcome
from lessor.runner.remote import Remote
from lessor.runner.stopping import Stopping
from lessor.runner.words import span_text

IDLE_MS = 250
UNREACHABLE_MS = 2 * MINUTE
"""How long a slot with nothing to do waits for a store that doesn't answer."""
ASK_AGAIN_MS = 4 * IDLE_MS


class Tally:
    """What became of the tasks of a run, counted by all its slots.

    Attributes:
        numbers: the tasks' numbers for people, by id.
        workers: the ids of this run's workers.
        refusal: what ended the run for all slots, if anything did.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.workers: set[str] = set()
        self.refusal: BaseException | None = None
        self._outcomes: dict[str, tuple[int, Outcome]] = {}
        self._running = 0
        self._is_silent = False
        self._lock = threading.Lock()

    @property
    def last(self) -> dict[str, Outcome]:
        """Each task's last outcome: that of its highest epoch, whichever ended last."""
        with self._lock:
            return {task: outcome for task, (_, outcome) in self._outcomes.items()}

    @property
    def idle(self) -> bool:
        """Whether no slot is at work."""
        with self._lock:
            return self._running == 0

    def claim(self, claim: Callable[[], Grant | None]) -> Grant | None:
        """Claim, counted in the same step: a slot that looks never sees a task between two."""
        with self._lock:
            grant = claim()
            if grant is not None:
                self._running += 1
        return grant

    def count(self, grant: Grant, outcome: Outcome | None) -> None:
        """Count the end of an attempt; None where it was given back because the run ends."""
        with self._lock:
            self._running -= 1
            self.numbers[grant.task] = grant.number
            epoch, _ = self._outcomes.get(grant.task, (0, None))
            if outcome is not None and grant.epoch >= epoch:
                self._outcomes[grant.task] = (grant.epoch, outcome)

    def turn_silent(self, *, to: bool) -> bool:
        """Note whether the store is silent; whether that is new, so that one slot of them tells it."""
        with self._lock:
            was, self._is_silent = self._is_silent, to
            return was is not to

    def refuse(self, error: BaseException) -> None:
        """Note what ends the run; the first one is told."""
        with self._lock:
            self.refusal = self.refusal or error


class Slot:
    """Claims and works until nothing is left, or until asked to stop."""

    def __init__(
        self, desk: Desk, number: int, *, tally: Tally, baseline: Baseline, stopping: Stopping
    ) -> None:
        options = desk.options
        self._desk = desk
        self._number = number
        self._agent = options.agent if options.workers == 1 else f"{options.agent}-{number}"
        self._tally = tally
        self._baseline = baseline
        self._stopping = stopping
        self._coming = Coming(desk)
        self._remote = Remote(desk)
        self._silent_since: int | None = None
        self._wish: ClaimRequest | None = None

    def work(self) -> None:
        """Work to the end; what ends the run is told to the other slots too."""
        try:
            worker = self._register()
            try:
                self._work(worker, Judge(self._desk, slot=self._number))
            finally:
                with suppress(LessorError):  # it would only be one more idle name
                    self._desk.lessor.registry.retire_worker(worker)
        except BaseException as error:  # noqa: BLE001 - the thread's outermost line; the run raises it
            self._tally.refuse(error)
            self._stopping.drain()

    def _work(self, worker: WorkerId, judge: Judge) -> None:
        while not self._stopping.draining:
            sent_ms = self._desk.clock.boottime_ms()
            try:
                if self._remote.is_away():
                    self._wait_for_remote()
                    continue
                self._remote.recover()
                grant = self._tally.claim(lambda: self._claim(worker))
                over = grant is None and self._is_over()
                self._store_answered()
            except (StoreUnavailableError, BusyError) as silent:
                self._wait_for_store(silent)
                continue
            if grant is not None:
                # A claim that was answered at a later try has lived for a while.
                lived_ms = max(0, self._desk.options.terms.ttl_ms - grant.ttl_ms)
                self._attempt(grant, judge, sent_ms=sent_ms - lived_ms)
            elif over:
                return
            else:
                self._stopping.wait(IDLE_MS)

    def _attempt(self, grant: Grant, judge: Judge, *, sent_ms: int) -> None:
        outcome = None
        try:
            outcome = Attempt(
                self._desk,
                grant,
                agent=self._agent,
                judge=judge,
                baseline=self._baseline,
                stopping=self._stopping,
                sent_ms=sent_ms,
            ).run()
        except RemoteUnreachableError as silent:
            self._remote.went_away(silent)
        finally:
            self._tally.count(grant, outcome)

    def _wait_for_store(self, silent: LessorError) -> None:
        """Wait a little for a store that doesn't answer; raise `silent` when it never does."""
        now = self._desk.clock.boottime_ms()
        self._silent_since = self._silent_since or now
        if now - self._silent_since >= UNREACHABLE_MS and self._tally.idle:
            raise silent
        if self._tally.turn_silent(to=True):
            again = f"asked again every {span_text(ASK_AGAIN_MS)} for {span_text(UNREACHABLE_MS)}"
            self._desk.note(NoteKind.HELD, f"nothing is claimed, {again}: {silent.message}")
        self._stopping.wait(ASK_AGAIN_MS)

    def _store_answered(self) -> None:
        self._silent_since = None
        if self._tally.turn_silent(to=False):
            self._desk.note(NoteKind.FOUND, "the store answers again")

    def _wait_for_remote(self) -> None:
        """Wait a little for a fenced remote that doesn't answer; raise when it never does."""
        if self._tally.idle:
            self._remote.refuse_gone()
        self._stopping.wait(ASK_AGAIN_MS)

    def _is_over(self) -> bool:
        if self._desk.options.stay or not self._tally.idle:
            return False
        return not self._coming.is_anything(own=self._tally.workers)

    def _register(self) -> WorkerId:
        host, options = self._desk.host, self._desk.options
        identity = host.identify(os.getpid())
        worker = self._desk.lessor.registry.add_worker(
            NewWorker(
                agent=self._agent,
                kind=options.kind,
                host_id=host.id,
                boot_id=host.boot_id,
                pid=identity.pid if identity else None,
                pid_namespace=host.pid_namespace,
                start_ticks=identity.start_ticks if identity else None,
                heartbeat=True,
            )
        )
        self._tally.workers.add(worker.id)
        return worker.id

    def _claim(self, worker: WorkerId) -> Grant | None:
        options = self._desk.options
        # Sent again with its id until it is answered: a lost answer may have been a grant.
        self._wish = self._wish or ClaimRequest(
            worker=worker,
            request_id=new_request_id(),
            secret=new_token(),
            queue=options.queue,
            repository=self._desk.repository,
            task=options.task,
            ttl_ms=options.terms.ttl_ms,
            max_hold_ms=options.terms.max_hold_ms,
        )
        try:
            grants = self._desk.lessor.leases.claim(self._wish)
        except GrantOverError:
            grants = []
        self._wish = None
        return grants[0] if grants else None
