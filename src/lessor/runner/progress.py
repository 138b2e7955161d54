"""Whether an agent gets on: a lease is renewed only while it does.

Progress is any of three: its log grows, something in its worktree changes, its processes compute.
Time counts while this machine is awake and the agent isn't frozen by us.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from lessor.clock import Clock
from lessor.errors import TermsInvalidError
from lessor.model.lease import HOUR, MINUTE, SECOND, YEAR

WARNING_SHARE = 0.75
BUSY_SHARE = 0.05
"""Processor time per time from which a tree computes; timers of an idle runtime stay below."""

ENTRIES_A_ROUND = 20_000
ENTRIES_A_STEP = 2_000
UNWATCHED = frozenset({".git", "node_modules", "__pycache__", ".venv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressLimits:
    """How long an agent may be quiet, and how long it may take.

    Attributes:
        quiet_ms: without any progress; a warning comes at three quarters of it.
        total_ms: from its start to its end.
    """

    quiet_ms: int = 20 * MINUTE
    total_ms: int = 2 * HOUR

    def __post_init__(self) -> None:
        if not 0 < self.quiet_ms <= self.total_ms <= YEAR:
            raise TermsInvalidError(
                f"A quiet limit of {self.quiet_ms} ms and a total limit of {self.total_ms} ms "
                "don't fit together.",
                next_step="Give 0 < quiet <= total <= one year.",
                quiet_ms=self.quiet_ms,
                total_ms=self.total_ms,
            )

    @property
    def look_every_ms(self) -> int:
        """How often to look: often enough that the limit is met closely, never a burden."""
        return min(max(self.quiet_ms // 40, 50), 15 * SECOND)


class Verdict(StrEnum):
    """What a look at the agent came to."""

    FINE = "fine"
    WARNING = "warning"  # quiet for three quarters of the limit; said once
    MOVED = "moved"  # there was progress after a warning
    QUIET = "quiet"
    TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look; only differences between two mean anything.

    Attributes:
        worktree: its fingerprint; None before the first scan was complete.
    """

    log_bytes: int
    cpu_ms: int
    worktree: tuple[int, int] | None


def awake_ms(clock: Clock) -> int:
    """The time that limits count: a night with the lid closed is nobody's quiet time."""
    return clock.boottime_ms() - clock.suspended_ms()


class Progress:
    """The rule, over samples and times that it is given."""

    def __init__(self, limits: ProgressLimits, *, now_ms: int) -> None:
        self._limits = limits
        self._started = now_ms
        self._last_progress = now_ms
        self._looked = now_ms
        self._last: Sample | None = None
        self._warned = False

    def quiet_ms(self, now_ms: int) -> int:
        """How long there has been no progress."""
        return now_ms - self._last_progress

    def observe(self, sample: Sample, *, now_ms: int) -> Verdict:
        """Judge the agent by a new sample."""
        moved = self._moved(sample, now_ms)
        again = moved and self._warned
        if moved:
            self.excuse(now_ms)
        self._last, self._looked = sample, now_ms
        if now_ms - self._started >= self._limits.total_ms:
            return Verdict.TOTAL
        quiet = self.quiet_ms(now_ms)
        if quiet >= self._limits.quiet_ms and self._warned:
            return Verdict.QUIET
        # Warned first, even where one late look finds both times passed.
        if quiet >= self._limits.quiet_ms * WARNING_SHARE and not self._warned:
            self._warned = True
            return Verdict.WARNING
        return Verdict.MOVED if again else Verdict.FINE

    def excuse(self, now_ms: int) -> None:
        """Begin the quiet time anew: there was progress, or we held the agent still ourselves."""
        self._last_progress = now_ms
        self._warned = False

    def _moved(self, sample: Sample, now_ms: int) -> bool:
        last = self._last
        if last is None:
            return False
        computed = sample.cpu_ms - last.cpu_ms
        return (
            sample.log_bytes != last.log_bytes
            or (last.worktree is not None and sample.worktree != last.worktree)
            or computed > BUSY_SHARE * max(1, now_ms - self._looked)
        )


class WorktreeScan:
    """A fingerprint of a worktree that costs a bounded number of looks at a time.

    It is (entries, newest modification in ns) of the first `ENTRIES_A_ROUND` entries, taken in
    steps of `ENTRIES_A_STEP`; it changes only when a round is complete. Git's own files and
    installed packages are left out, links aren't followed, and what can't be read doesn't count.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._finished: tuple[int, int] | None = None
        self._round = self._walk()
        self._entries = 0
        self._newest = 0

    def step(self) -> tuple[int, int] | None:
        """Go on scanning; returns the fingerprint of the last complete round, if there was one."""
        for _ in range(ENTRIES_A_STEP):
            modified = next(self._round, None)
            if modified is None or self._entries >= ENTRIES_A_ROUND:
                self._finished = (self._entries, self._newest)
                self._round, self._entries, self._newest = self._walk(), 0, 0
                break
            self._entries += 1
            self._newest = max(self._newest, modified)
        return self._finished

    def _walk(self) -> Iterator[int]:
        pending = [self._root]
        while pending:
            directory = pending.pop()
            with suppress(OSError), os.scandir(directory) as entries:
                for entry in entries:
                    if entry.name in UNWATCHED:
                        continue
                    with suppress(OSError):
                        yield entry.stat(follow_symlinks=False).st_mtime_ns
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
