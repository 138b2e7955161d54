"""Signals that end a drill, and the part of it that none of them cuts short."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Take SIGTERM and a closed terminal as Ctrl-C: what was made is taken away all the same."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled((signal.SIGTERM, signal.SIGHUP), interrupt):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no signal cut the taking away short."""
    with _handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), signal.SIG_IGN):
        yield


@contextmanager
def _handled(numbers: tuple[signal.Signals, ...], how: Any) -> Iterator[None]:
    before = {number: signal.signal(number, how) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
