"""Phrases that many commands end or begin with."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.cli.output import columns
from lessor.cli.text import Line, Piece, Tone, fit, shown, width
from lessor.cli.times import clock_time
from lessor.model.waiting import Why

_MOST_PATHS = 2


def next_lines(steps: Sequence[str]) -> list[Line]:
    """The last line of what people see: the next command."""
    return [[Piece("next  ", Tone.FAINT), Piece("     ".join(steps), Tone.STRONG)]]


def title_line(number: int, title: str, after: Piece | str = "") -> Line:
    """A task's number and title, cut to the line's width; `after` is kept whole."""
    end = after if isinstance(after, Piece) else Piece(after)
    head = f"#{number} "
    gap = "  " if end.text else ""
    room = columns() - width(head) - width(gap + end.text)
    return [Piece(head, Tone.STRONG), fit(shown(title), room), gap, end]


def paths_text(paths: Sequence[str]) -> str:
    """A lease's paths in few words."""
    if not paths:
        return "grows"
    rest = len(paths) - _MOST_PATHS
    return ", ".join(paths[:_MOST_PATHS]) + (f", +{rest}" if rest > 0 else "")


def reason_text(why: Why, *, now: int) -> str:
    """Why a task waits, without its number in front."""
    if why.cause == "time" and why.at_ms is not None:
        return f"starts at {clock_time(why.at_ms, now=now)} at the earliest"
    return why.sentence.removeprefix(f"#{why.number} ")
