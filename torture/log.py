"""What a process asked and was told, line by line, by the clock that all processes of a machine share."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from lessor.errors import LessorError

T = TypeVar("T")
FOR_EVER = 2**62
LOST = frozenset({"store_unavailable", "busy", "outcome_unknown", "remote_unreachable"})
"""Codes that leave open whether the call was carried out."""


def boottime_ns() -> int:
    """CLOCK_BOOTTIME: it counts suspend, and never steps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock)


class Log:
    """One append-only file of one process: a line before each call, a line after it.

    A line is one `write`: what was written before a SIGKILL is in the file. Only a power cut could
    lose it, and this machine has none.
    """

    def __init__(self, path: Path, **begin: Any) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._calls = 0
        self.note(**begin)

    def note(self, **line: Any) -> None:
        """Write down something that is no call."""
        self._write({**line, "t": boottime_ns()})

    def call(
        self,
        op: str,
        asked: dict[str, Any],
        action: Callable[[], T],
        told: Callable[[T], dict[str, Any]],
        *,
        sent: Callable[[], None] = lambda: None,
    ) -> T | LessorError:
        """Do it, written down before and after; a refusal is returned.

        Args:
            told: what the checker has to know of the answer.
            sent: called between the first line and the call.
        """
        self._calls += 1
        number = self._calls
        self._write({"i": number, "op": op, "asked": asked, "t": boottime_ns()})
        sent()
        try:
            answer = action()
        except LessorError as error:
            self._write({"i": number, "no": error.code, "said": str(error), "t": boottime_ns()})
            return error
        done = boottime_ns()
        self._write({"i": number, "ok": told(answer), "t": done})
        return answer

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._fd, json.dumps(line).encode() + b"\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call and what came of it; instants are nanoseconds of CLOCK_BOOTTIME.

    Attributes:
        done: None where the process died within.
        ok: the answer; None where it was refused or none came.
        no: the code of the refusal.
    """

    who: str
    op: str
    asked: dict[str, Any]
    at: int
    done: int | None = None
    ok: dict[str, Any] | None = None
    no: str | None = None
    said: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it may have been carried out although nobody was told so."""
        return self.ok is None and (self.no is None or self.no in LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that was done to somebody."""

    kind: str
    at: int
    until: int
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move of one reference of the remote, out of its reflog, in the reflog's order."""

    ref: str
    old: str
    new: str


@dataclass(slots=True, kw_only=True)
class History:
    """Everything that the checker knows.

    Attributes:
        calls: of all processes.
        faults: what was done.
        moves: the remote's.
        ttl_ms: the term that everybody asks for.
        margin_ms: how much earlier a holder stops.
        last: what the store said of everything when all was over; None where nobody asked.
    """

    calls: list[Call]
    faults: list[Fault] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    ttl_ms: int = 3000
    margin_ms: int = 150
    last: dict[str, Any] | None = None


def read_log(path: Path) -> tuple[list[Call], list[Fault]]:
    """The calls of one process in order, or the faults; a line that it died in was never written."""
    lines = [json.loads(text) for text in path.read_bytes().splitlines() if text.endswith(b"}")]
    answers = {line["i"]: line for line in lines if "i" in line and "op" not in line}
    return list(_calls(path.stem, lines, answers)), list(_faults(lines))


def _calls(
    who: str, lines: Iterable[dict[str, Any]], answers: dict[int, dict[str, Any]]
) -> Iterator[Call]:
    for line in lines:
        if "op" in line:
            answer = answers.get(line["i"], {})
            yield Call(
                who=who,
                op=line["op"],
                asked=line["asked"],
                at=line["t"],
                done=answer.get("t"),
                ok=answer.get("ok"),
                no=answer.get("no"),
                said=answer.get("said", ""),
            )


def _faults(lines: Iterable[dict[str, Any]]) -> Iterator[Fault]:
    for line in lines:
        if "fault" in line:
            yield Fault(
                kind=line["fault"],
                at=line["from"],
                until=line["t"] + line.get("for_ns", 0),
                who=line.get("who", ""),
            )
