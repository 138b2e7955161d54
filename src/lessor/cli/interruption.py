"""The signals that end a command: each is taken as Ctrl-C is, and has an exit code of its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_TAKEN = (signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """What interrupted a command; Ctrl-C unless another signal was heard."""

    def __init__(self) -> None:
        self._number = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """128 and the signal's number, as a shell says it of a process that it killed."""
        return 128 + self._number

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGTERM and a closed terminal as Ctrl-C for the block; the main thread's.

        What was begun is given back, git is stopped, and what is temporary is deleted: a process that
        dies of a signal leaves all of that. A signal that was ignored stays so: `nohup` asked for that.
        """
        taken = [number for number in _TAKEN if signal.getsignal(number) is signal.SIG_DFL]
        for number in taken:
            signal.signal(number, self._hear)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, signal.SIG_DFL)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        # A terminal that closes is told of twice, a service's end as both: no second one breaks off
        # what the first one began.
        if self._number is signal.SIGINT:
            self._number = signal.Signals(number)
            raise KeyboardInterrupt
