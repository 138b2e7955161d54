"""Asking the store again while it doesn't answer: a busy or lost store spends nobody's attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lessor.errors import BusyError, StoreUnavailableError
from lessor.model.lease import SECOND
from lessor.runner.desk import Desk

FIRST_PAUSE_MS = 200
LONGEST_PAUSE_MS = 5 * SECOND

T = TypeVar("T")


def answered(desk: Desk, call: Callable[[], T], *, within_ms: int | None = None) -> T:
    """What `call` returns, tried again until the store answers it; a refusal is an answer.

    Args:
        call: something that the store may get twice.
        within_ms: how long to try; else a lease's term, after which the lease would be over anyway.

    Raises:
        StoreUnavailableError, BusyError: nobody answered all the while.
    """
    patience = desk.options.terms.ttl_ms if within_ms is None else within_ms
    until = desk.clock.boottime_ms() + patience
    pause = FIRST_PAUSE_MS
    while True:
        try:
            return call()
        except (StoreUnavailableError, BusyError):
            if desk.clock.boottime_ms() >= until:
                raise
        desk.clock.wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE_MS)
