"""Reflogs, read from git's files: where a branch or a worktree's HEAD was, and by which command."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

HANDED_ON = "lessor: the branch was handed on"
"""What HEAD's reflog says of the moment when a branch was taken off it."""
LABELLED = "lessor: label"
"""And of the moment when commits that lacked the label were made anew with it."""

BEGUN = ""
"""And of what a new worktree begins on, which was there before."""

_LINE = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*(?:\t(.*))?")


@dataclass(frozen=True, slots=True)
class Move:
    """One entry: the commits before and after, and what git noted; None stands for no commit."""

    old: str | None
    new: str | None
    note: str

    @property
    def begins(self) -> bool:
        """Whether it is a new worktree's first."""
        return self.old is None and self.note == BEGUN


def is_reftable(git_dir: Path) -> bool:
    """Whether a git directory keeps its references and reflogs in tables (git 2.45 on), not in files."""
    return (git_dir / "reftable").is_dir()


def read_reflog(path: Path) -> list[Move] | None:
    """The moves that a reflog holds, oldest first; None when there is no such file.

    A repository with the reftable format has none.

    Raises:
        OSError: There is one that can't be read.
    """
    try:
        text = os.fsdecode(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    found = (_LINE.fullmatch(line) for line in text.split("\n"))
    return [Move(_oid(match[1]), _oid(match[2]), match[3] or "") for match in found if match]


def _oid(text: str) -> str | None:
    return text if text.strip("0") else None
