"""A wall clock that can be stepped under running processes, where libfaketime is installed.

Only the wall clock: the clock that a holder measures its own authority by isn't touched, as no time
service touches it.
"""

from __future__ import annotations

import os
from pathlib import Path

PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
)


def why_not() -> str:
    """Why no clock can be stepped here; empty where one can."""
    return "" if _library() else "there is no libfaketime here (Debian: faketime)"


class SteppedClock:
    """A wall clock for processes that are started with `env`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.ahead_ms = 0
        self._write()

    @property
    def env(self) -> dict[str, str]:
        """What a process has to be started with."""
        return {
            "LD_PRELOAD": _library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }

    def step(self, by_ms: int) -> None:
        """Move it at once."""
        self.ahead_ms += by_ms
        self._write()

    def _write(self) -> None:
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        fresh.write_text(f"{self.ahead_ms / 1000:+.3f}\n", encoding="ascii")
        fresh.chmod(0o644)
        fresh.replace(self._file)


def _library() -> str:
    return next((place for place in PLACES if Path(place).exists()), "")
