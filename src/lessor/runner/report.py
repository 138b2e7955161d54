"""What a supervisor saw, as lines of JSON that outlive it and its runner."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lessor.clock import Clock
from lessor.runner.process import open_log

_READ_BYTES = 65_536


class EventKind(StrEnum):
    """The kinds of events; each with the facts that it carries."""

    STARTED = "started"  # agent, supervisor: identities; cgroup
    FAILED = "failed"  # code, message: the agent was never started
    RENEWED = "renewed"  # version, ttl_ms
    UNANSWERED = "unanswered"  # failures, message: a renewal that nobody answered
    FROZEN = "frozen"  # hold: deadline (it passed here, nobody has refused) | runner (asked)
    THAWED = "thawed"  # hold; the tree goes on when no other is left
    QUIET_WARNING = "quiet_warning"  # quiet_ms, limit_ms
    MOVED = "moved"  # there was progress after a warning
    LIMIT = "limit"  # kind: quiet | total; limit_ms
    CANCELLED = "cancelled"
    LOST = "lost"  # reason; the tree is frozen, and ended when the time to salvage is over
    STOPPING = "stopping"  # reason: stop | kill | asked | cancelled | limit | lost | unanswered
    #                        | runner_gone | left_behind; grace_ms
    SURVIVORS = "survivors"  # pids that SIGKILL doesn't end
    EXITED = "exited"  # code, signal of the agent itself; its whole tree has been waited for
    GONE = "gone"  # proof
    UNPROVEN = "unproven"  # reason: the agent has ended, nobody can tell what it left
    HANDED_OVER = "handed_over"  # version: authority was dropped, nothing is in flight
    RECORDED = "recorded"  # accepted, message: what the store said to the proof
    IGNORED = "ignored"  # command, reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a report.

    Attributes:
        at_ms: wall time, for people.
        facts: what the kind carries.
    """

    kind: EventKind
    at_ms: int
    facts: dict[str, Any]


class ReportWriter:
    """Appends events, each in one write.

    On a full disk it keeps them for the next `flush`: an agent isn't left alone because its
    supervisor couldn't write about it.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self._file = open_log(path)
        self._clock = clock
        self._unwritten = b""

    def append(self, kind: EventKind, /, **facts: Any) -> None:
        """Write an event."""
        line = {"event": kind, "at_ms": self._clock.wall_ms(), **facts}
        self._unwritten += json.dumps(line).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write what couldn't be written before."""
        if not self._unwritten:
            return
        with suppress(OSError):
            written = os.write(self._file.fileno(), self._unwritten)
            self._unwritten = self._unwritten[written:]

    def close(self) -> None:
        """Close the file; events that were never written are lost."""
        self._file.close()


class ReportReader:
    """Reads a report while it grows."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0
        self._partial = b""

    def read_new(self) -> list[Event]:
        """The events that were completed since the last call; none while there is no plain file."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):  # an agent put something else there
                return []
            while chunk := os.pread(fd, _READ_BYTES, self._offset):
                self._offset += len(chunk)
                self._partial += chunk
        finally:
            os.close(fd)
        *lines, self._partial = self._partial.split(b"\n")
        return [event for event in map(_event, lines) if event is not None]


def read_report(path: str) -> list[Event]:
    """All that a supervisor has written so far; empty when there is no report."""
    return ReportReader(path).read_new()


def _event(line: bytes) -> Event | None:
    # A line that a crash cut short, or that a newer Lessor wrote, says nothing; it proves nothing.
    try:
        facts = json.loads(line)
        return Event(kind=EventKind(facts.pop("event")), at_ms=int(facts.pop("at_ms")), facts=facts)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
