"""Merges that are tried and thrown away, in memory and a directory of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.git.command import CHECKOUT_TIMEOUT_S, run_git
from lessor.git.quoting import c_quoted
from lessor.git.understood import understood

_CLEAN = "1"

# Thousands of small files that nobody reads again: on a disk that others use, waiting for it took
# twice as long as the merges. Linux keeps this one in memory; elsewhere there is none.
_MEMORY = Path("/dev/shm")  # noqa: S108 - each try makes a directory of its own inside
_ROOM = 1 << 30


@dataclass(frozen=True, slots=True)
class Tried:
    """What a merge came to: whether it was clean, and the tree that it would make."""

    clean: bool
    tree: str


def try_merges(common_dir: Path, pairs: Sequence[tuple[str, str]]) -> list[Tried]:
    """Merge each pair of commits, the second into the first, in one git process.

    `merge-tree` writes the objects of its merges (26 MB for 3,800 branches of one repository when
    measured); they go to a directory that is deleted again.

    Raises:
        GitError: A commit or file is missing.
    """
    if not pairs:
        return []
    objects = common_dir.absolute() / "objects"
    with tempfile.TemporaryDirectory(prefix="lessor-trial-", dir=_place()) as scratch:
        said = run_git(
            [
                *("-c", "core.fsync=none", "-c", "core.looseCompression=0"),
                *("merge-tree", "--write-tree", "--stdin", "--no-messages", "--name-only"),
                "--allow-unrelated-histories",
            ],
            cwd=common_dir,
            git_dir=common_dir,
            input="".join(f"{into} {tip}\n" for into, tip in pairs).encode(),
            env={
                "GIT_OBJECT_DIRECTORY": scratch,
                # The variable is a list with colons, in which a name may be quoted.
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": c_quoted(objects).decode(),
            },
            timeout_s=CHECKOUT_TIMEOUT_S,
        )
    return [Tried(clean=status == _CLEAN, tree=tree) for status, tree in _results(said.out)]


def _place() -> Path | None:
    """The file system in memory where it has room to spare; None for the usual place."""
    try:
        room = os.statvfs(_MEMORY)
    except OSError:
        return None
    free = room.f_bavail * room.f_frsize
    return _MEMORY if free > _ROOM and os.access(_MEMORY, os.W_OK | os.X_OK) else None


def _results(out: bytes) -> Iterator[tuple[str, str]]:
    """Status and tree of each record; names of conflicted files follow, an empty field ends it."""
    fields = iter(out.split(b"\0"))
    for status in fields:
        if not status:
            return
        with understood("a merge that was tried"):
            said = status.decode(), next(fields).decode()
        yield said
        while next(fields, b""):
            pass
