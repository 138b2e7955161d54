"""Kills one agent and freezes another, by signals alone: what happens to agents every day."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

from lessor.demo.story import FROZEN, KILLED, SCRIPTS
from lessor.runner.noting import Note, NoteKind, Reporter

WORK_FIRST_MS = 1_500
ZOMBIE_S = 4  # long enough for the woken agent to finish and to try to complete


class Saboteur:
    """Watches the notes of a run for its two victims and passes every note on.

    The frozen one is stopped together with its supervisor, as a suspended machine would do it, and
    woken once the next epoch's work was verified: first the agent, which then tries to complete,
    later its supervisor.
    """

    def __init__(self, inner: Reporter, *, told: Callable[[str, Note], None]) -> None:
        self._inner = inner
        self._told = told
        self._titles = {script.key: script.title for script in SCRIPTS}
        self._frozen: Note | None = None
        self._done: set[str] = set()
        self._lock = threading.Lock()

    def note(self, note: Note) -> None:
        """Pass the note on, then strike where it is time."""
        self._inner.note(note)
        first = note.kind is NoteKind.STARTED and note.epoch == 1
        if first and note.title == self._titles[KILLED]:
            self._once("kill", lambda: self._kill(note))
        elif first and note.title == self._titles[FROZEN]:
            self._once("freeze", lambda: self._freeze(note))
        elif note.title == self._titles[FROZEN] and note.epoch > 1 and note.kind in _SETTLED:
            self._once("wake", self._wake)

    def _once(self, what: str, strike: Callable[[], None]) -> None:
        with self._lock:
            if what in self._done:
                return
            self._done.add(what)
        delay = 0 if what == "wake" else WORK_FIRST_MS
        threading.Timer(delay / 1000, strike).start()

    def _kill(self, note: Note) -> None:
        _send(note.pid, signal.SIGKILL)
        self._told("killed with SIGKILL", note)

    def _freeze(self, note: Note) -> None:
        _send(note.supervisor, signal.SIGSTOP)
        _send(note.pid, signal.SIGSTOP)
        self._frozen = note
        self._told("frozen with SIGSTOP", note)

    def _wake(self) -> None:
        if self._frozen is None:
            return
        note = self._frozen
        _send(note.pid, signal.SIGCONT)
        self._told("woke up, goes on as if nothing was", note)
        threading.Timer(ZOMBIE_S, _send, (note.supervisor, signal.SIGCONT)).start()


_SETTLED = frozenset({NoteKind.VERIFIED, NoteKind.FAILED, NoteKind.UNVERIFIED})


def _send(leader: int, number: signal.Signals) -> None:
    """Signal a whole process group; one that has ended meanwhile is fine."""
    with suppress(ProcessLookupError):
        os.killpg(leader, number)
