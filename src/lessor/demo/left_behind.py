"""The directories of drills on this machine, and which of them belong to a drill that was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = "alive"


@contextmanager
def drill_folder(name: str) -> Iterator[Path]:
    """A fresh directory for the drill called `name`, locked for as long as its process lives."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as made:
        folder = Path(made)
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(handle)


@contextmanager
def killed_drill(name: str) -> Iterator[bool]:
    """Whether the drill called `name` ran on this machine and was killed; then its directory goes.

    One that nothing is known of may be under way on another machine.
    """
    folder = next((one for one in _folders(name)), None)
    handle = None if folder is None else _taken(folder)
    try:
        yield handle is not None
        if handle is not None and folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        if handle is not None:
            os.close(handle)


def _folders(name: str) -> Iterator[Path]:
    for place in Path(tempfile.gettempdir()).glob(f"{name}-*"):
        found = place.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            yield place


def _taken(folder: Path) -> int | None:
    """The lock of a drill that doesn't hold it any more."""
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
