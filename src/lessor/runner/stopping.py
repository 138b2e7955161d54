"""A person's wish to stop: once drains, twice stops and keeps everything."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOP = 2


class Stopping:
    """Whether to claim no more, and whether to stop what runs.

    Args:
        on_drain: told once, in the thread that asks; in the main thread for a signal.
    """

    def __init__(self, *, on_drain: Callable[[], None] | None = None) -> None:
        self._wishes = 0
        self._ended = False
        self._woken = threading.Event()
        self._on_drain = on_drain

    @property
    def draining(self) -> bool:
        """Claim nothing more."""
        return self._ended or self._wishes >= 1

    @property
    def asked(self) -> bool:
        """A person asked to stop; the run's own end doesn't count."""
        return self._wishes >= 1

    @property
    def now(self) -> bool:
        """End the agents, keep everything."""
        return self._wishes >= _STOP

    def insistence(self) -> int:
        """How often a person asked to stop what runs: who asks once more doesn't want to wait for git either."""
        return max(0, self._wishes - _STOP + 1)

    def ask(self) -> None:
        """Ask once more, in a person's name."""
        # No lock: a signal's handler may interrupt this very method.
        self._wishes += 1
        self._woken.set()
        if self._wishes == 1 and self._on_drain is not None:
            self._on_drain()

    def drain(self) -> None:
        """Claim nothing more, because the run can't go on; nobody has wished to stop what runs."""
        self._ended = True
        self._woken.set()

    def wait(self, milliseconds: int) -> None:
        """Wait for that long, or until the run drains."""
        self._woken.wait(milliseconds / 1000)

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Take Ctrl-C, SIGTERM and a closed terminal as wishes for the block; the main thread's.

        A SIGHUP that was ignored stays so: `nohup` asked for that.
        """

        def wish(_number: int, _frame: FrameType | None) -> None:
            self.ask()

        wanted = [
            number
            for number in _SIGNALS
            if not (number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN)
        ]
        before = {number: signal.signal(number, wish) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                # None is a handler that wasn't set from Python; it can't be put back from here.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
