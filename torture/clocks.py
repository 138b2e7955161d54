"""A wall clock that can be stepped under running processes: a SQLite store's, or a PostgreSQL server's.

Only the wall clock: the clock that a holder measures its own authority by isn't touched, as no time
service touches it. A SQLite store's clock is the workers' own, which `connect` takes; a server's
needs libfaketime (not under Python: its `time.sleep` is refused there by libfaketime 0.9.10).
"""

from __future__ import annotations

import os
from pathlib import Path

from lessor.clock import SystemClock

PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
)


def why_not() -> str:
    """Why no server's clock can be stepped here; empty where one can."""
    return "" if _library() else "there is no libfaketime here (Debian: faketime)"


class FileClock(SystemClock):
    """The machine's clocks, the wall clock ahead by what a file says."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def wall_ms(self) -> int:
        """The stepped wall clock."""
        return super().wall_ms() + round(1000 * float(self._file.read_text(encoding="ascii")))


class SteppedClock:
    """What moves the wall clock of a `FileClock`, and of a server that is started with `env`."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.ahead_ms = 0
        self._write()

    def seen(self) -> FileClock:
        """The clock, for a store in this process."""
        return FileClock(self.file)

    @property
    def env(self) -> dict[str, str]:
        """What a process has to be started with."""
        return {
            "LD_PRELOAD": _library(),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }

    def step(self, by_ms: int) -> None:
        """Move it at once."""
        self.ahead_ms += by_ms
        self._write()

    def _write(self) -> None:
        fresh = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        fresh.write_text(f"{self.ahead_ms / 1000:+.3f}\n", encoding="ascii")
        fresh.chmod(0o644)
        fresh.replace(self.file)


def _library() -> str:
    return next((place for place in PLACES if Path(place).exists()), "")
