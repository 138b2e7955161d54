"""Processes that take turns on one simulated clock: no threads, no real time, no chance of its own."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from contextlib import suppress

from greenlet import getcurrent, greenlet

from lessor.clock import ManualClock
from simulation.judging import IDLE, Doing


class CrashedError(BaseException):
    """The process ends here; nothing in it may catch this."""


class StoppedError(BaseException):
    """The run is over; every process ends where it stands."""


class Process:
    """One thread of control with a name; it runs until it sleeps.

    Attributes:
        mortal: whether it may crash; who gives it life again is its own program.
        doing: what it is about to do, as the outside knows it.
    """

    def __init__(
        self, name: str, program: Callable[[], None], *, hub: greenlet, mortal: bool
    ) -> None:
        self.name = name
        self.mortal = mortal
        self.doing: Doing = IDLE
        self.line = greenlet(program, parent=hub)


class Scheduler:
    """Wakes whoever is due next, and moves the clock there."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self._hub = getcurrent()
        self._order = itertools.count()
        self._due: list[tuple[int, int, Process]] = []
        self._running: Process | None = None
        self._all: list[Process] = []

    @property
    def running(self) -> Process:
        """Whose turn it is."""
        if self._running is None:
            raise RuntimeError("nobody is running")
        return self._running

    def spawn(
        self, name: str, program: Callable[[], None], *, after_ms: int = 0, mortal: bool = False
    ) -> None:
        """Start a process after some time."""
        process = Process(name, program, hub=self._hub, mortal=mortal)
        self._all.append(process)
        self._wake(process, after_ms)

    def sleep(self, milliseconds: int) -> None:
        """Let the others run until so much time has passed for the running process."""
        process = self.running
        self._wake(process, milliseconds)
        self._hub.switch()

    def turn(self) -> bool:
        """Let the next one run until it sleeps or ends; False when nobody is left."""
        if not self._due:
            return False
        at, _, process = heapq.heappop(self._due)
        self.clock.advance(max(0, at - self.clock.boottime_ms()))
        self._running = process
        try:
            process.line.switch()
        finally:
            self._running = None
        return True

    def stop(self) -> None:
        """End every process where it stands."""
        self._due.clear()
        for process in self._all:
            if process.line and not process.line.dead:
                with suppress(StoppedError):
                    process.line.throw(StoppedError)

    def _wake(self, process: Process, milliseconds: int) -> None:
        at = self.clock.boottime_ms() + max(0, milliseconds)
        heapq.heappush(self._due, (at, next(self._order), process))
