"""What reaches a supervisor: its runner's words, signals, and wake-ups, in one wait."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from types import FrameType

RUNNER_GONE = "runner_gone"
"""The word for the end of the runner's pipe."""

_READ_BYTES = 4096
_LONGEST_WORD = 64
_WAKE = b"\0"  # no signal has the number 0


class Inbox:
    """Reads words, a line each, from a descriptor; SIGTERM is the word "stop".

    Handlers are installed for the signals of a terminal, which they ignore. SIG_IGN wouldn't do:
    the agent would inherit it, and Ctrl-C in what it starts would be dead.
    """

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd
        self._partial = b""
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _heard)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def wake(self) -> None:
        """End the current or the next wait; from any thread."""
        with suppress(BlockingIOError):  # full: it wakes anyway
            os.write(self._wake_write, _WAKE)

    def wait(self, milliseconds: int) -> list[str]:
        """The words that came in, after at most so long; "runner_gone" comes once."""
        sources = [self._wake_read] if self._fd is None else [self._wake_read, self._fd]
        ready, _, _ = select.select(sources, (), (), milliseconds / 1000)
        words = self._signals() if self._wake_read in ready else []
        if self._fd is not None and self._fd in ready:
            words += self._lines(self._fd)
        return words

    def _signals(self) -> list[str]:
        with suppress(BlockingIOError):
            if signal.SIGTERM in os.read(self._wake_read, _READ_BYTES):
                return ["stop"]
        return []

    def _lines(self, fd: int) -> list[str]:
        chunk = os.read(fd, _READ_BYTES)
        if not chunk:
            self._fd = None
            return [RUNNER_GONE]
        *lines, rest = (self._partial + chunk).split(b"\n")
        self._partial = rest[:_LONGEST_WORD]
        return [line[:_LONGEST_WORD].decode(errors="replace").strip() for line in lines]


def _heard(number: int, frame: FrameType | None) -> None:
    """Nothing: the wake-up descriptor has noted the signal."""
