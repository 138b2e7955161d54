"""The process that forks writers, and kills them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from lessor.clock import SystemClock

PROGRAM = Path(__file__).with_name("writer.py")
LONGEST_MS = 60_000


class Host:
    """Has imported everything and opened nothing, so that a writer costs milliseconds."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(30) == 0
        assert self._process.stdout
        self._process.stdout.close()

    def begin_one(self, url: str, journal: Path) -> int:
        """Let a writer begin; its pid."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([url, str(journal)]) + "\n")
        self._process.stdin.flush()
        return int(self._hear())

    def await_call(self, journal: Path) -> None:
        """Wait until the writer has sent its first call, however slow the machine is."""
        clock = SystemClock()
        until = clock.boottime_ms() + LONGEST_MS
        while not (journal.exists() and journal.read_bytes().count(b"\n") > 1):
            assert clock.boottime_ms() < until, "the writer never began"
            clock.wait(1)

    def end_one(self, pid: int) -> None:
        """Kill the writer that was begun last."""
        os.kill(pid, signal.SIGKILL)
        assert self._hear() == "gone"

    def kill_one(self, url: str, journal: Path, *, after_ms: int, at_work: bool = False) -> None:
        """Let a writer begin, and kill it; not before its first call where it is to be at work."""
        pid = self.begin_one(url, journal)
        if at_work:
            self.await_call(journal)
        SystemClock().wait(after_ms)
        self.end_one(pid)

    def _hear(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()
