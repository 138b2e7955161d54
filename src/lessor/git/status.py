"""`git status` as a record: what differs, what is new, what is ignored."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import WorktreeError
from lessor.git.layout import Layout
from lessor.git.understood import understood

_SUBMODULE = "S"
_NAMED = 200
# Git cuts a message at 4 KB, and with it the end of a long name.
_UNREAD = re.compile(r"^warning: could not open directory '(.*?)(?:': .*)?$", re.MULTILINE)

# Fields before the path in a record of porcelain v2, by the record's first letter.
_FIELDS = {"1": 8, "u": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A tracked path that differs between HEAD, index and work tree."""

    path: str
    conflicted: bool
    submodule: str

    @property
    def is_submodule(self) -> bool:
        """Whether the path is a submodule; `submodule` then says what changed in it."""
        return self.submodule.startswith(_SUBMODULE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One look at a work tree; paths are relative to its top, bytes beyond UTF-8 as surrogates.

    `head` is None before the first commit and `branch` on a detached HEAD. An untracked path that
    ends with a slash is a repository of its own, an ignored one is any directory that is ignored
    whole. `unread` are directories that git couldn't open: what is in them, nobody knows.
    """

    head: str | None
    branch: str | None
    changed: tuple[Change, ...]
    untracked: tuple[str, ...]
    ignored: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def conflicted(self) -> tuple[str, ...]:
        """The paths with an unresolved merge."""
        return tuple(change.path for change in self.changed if change.conflicted)


def read_status(layout: Layout) -> Status:
    """Look at a work tree without writing its index, whatever its configuration hides.

    `status.showUntrackedFiles=no`, `ignore = all` of a submodule and `core.ignoreCase` are shared
    configuration that one agent can set for all; renames are read as their two sides.

    Raises:
        GitError: Git couldn't look.
    """
    said = layout.git(
        [
            # An edit of the same length with its old time put back shows in the time of the change.
            *("-c", "core.trustctime=true", "-c", "core.checkStat=default"),
            *_telling_case_apart(layout.path),
            *("status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all"),
            *("--ignored=matching", "--no-renames", "--ignore-submodules=none"),
        ]
    )
    headers: dict[str, str] = {}
    changed: list[Change] = []
    untracked: list[str] = []
    ignored: list[str] = []
    with understood("the work tree's status"):
        for kind, rest in _records(said.out):
            if kind == "#":
                name, _, value = rest.partition(" ")
                headers[name] = value
            elif kind == "?":
                untracked.append(rest)
            elif kind == "!":
                ignored.append(rest)
            else:
                changed.append(_change(kind, rest))
        oid, branch = headers["branch.oid"], headers["branch.head"]
    return Status(
        head=None if oid == "(initial)" else oid,
        branch=None if branch == "(detached)" else branch,
        changed=tuple(changed),
        untracked=tuple(untracked),
        ignored=tuple(ignored),
        # Git only warns of them, and ends well (2.39).
        unread=tuple(_UNREAD.findall(os.fsdecode(said.err))),
    )


def refuse_unread(layout: Layout, status: Status) -> None:
    """Refuse to go by a look that left something out.

    Raises:
        WorktreeError: Git couldn't open a directory; the message names it.
    """
    if status.unread:
        named = status.unread[0]
        raise WorktreeError(
            f"{layout.path / named[:_NAMED]} can't be opened, so nobody knows what is in it.",
            next_step=_to_read(layout.path),
            path=str(layout.path),
        )


def unreadable(top: Path, refused: OSError) -> WorktreeError:
    """The error for a path of the work tree at `top` that the system doesn't let one look at."""
    return WorktreeError(
        f"{str(refused.filename or top)[: len(str(top)) + _NAMED]} can't be read: {refused.strerror}.",
        next_step=_to_read(top),
        path=str(top),
    )


def _to_read(top: Path) -> str:
    return f"Make it yours to read: chmod -R u+rwX {shlex.quote(str(top))}"


def _telling_case_apart(top: Path) -> tuple[str, ...]:
    """Where the file system does, git has to: `core.ignoreCase` hides `readme` beside `README`."""
    other = top / ".GIT"
    is_one = other.exists() and other.samefile(top / ".git")
    return () if is_one else ("-c", "core.ignoreCase=false")


def _records(out: bytes) -> Iterator[tuple[str, str]]:
    for record in out.split(b"\0"):
        if record:
            kind, _, rest = os.fsdecode(record).partition(" ")
            yield kind, rest


def _change(kind: str, rest: str) -> Change:
    fields = rest.split(" ", _FIELDS[kind] - 1)
    return Change(path=fields[-1], conflicted=kind == "u", submodule=fields[1])
