"""What a run says while it works: notes for whoever shows them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class NoteKind(StrEnum):
    """The kinds of notes, in about the order of a run."""

    BASE = "base"
    FOUND = "found"
    CLAIMED = "claimed"
    ADOPTED = "adopted"
    INHERITED = "inherited"
    STACKED = "stacked"
    PREPARED = "prepared"
    STARTED = "started"
    QUIET = "quiet"
    MOVED = "moved"
    LIMIT = "limit"
    WIDENED = "widened"
    HELD = "held"
    ENDED = "ended"
    CHECKING = "checking"
    CHECK_FAILED = "check failed"
    SENT_BACK = "sent back"
    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    PUSHED = "pushed"
    NOT_PUSHED = "not pushed"
    KILLED = "killed"
    FAILED = "failed"
    AGAIN = "again"
    ASKED = "needs you"
    LOST = "lost"
    CANCELLED = "cancelled"
    SALVAGED = "salvaged"
    KEPT = "kept"
    STOPPED = "stopped"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing that happened.

    Attributes:
        number: the task's, or 0 where it is about the run.
        agent: who did it.
        text: for people; may contain text of tasks and agents, which is data.
        pid: the process that it is about, where it is about one.
    """

    kind: NoteKind
    number: int = 0
    title: str = ""
    agent: str = ""
    epoch: int = 0
    text: str = ""
    lease: str = ""
    task: str = ""
    pid: int = 0
    supervisor: int = 0


class Reporter(Protocol):
    """Shows notes; called from several threads."""

    def note(self, note: Note) -> None:
        """Show it, or don't; never raise."""


class Tell(Protocol):
    """Tells about one attempt, whose number, agent and epoch it knows."""

    def __call__(self, kind: NoteKind, text: str = "", /, **more: str | int) -> None:
        """Tell it."""
