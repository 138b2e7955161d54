"""A loop that does one thing at an interval, and can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable


class PeriodicLoop:
    """Calls `once` every `interval_ms` in a thread of its own until it is stopped.

    Args:
        once: the work; what it raises ends the loop and is raised again by `stop`.
        interval_ms: counted from the end of one call to the start of the next.
    """

    def __init__(self, once: Callable[[], object], *, interval_ms: int, name: str) -> None:
        self._once = once
        self._interval_ms = interval_ms
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin with a first call at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the call that is under way; raises what ended the loop, if anything did."""
        self._stopped.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._once()
                self._stopped.wait(self._interval_ms / 1000)
        except BaseException as error:  # noqa: BLE001 - the thread's outermost line; stop() raises it
            self._error = error
