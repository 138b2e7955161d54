"""A person's wish to stop: once drains, twice stops and keeps everything."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopping:
    """Whether to claim no more, and whether to stop what runs."""

    def __init__(self, *, on_drain: Callable[[], None] | None = None) -> None:
        self._wishes = 0
        self._woken = threading.Event()
        self._on_drain = on_drain

    @property
    def draining(self) -> bool:
        """Claim nothing more."""
        return self._wishes >= 1

    @property
    def now(self) -> bool:
        """End the agents, keep everything."""
        return self._wishes >= 2  # noqa: PLR2004 - the second wish

    def ask(self) -> None:
        """Ask once more."""
        self._wishes += 1
        self._woken.set()
        if self._wishes == 1 and self._on_drain is not None:
            self._on_drain()

    def wait(self, milliseconds: int) -> None:
        """Wait until somebody asks for the first time, or for that long."""
        self._woken.wait(milliseconds / 1000)

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Take Ctrl-C, SIGTERM and a closed terminal as wishes for the block."""

        def wish(_number: int, _frame: FrameType | None) -> None:
            self.ask()

        before = {number: signal.signal(number, wish) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
