"""Phrases that many commands end or begin with."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.cli.output import columns
from lessor.cli.text import Line, Piece, Tone, fit, shown, width
from lessor.cli.times import clock_time, lapse
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


def bytes_text(size: int) -> str:
    """A size as people read it: `812 B`, `1.2 MB`."""
    if size < 1_000:  # noqa: PLR2004
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB"):
        value /= 1_000
        if value < 1_000:  # noqa: PLR2004
            return f"{value:.1f} {unit}"
    return f"{value / 1_000:.1f} TB"


def paths_text(paths: Sequence[str]) -> str:
    """A lease's paths in few words."""
    if not paths:
        return "grows"
    rest = len(paths) - _MOST_PATHS
    return ", ".join(paths[:_MOST_PATHS]) + (f", +{rest}" if rest > 0 else "")


def reason_text(why: Why, *, now: int, brief: bool = False) -> str:
    """Why a task is where it is, without its number in front.

    Args:
        brief: for a list of tasks that wait: without that word, and without the holder's title.
    """
    moment = "" if why.at_ms is None else clock_time(why.at_ms, now=now)
    holder = why.holder
    match why.cause:
        case "time":
            return f"from {moment}" if brief else f"starts at {moment} at the earliest"
        case "running" if holder is not None:
            left = max(0, holder.ends_ms - now)
            return f"{holder.agent} works on it; {lapse(left)} left unless renewed"
        case "shadow" if holder is not None:
            title = "" if brief else f" {holder.title}"
            paths = paths_text(holder.paths)
            said = f"waits for the result of #{holder.number}{title} to land ({paths})"
        case "lease" | "reservation" | "hold" if holder is not None:
            turn = "; its turn is reserved" if why.reserved else ""
            who = ", ".join(part for part in (paths_text(holder.paths), holder.agent) if part)
            title = "" if brief else f" {holder.title}"
            said = f"waits for #{holder.number}{title} ({who}){turn}"
        case _:
            said = why.sentence.removeprefix(f"#{why.number} ")
    return said.removeprefix("waits ") if brief else said
