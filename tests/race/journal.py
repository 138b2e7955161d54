"""What a process asked and was told, line by line: its death loses nothing of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any, TypeVar

from lessor.errors import LessorError
from lessor.service.lessor import Lessor

T = TypeVar("T")
LOST = frozenset({"store_unavailable", "busy"})
"""Codes that leave open whether a write was made."""


class Journal:
    """One file for one process. A call's line is written before it begins, its answer's after it."""

    def __init__(self, path: Path, lessor: Lessor, *, worker: int) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._calls = 0
        began = monotonic_ns()
        now = lessor.now_ms()
        self._write(worker=worker, store_ms=now, from_ns=began, to_ns=monotonic_ns())

    def call(
        self,
        op: str,
        asked: dict[str, Any],
        action: Callable[[], T],
        told: Callable[[T], dict[str, Any]],
    ) -> T | LessorError:
        """Do it, written down before and after; a refusal is returned, anything else goes up.

        Args:
            asked: what the checker has to know of the question.
            told: what it has to know of the answer.
        """
        self._calls += 1
        number = self._calls
        self._write(i=number, op=op, asked=asked, t=monotonic_ns())
        try:
            answer = action()
        except LessorError as error:
            at = monotonic_ns()
            self._write(i=number, no=error.code, said=str(error), t=at)
            return error
        at = monotonic_ns()
        self._write(i=number, ok=told(answer), t=at)
        return answer

    def _write(self, **line: Any) -> None:
        os.write(self._fd, json.dumps(line).encode() + b"\n")
        os.fsync(self._fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call and what came of it.

    Attributes:
        at_ns: CLOCK_MONOTONIC before the call.
        done_ns: after it; None where the process died within.
        earliest_ms: the least that the store's clock can have read at `at_ns`.
        ok: the answer; None where it was refused or none came.
        no: the code of the refusal.
    """

    worker: int
    op: str
    asked: dict[str, Any]
    at_ns: int
    done_ns: int | None
    earliest_ms: float
    ok: dict[str, Any] | None
    no: str | None
    said: str

    @property
    def is_open(self) -> bool:
        """Whether the write may have been made although nobody was told so."""
        return self.ok is None and (self.no is None or self.no in LOST)


def read_calls(path: Path) -> list[Call]:
    """The calls of one journal, in order; a line that the process died in counts as not written."""
    lines = [json.loads(text) for text in path.read_bytes().splitlines() if text.endswith(b"}")]
    if not lines:
        return []
    begin = lines[0]
    answers = {line["i"]: line for line in lines[1:] if "op" not in line}
    calls = []
    for line in lines[1:]:
        if "op" in line:
            answer = answers.get(line["i"], {})
            calls.append(
                Call(
                    worker=begin["worker"],
                    op=line["op"],
                    asked=line["asked"],
                    at_ns=line["t"],
                    done_ns=answer.get("t"),
                    earliest_ms=begin["store_ms"] + (line["t"] - begin["to_ns"]) / 1e6,
                    ok=answer.get("ok"),
                    no=answer.get("no"),
                    said=answer.get("said", ""),
                )
            )
    return calls
