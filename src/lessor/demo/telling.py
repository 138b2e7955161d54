"""The demo as lines on a terminal: when, which task, who, what."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TextIO

from lessor.clock import Clock
from lessor.model.task import Task
from lessor.model.waiting import Cause
from lessor.runner.noting import Note, NoteKind
from lessor.service.lessor import Lessor

_WORDS = {
    NoteKind.STARTED: "works",
    NoteKind.ADOPTED: "",
    NoteKind.INHERITED: "",
    NoteKind.STACKED: "",
    NoteKind.WIDENED: "",
    NoteKind.HELD: "refused:",
    NoteKind.CHECK_FAILED: "check failed:",
    NoteKind.SENT_BACK: "sent back:",
    NoteKind.VERIFIED: "verified",
    NoteKind.UNVERIFIED: "done, unverified",
    NoteKind.KILLED: "",
    NoteKind.SALVAGED: "",
    NoteKind.ASKED: "needs you:",
    NoteKind.LOST: "",
    NoteKind.FAILED: "failed:",
}
_WIDTH = 27
_LONGEST = 80


class Teller:
    """Prints notes as they come; safe to call from several threads."""

    def __init__(self, out: TextIO, clock: Clock) -> None:
        self._out = out
        self._clock = clock
        self._started = clock.boottime_ms()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def end(self) -> None:
        """Say nothing more about waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def begin(self, lessor: Lessor, tasks: Sequence[str], *, workers: int) -> None:
        """Say what is queued, and what waits for what once the first leases are out."""
        self._print(f" {len(tasks)} tasks queued · {workers} workers")
        self._timer = threading.Timer(2, self.say_waits, (lessor, tasks))
        self._timer.start()

    def note(self, note: Note) -> None:
        """Print a note that people care for."""
        word = _WORDS.get(note.kind)
        if word is None:
            return
        text = f"{word} {note.text}".strip()
        if note.kind is NoteKind.VERIFIED:
            text = word
        elif note.kind is NoteKind.STARTED:
            text = f"{note.agent} works, epoch {note.epoch}"
        elif note.kind is NoteKind.LOST:
            text = "its late writes were REFUSED, its work kept"
        self._line(note.number, note.title, text)

    def told(self, text: str, note: Note) -> None:
        """Print what the saboteur did."""
        self._line(note.number, note.title, f"** {text} **")

    def landed(self, task: Task, came: str, text: str) -> None:
        """Print what came of landing a result."""
        self._line(
            task.number, task.title, "landed on main" if came == "landed" else f"{came}: {text}"
        )

    def say_waits(self, lessor: Lessor, tasks: Sequence[str]) -> None:
        """Say of each task that waits what it waits for."""
        for task in tasks:
            why = lessor.tasks.why(task)
            if why.cause is Cause.SHADOW:
                known = lessor.tasks.task(task)
                self._line(known.number, known.title, "waits for results to land")
            elif why.cause in {Cause.LEASE, Cause.TASKS, Cause.RESERVATION}:
                held = ", ".join(sorted({theirs for _, theirs in why.overlaps})[:2])
                known = lessor.tasks.task(task)
                who = (
                    f"#{why.holder.number} ({held})"
                    if why.holder
                    else why.sentence.partition("waits for ")[2].partition(" (")[0]
                )
                self._line(known.number, known.title, f"waits for {who}")

    def _line(self, number: int, title: str, text: str) -> None:
        seconds = (self._clock.boottime_ms() - self._started) // 1000
        head = f" {seconds // 60}:{seconds % 60:02d}  #{number:<2} {_cut(_plain(title), _WIDTH):<{_WIDTH}} "
        self._print(head + _cut(_plain(text), _LONGEST - len(head)))

    def _print(self, line: str) -> None:
        with self._lock:
            self._out.write(line + "\n")
            self._out.flush()


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
