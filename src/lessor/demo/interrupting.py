"""The part of a drill that no signal cuts short."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no signal cut the taking away short."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None is a handler that wasn't set from Python; it can't be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
