"""Where a claim's scan may start: the low-water mark of a queue in a repository.

A transaction left open anywhere on a PostgreSQL server keeps dead entries at the head of the ready
index; walking over them made claims ten times slower within 40,000 tasks. Starting at the task
claimed last removes that. A task may appear before the mark (a higher priority, a retry, a submit
that committed late), so the scan starts from the beginning once a second, after an empty claim,
and whenever this process itself made something ready.
"""

from __future__ import annotations

import threading

from lessor.clock import Clock
from lessor.model.claiming import Decision

START = (-(2**31), 0)
FULL_SCAN_MS = 1_000


class Marks:
    """Marks of one process; losing them costs one full scan."""

    def __init__(self, clock: Clock, *, used: bool) -> None:
        self._clock = clock
        self._used = used
        self._lock = threading.Lock()
        self._marks: dict[tuple[str, int], tuple[int, int]] = {}
        self._full: dict[tuple[str, int], int] = {}

    def start(self, queue: str, repository: int) -> tuple[int, int]:
        """The (rank, task) from which to scan now."""
        if not self._used:
            return START
        where, now = (queue, repository), self._clock.boottime_ms()
        with self._lock:
            if now - self._full.get(where, -FULL_SCAN_MS) >= FULL_SCAN_MS:
                self._full[where] = now
                return START
            return self._marks.get(where, START)

    def is_fresh(self, queue: str, repository: int) -> bool:
        """Whether a full scan was made within the last second."""
        where = (queue, repository)
        return self._clock.boottime_ms() - self._full.get(where, -FULL_SCAN_MS) < FULL_SCAN_MS

    def note(self, queue: str, repository: int, decision: Decision) -> None:
        """Remember how far a claim got."""
        if not decision.grants:
            self.forget(queue, repository)
        elif not decision.passed:
            last = decision.grants[-1]
            self.reach(queue, repository, (last.rank, last.task))

    def reach(self, queue: str, repository: int, mark: tuple[int, int]) -> None:
        """Start at `mark` next time."""
        if self._used:
            with self._lock:
                self._marks[queue, repository] = mark

    def forget(self, queue: str | None = None, repository: int | None = None) -> None:
        """Scan from the beginning next time, in one place or everywhere."""
        with self._lock:
            if queue is None or repository is None:
                self._marks.clear()
                self._full.clear()
            else:
                self._marks.pop((queue, repository), None)
                self._full.pop((queue, repository), None)
