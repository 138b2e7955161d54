"""What the tests of worktrees share beside their fixtures."""

from __future__ import annotations

import os
from pathlib import Path


def nobody(directory: Path) -> tuple[str, ...]:
    """Nobody is inside of any directory."""
    return ()


def bury(top: Path) -> None:
    """Put a file so deep below `top` that its path can't be opened: root is kept out by nothing else."""
    handle = os.open(top, os.O_RDONLY)
    for name in ("deep", *["x" * 250] * 20):
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(os.open("work", os.O_WRONLY | os.O_CREAT, dir_fd=handle))
    os.close(handle)


def break_ref(common_dir: Path, ref: str, left: bytes = b"") -> None:
    """Leave of a loose reference what a power cut leaves."""
    place = common_dir / ref
    assert place.is_file()
    place.write_bytes(left)
