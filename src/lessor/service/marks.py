"""Where a claim's scan may start: the low-water mark of a lane.

A transaction left open anywhere on a PostgreSQL server keeps dead entries at the head of the ready
index; walking over them made claims ten times slower within 40,000 tasks. Starting at the task
claimed last removes that, and so does looking only at leases that ended or ran out since. A task may
appear before the mark (a higher priority, a retry, a submit that committed late), so the scan starts
from the beginning once a second, before a claim is answered with nothing, and whenever this process
itself made something ready.
"""

from __future__ import annotations

import threading

from lessor.clock import Clock
from lessor.service.wish import Lane

Mark = tuple[int, int]
"""A place in the order of ready tasks: (rank, task)."""

START: Mark = (-(2**31), 0)
FULL_SCAN_MS = 1_000
LATE_MS = 250
"""How long an ending write may take to commit and still be met by the next claim, not by a full scan."""


class Marks:
    """Marks of one process; losing them costs one full scan."""

    def __init__(self, clock: Clock, *, used: bool) -> None:
        self._clock = clock
        self._used = used
        self._lock = threading.Lock()
        self._marks: dict[Lane, Mark] = {}
        self._full: dict[Lane, int] = {}
        self._long: dict[Lane, int] = {}
        self._at: dict[Lane, int] = {}

    @property
    def used(self) -> bool:
        """Whether the store has many writers at once."""
        return self._used

    def start(self, lane: Lane) -> Mark:
        """The (rank, task) from which to scan now."""
        if not self._used:
            return START
        now = self._clock.boottime_ms()
        with self._lock:
            if now - self._full.get(lane, now - FULL_SCAN_MS) >= FULL_SCAN_MS:
                self._full[lane] = now
                return START
            return self._marks.get(lane, START)

    def fresh(self, lane: Lane) -> Mark | None:
        """The same where a full scan was made within the last second; else None: one is due, and stays so.

        One look at the clock: a second that turns over between two would count as a full scan.
        """
        now = self._clock.boottime_ms()
        with self._lock:
            if now - self._full.get(lane, now - FULL_SCAN_MS) >= FULL_SCAN_MS:
                return None
            return self._marks.get(lane, START)

    def is_short(self, lane: Lane) -> bool:
        """Whether no claim of the last second was left to the long way round."""
        return self._used and self._clock.boottime_ms() >= self._long.get(lane, 0)

    def lengthen(self, lane: Lane, *, began: Mark | None) -> None:
        """Go the long way round for a second: what left a claim to it seldom goes away at once.

        Args:
            began: where the short way began; a full scan that it had begun is still to be made.
        """
        with self._lock:
            self._long[lane] = self._clock.boottime_ms() + FULL_SCAN_MS
            if began == START:
                self._full.pop(lane, None)

    def since(self, lane: Lane) -> int:
        """From when on, by the store's clock, leases may have run out or ended unseen."""
        return self._at.get(lane, 0) - LATE_MS

    def reach(self, lane: Lane, mark: Mark, *, at_ms: int = 0) -> None:
        """Start at `mark` next time.

        Args:
            at_ms: the store's clock when nothing older was left.
        """
        if self._used:
            with self._lock:
                self._marks[lane] = mark
                self._at[lane] = at_ms

    def forget(self, lane: Lane | None = None) -> None:
        """Scan from the beginning next time, in one lane or everywhere."""
        with self._lock:
            if lane is None:
                self._marks.clear()
                self._full.clear()
            else:
                self._marks.pop(lane, None)
                self._full.pop(lane, None)
