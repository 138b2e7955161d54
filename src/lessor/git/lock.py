"""A lock between processes of one machine, held on a file that stays."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lessor.clock import Clock, SystemClock
from lessor.errors import BusyError, GitError

_RETRY_MS = 20


@contextmanager
def file_lock(path: Path, *, wait_ms: int, clock: Clock | None = None) -> Iterator[None]:
    """Hold the lock on `path` for the block; the kernel frees it when the process dies.

    The file is never deleted: a lock on a deleted file excludes nobody.

    Raises:
        BusyError: Another process held it for `wait_ms`.
        GitError: The file can't be made.
    """
    clock = clock or SystemClock()
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as refused:
        raise GitError(
            f"The lock {path} can't be opened: {refused.strerror}.", path=str(path)
        ) from refused
    try:
        _acquire(handle, path, deadline_ms=clock.boottime_ms() + wait_ms, clock=clock)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, path: Path, *, deadline_ms: int, clock: Clock) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock.boottime_ms() >= deadline_ms:
                raise BusyError(
                    f"Another process holds {path}.",
                    next_step="Try again.",
                    path=str(path),
                    retry_ms=_RETRY_MS,
                ) from None
            clock.wait(_RETRY_MS)
        else:
            return
