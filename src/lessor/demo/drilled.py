"""A drill's steps, and the process that it pauses."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lessor.clock import Clock
from lessor.runner.process import send_signal, start_detached
from lessor.runner.proctable import descendants, process_table

PATIENCE_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a drill and what it showed.

    Attributes:
        passed: None where it only tells something.
    """

    text: str
    passed: bool | None
    detail: str = ""


class DrilledWorker:
    """A worker in a process of its own, which is told lines and says lines of JSON.

    Args:
        words: the file that it writes to.
    """

    def __init__(
        self, module: str, arguments: Sequence[str], *, store_url: str, words: Path, clock: Clock
    ) -> None:
        self._words = words
        self._clock = clock
        # A store's URL may hold a password, and arguments are everybody's to read.
        self._process = start_detached(
            [sys.executable, "-P", "-m", module, *arguments],
            env={**os.environ, "LESSOR_STORE": store_url},
            errors=str(words),
        )
        # A drill that is killed would leave a stopped worker, and a stopped git, for ever.
        self._watch = start_detached(
            [sys.executable, "-P", "-m", "lessor.demo.drill_watch", str(self._process.pid)],
            env=os.environ,
            errors=str(words.with_suffix(".watch")),
        )

    def pause(self) -> None:
        """Stop it with SIGSTOP."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self._process.pid, signal.SIGCONT)

    def say(self, line: str) -> None:
        """Tell it a line."""
        self._process.say(line)

    def heard(self, *whats: str, after: int = 0) -> dict[str, Any] | None:
        """What it said of one of `whats`, `after` so many before; None when it says nothing for long."""
        until = self._clock.boottime_ms() + PATIENCE_MS
        while self._clock.boottime_ms() < until:
            found = [line for line in self.lines() if line["what"] in whats]
            if len(found) > after:
                return found[after]
            self._clock.wait(20)
        return None

    def lines(self) -> Iterator[dict[str, Any]]:
        """Everything that it has said."""
        if self._words.exists():
            for line in self._words.read_text(encoding="utf-8").splitlines():
                if line.startswith("{") and line.endswith("}"):
                    yield json.loads(line)

    def end(self) -> None:
        """End it: what it started is killed, stopped or not, before it can go on."""
        for row in descendants(self._process.pid, process_table()):
            send_signal(row, signal.SIGKILL)
        if self._process.status() is None:
            self.resume()
        self._process.hang_up()
        until = self._clock.boottime_ms() + PATIENCE_MS
        while self._process.status() is None and self._clock.boottime_ms() < until:
            self._clock.wait(20)
        if self._process.status() is None:
            self._process.kill()
        self._watch.hang_up()
        while self._watch.status() is None and self._clock.boottime_ms() < until:
            self._clock.wait(20)
