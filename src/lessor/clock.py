"""Clocks: the only module that reads time or waits for it.

A process measures its own authority on `boottime_ms`, which counts suspend (CLOCK_BOOTTIME where
the system has one): a lease that ran out while a laptop slept has run out. Wall time serves only
the SQLite store, whose clock is this machine's, and people.
"""

from __future__ import annotations

import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """What Lessor asks of time; milliseconds throughout."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00Z by the system's clock; may be stepped."""

    def boottime_ms(self) -> int:
        """Milliseconds on a clock that never steps and counts suspend where the system can."""

    def suspended_ms(self) -> int:
        """How long this machine has slept since it booted; 0 where the system can't say."""

    def boot_id(self) -> str:
        """Which boot `boottime_ms` counts from; empty where the system doesn't say."""

    def wait(self, milliseconds: int) -> None:
        """Return after about `milliseconds`."""


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00Z by the system's clock; may be stepped."""
        return time.time_ns() // 1_000_000

    def boottime_ms(self) -> int:
        """Milliseconds on CLOCK_BOOTTIME, or on the monotonic clock where there is none."""
        return _boottime_ns() // 1_000_000

    def suspended_ms(self) -> int:
        """BOOTTIME minus MONOTONIC: what the machine slept since it booted."""
        return (_boottime_ns() - time.monotonic_ns()) // 1_000_000

    def boot_id(self) -> str:
        """The kernel's random boot id, or the boot's instant where there is none (macOS)."""
        return _boot_id()

    def wait(self, milliseconds: int) -> None:
        """Return after about `milliseconds`."""
        threading.Event().wait(milliseconds / 1000)


class ManualClock:
    """A clock that only moves when told, for tests and simulation."""

    def __init__(self, *, wall_ms: int = 1_800_000_000_000) -> None:
        self._wall = wall_ms
        self._boottime = 0
        self._suspended = 0
        self._boot = 1

    def advance(self, milliseconds: int) -> None:
        """Let `milliseconds` pass for everybody."""
        self._wall += milliseconds
        self._boottime += milliseconds

    def suspend(self, milliseconds: int) -> None:
        """Let the machine sleep: time passes, and nothing that runs on it notices."""
        self.advance(milliseconds)
        self._suspended += milliseconds

    def step_wall(self, milliseconds: int) -> None:
        """Move the wall clock alone, as a time service or a person does."""
        self._wall += milliseconds

    def reboot(self) -> None:
        """Start the machine anew: another boot id, a boot clock at zero."""
        self._boot += 1
        self._boottime = 0
        self._suspended = 0

    def boot_id(self) -> str:
        """The simulated boot."""
        return f"boot-{self._boot}"

    def wall_ms(self) -> int:
        """The simulated wall clock."""
        return self._wall

    def boottime_ms(self) -> int:
        """The simulated clock that counts suspend."""
        return self._boottime

    def suspended_ms(self) -> int:
        """How long the simulated machine slept."""
        return self._suspended

    def wait(self, milliseconds: int) -> None:
        """Advance instead of waiting."""
        self.advance(milliseconds)


@lru_cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        # Truncated to a minute: the wall clock that the instant is computed from may be adjusted.
        return f"boot-{(time.time_ns() - _boottime_ns()) // 60_000_000_000}"


def _boottime_ns() -> int:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
