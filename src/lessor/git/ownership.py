"""Which worktrees are Lessor's: the lock's reason says so.

Every worktree that Lessor makes stays locked, so that no `git worktree prune` on a machine that
can't see its directory deletes its entry. The reason is `lessor:` and then the label; until it is
made whole, `lessor:making;` stands before the label.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

MARK = "lessor:"
VERIFY = f"{MARK}verify"
"""The whole reason of a worktree that checks run in, and nobody works in."""

_MAKING = f"{MARK}making;"


def lock_reason(git_dir: Path) -> str | None:
    """Why this worktree is locked; None when it isn't, empty when nobody said.

    Raises:
        OSError: There is a lock that can't be read.
    """
    try:
        return os.fsdecode((git_dir / "locked").read_bytes()).strip()
    except FileNotFoundError:
        return None


def is_lessors(reason: str | None) -> bool:
    """Whether a lock's reason is one that Lessor wrote."""
    return reason is not None and reason.startswith(MARK)


def is_half_made(reason: str | None) -> bool:
    """Whether the lock is of a worktree whose making was never finished: nobody was ever in it."""
    return reason is not None and reason.startswith(_MAKING)


def making(reason: str) -> str:
    """`reason` as it stands in the lock until the worktree is made whole."""
    return f"{_MAKING}{reason.removeprefix(MARK)}"


def marked(reason: str) -> str:
    """`reason` as Lessor writes it into a lock."""
    return reason if reason.startswith(MARK) else f"{MARK}{reason}"


def write_lock(git_dir: Path, reason: str) -> None:
    """Lock a worktree with `reason`, in place of whatever it was locked with.

    `git worktree unlock` and `lock` would leave a moment without a lock; gitrepository-layout(5)
    names this file and what it holds.
    """
    handle, name = tempfile.mkstemp(prefix="locked.", dir=git_dir)
    with os.fdopen(handle, "wb") as file:
        file.write(os.fsencode(marked(reason)))
    Path(name).replace(git_dir / "locked")
