"""A run's notes as they come: lines of a terminal, or JSON for programs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from lessor.cli.invocation import Invocation
from lessor.cli.output import write_json, write_lines
from lessor.cli.text import Line, Piece, Tone, fit, pad, shown, width, wrap
from lessor.runner.noting import Note, NoteKind

if TYPE_CHECKING:
    from lessor.clock import Clock

_TITLE = 26
_SHORTEST_TITLE = 12
_AGENT = 14
_ROOM = 30
_NARROW = 70
_NARROWEST = 24
_MOST_LINES = 3
_MOST_OF_A_WISH = 8  # it ends with the command that helps
_WORDS: Mapping[NoteKind, str] = {
    NoteKind.FOUND: "",
    NoteKind.ADOPTED: "",
    NoteKind.INHERITED: "",
    NoteKind.STACKED: "",
    NoteKind.QUIET: "",
    NoteKind.LIMIT: "",
    NoteKind.WIDENED: "",
    NoteKind.KILLED: "",
    NoteKind.SALVAGED: "",
    NoteKind.DRAINING: "",
    NoteKind.STARTED: "agent started",
    NoteKind.MOVED: "there is progress again",
    NoteKind.ENDED: "agent finished:",
    NoteKind.CHECKING: "checking:",
    NoteKind.HELD: "held:",
    NoteKind.CHECK_FAILED: "check failed:",
    NoteKind.SENT_BACK: "sent back:",
    NoteKind.ASKED: "needs you:",
    NoteKind.FAILED: "failed:",
    NoteKind.AGAIN: "tried again",
    NoteKind.LOST: "lost:",
    NoteKind.STOPPED: "given back:",
}
_TONES = {
    NoteKind.VERIFIED: Tone.GOOD,
    NoteKind.UNVERIFIED: Tone.GOOD,
    NoteKind.PUSHED: Tone.GOOD,
    NoteKind.NOT_PUSHED: Tone.WARN,
    NoteKind.ASKED: Tone.WARN,
    NoteKind.QUIET: Tone.WARN,
    NoteKind.HELD: Tone.WARN,
    NoteKind.CHECK_FAILED: Tone.WARN,
    NoteKind.SENT_BACK: Tone.WARN,
    NoteKind.FAILED: Tone.BAD,
    NoteKind.LOST: Tone.BAD,
    NoteKind.KILLED: Tone.BAD,
    NoteKind.LIMIT: Tone.BAD,
}
_SILENT = frozenset({NoteKind.PREPARED, NoteKind.KEPT})
_FOR_A_PERSON = frozenset({NoteKind.ASKED, NoteKind.LOST})
# What a person may have to act on is told in full, as far as a few lines go.
_IN_FULL = frozenset(
    {
        *(NoteKind.HELD, NoteKind.CHECK_FAILED, NoteKind.SENT_BACK, NoteKind.ASKED),
        *(NoteKind.FAILED, NoteKind.LOST, NoteKind.STOPPED, NoteKind.DRAINING),
        NoteKind.NOT_PUSHED,
    }
)


class LineReporter:
    """Shows notes; a terminal that was closed stops the lines and nothing else."""

    def __init__(self, invocation: Invocation, *, workers: int, alone: bool, own: str = "") -> None:
        """Begin to count the time.

        Args:
            workers: of several, each line says whose it is.
            alone: there is one task only, which was named before.
            own: its id; what is found of others is told with their numbers.
        """
        self._people = invocation.for_people
        self._columns = invocation.columns
        self._clock: Clock = invocation.clock
        self._started = self._clock.boottime_ms()
        self._workers = workers
        self._alone = alone
        self._own = own
        self._lock = threading.Lock()

    def note(self, note: Note) -> None:
        """Show a note."""
        with self._lock, suppress(OSError, ValueError):
            if not self._people:
                write_json({**asdict(note), "kind": note.kind.value}, indent=None)
            elif note.kind not in _SILENT:
                write_lines(self._lines(note))
                if note.kind in _FOR_A_PERSON:
                    ring(f"#{note.number} {note.kind}")

    def _lines(self, note: Note) -> list[Line]:
        head = self._head(note)
        room = max(self._columns - width(head), _NARROWEST)
        text = shown(_text(note))
        parts = wrap(text, room) if note.kind in _IN_FULL else [fit(text, room)]
        most = _MOST_OF_A_WISH if note.kind in _FOR_A_PERSON else _MOST_LINES
        if len(parts) > most:
            last = fit(f"{parts[most - 1]} {parts[most]}", room)
            parts = [*parts[: most - 1], last if last.endswith("…") else f"{last[:-1]}…"]
        tone = _TONES.get(note.kind, Tone.PLAIN)
        return [
            [head if n == 0 else " " * width(head), Piece(part, tone)]
            for n, part in enumerate(parts)
        ]

    def _head(self, note: Note) -> str:
        seconds = (self._clock.boottime_ms() - self._started) // 1000
        head = f" {seconds // 60:>2}:{seconds % 60:02d}  "
        if not note.number or (self._alone and note.task in {"", self._own or note.task}):
            return head
        agent = self._agent_cell(note.agent)
        free = self._columns - width(head) - width(agent) - 2 - _ROOM
        title = max(_SHORTEST_TITLE, min(_TITLE, free))
        return head + pad(f"#{note.number} {shown(note.title)}", title) + "  " + agent

    def _agent_cell(self, name: str) -> str:
        """Which of several agents it is, in a column that is as wide as they are; none on a narrow terminal."""
        if self._workers == 1 or self._columns < _NARROW or not name:
            return ""
        kind, dash, number = name.rpartition("-")
        if not dash:  # no slot of this run's
            return fit(shown(name), _AGENT) + "  "
        wide = min(len(kind) + 1 + len(str(self._workers)), _AGENT)
        short = f"{fit(shown(kind), wide - len(number) - 1)}-{number}"
        return pad(short, wide) + "  "


def ring(text: str) -> None:
    """BEL and OSC 9 on a terminal: only when a person is needed or all is done."""
    if sys.stdout.isatty():
        with suppress(OSError, ValueError):
            sys.stdout.write(f"\a\x1b]9;lessor: {shown(text)}\a")
            sys.stdout.flush()


def _text(note: Note) -> str:
    """What a note says, on one line."""
    lines = [line.strip() for line in note.text.splitlines() if line.strip()]
    # An agent's last line is its result; anything else begins with what matters.
    said = "" if not lines else lines[-1 if note.kind is NoteKind.ENDED else 0]
    if note.kind is NoteKind.CLAIMED and said == "grows":
        return "claimed, its paths grow"
    word = _WORDS.get(note.kind, note.kind.value)
    return f"{word} {said}".strip() if said else word.rstrip(":")
