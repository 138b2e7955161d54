"""Phrases that many commands end or begin with."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.cli.given import as_given
from lessor.cli.output import columns
from lessor.cli.text import Line, Piece, Tone, fit, shown, width
from lessor.cli.times import clock_time, lapse
from lessor.model.task import AD_HOC, Task
from lessor.model.waiting import Cause, Held, Why

_MOST_PATHS = 2
_NEXT = "next  "
_GAP = "     "


def next_lines(steps: Sequence[str]) -> list[Line]:
    """The last line of what people see: the next command; several below each other where it must be."""
    rows: list[str] = []
    for step in map(as_given, steps):
        if rows and width(f"{rows[-1]}{_GAP}{step}") <= columns() - len(_NEXT):
            rows[-1] += f"{_GAP}{step}"
        else:
            rows.append(step)
    return [
        [Piece(_NEXT if n == 0 else " " * len(_NEXT), Tone.FAINT), Piece(row, Tone.STRONG)]
        for n, row in enumerate(rows or [""])
    ]


def title_line(number: int, title: str, after: Piece | str = "") -> Line:
    """A task's number and title, cut to the line's width; `after` is kept whole."""
    end = after if isinstance(after, Piece) else Piece(after)
    head = f"#{number} "
    gap = "  " if end.text else ""
    room = columns() - width(head) - width(gap + end.text)
    return [Piece(head, Tone.STRONG), fit(shown(title), room), gap, end]


def begin_step(task: Task) -> str:
    """What lets somebody begin a queued task: a run's agents work in a clone, and some have none."""
    return "lessor run" if task.repository else "lessor claim --repo none"


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


def reason_text(why: Why, task: Task, *, now: int, brief: bool = False) -> str:
    """Why a task is where it is, without its number in front.

    Args:
        brief: for a list of tasks that wait: without that word, and without the holder's title.
    """
    match why.cause:
        case Cause.TIME:
            said = _time_text(why, task, now=now, brief=brief)
        case Cause.FINISHED:
            said = _end_text(task)
        case Cause.PERSON | Cause.STATE if task.said or task.last_error:
            said = _wish_text(why, task)
        case _ if why.holder is not None:
            said = _holder_text(why, why.holder, task, now=now, brief=brief)
        case _:
            said = why.sentence.removeprefix(f"#{why.number} ")
    if not brief:
        return said
    return said.removeprefix("waits ").removeprefix("waits: ").removesuffix(".")


def _time_text(why: Why, task: Task, *, now: int, brief: bool) -> str:
    moment = "" if why.at_ms is None else clock_time(why.at_ms, now=now)
    if task.last_error and task.attempts:
        again = f"tries again from {moment}"
        return again if brief else f"{again}: {first_line(task.last_error)}"
    return f"from {moment}" if brief else f"starts at {moment} at the earliest"


def _end_text(task: Task) -> str:
    if task.state == "failed":
        return f"has failed: {first_line(task.last_error) or 'nobody said why'}"
    if task.state == "cancelled":
        return "is cancelled"
    commit = f", {task.commit[:7]} on {task.branch}" if task.commit else ""
    return f"has succeeded: {task.stage}{commit}" if task.stage != "none" else "has succeeded"


def _wish_text(why: Why, task: Task) -> str:
    if task.state == "needs_person" and task.said:
        return f'asks: "{first_paragraph(task.said)}"'
    if task.state == "quarantined" and task.last_error:
        times = "once" if task.attempts == 1 else f"{task.attempts} times"
        failed = f"is quarantined: it failed {times}, and isn't tried again by itself"
        return f"{failed}: {first_line(task.last_error)}"
    return why.sentence.removeprefix(f"#{why.number} ")


def _holder_text(why: Why, holder: Held, task: Task, *, now: int, brief: bool) -> str:
    if why.cause is Cause.RUNNING:
        if holder.ends_ms <= now:
            return f"{holder.agent} had it; its lease ran out, and the next claim ends it"
        verb = "holds its paths" if task.queue == AD_HOC else "works on it"
        return f"{holder.agent} {verb}, epoch {holder.epoch}, {lapse(now - holder.since_ms)} so far"
    if why.cause is Cause.SHADOW:
        title = "" if brief else f" {holder.title}"
        paths = paths_text(holder.paths)
        if not why.next_step.startswith("lessor land"):
            return f"waits for #{holder.number}{title}, which isn't finished ({paths})"
        return f"waits for the result of #{holder.number}{title} to land ({paths})"
    turn = "; its turn is reserved" if why.reserved else ""
    who = ", ".join(part for part in (paths_text(holder.paths), holder.agent) if part)
    title = "" if brief else f" {holder.title}"
    return f"waits for #{holder.number}{title} ({who}){turn}"


def title_says_who(title: str, agent: str) -> bool:
    """Whether a title already names its holder, as that of held or acquired paths does unless told."""
    return title == f"held by {agent}" or title.startswith(f"{agent}: ")


def first_line(text: str | None) -> str:
    """The first line of a text of several."""
    return (text or "").strip().partition("\n")[0].rstrip()


def first_paragraph(text: str) -> str:
    """The first paragraph of a text, on one line."""
    return " ".join(text.strip().partition("\n\n")[0].split())
