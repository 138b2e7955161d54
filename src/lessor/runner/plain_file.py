"""Reading what lies where an agent can write: only a plain file is opened.

A link could lead anywhere, and opening a pipe would wait for ever. It is judged by the handle, so that
nothing can be put in its place between the look and the opening.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_plain(path: str | Path) -> int | None:
    """A handle for reading `path`; None where no plain file is there that can be opened."""
    try:
        handle = os.open(path, _FLAGS)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    return None


def is_plain(path: Path) -> bool:
    """Whether a plain file is there; what a link leads to is none."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
