"""`lessor why` and `lessor who`: what a task waits for, and who has a path."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lessor.cli.finding import find_task, holders_of, path_from_top
from lessor.cli.halts import halt_here, halt_text
from lessor.cli.invocation import Invocation
from lessor.cli.logs import logs_here
from lessor.cli.options import command, pass_invocation
from lessor.cli.phrases import next_lines, paths_text, reason_text, title_line, title_says_who
from lessor.cli.records import held_record, why_record
from lessor.cli.results import block_words, landing_trouble
from lessor.cli.text import Line, Piece, Tone, shown, table, wrap
from lessor.cli.times import lapse
from lessor.errors import InvalidError
from lessor.model.task import AD_HOC, Task
from lessor.model.waiting import Cause, Held, Why

MOST_PAIRS = 8


@command("why")
@click.argument("task")
@pass_invocation
def why(invocation: Invocation, *, task: str) -> None:
    """Say why a task is where it is, and what ends that."""
    found = invocation.lessor.tasks.why(find_task(invocation, task).id)
    invocation.answer(why_record(found), lambda: _why_lines(invocation, found))


@command("who")
@click.argument("path")
@pass_invocation
def who(invocation: Invocation, *, path: str) -> None:
    """Say who holds a path, or something below it, and which results there haven't landed."""
    standing = invocation.standing
    if standing.id is None:
        raise InvalidError("Paths belong to a repository.", next_step="Leave out `--repo none`.")
    asked = path_from_top(invocation, path)
    holders = [
        *holders_of(invocation, asked, repository=standing.id),
        *invocation.lessor.landings.over(asked, repository=standing.id),
    ]
    invocation.answer_all(
        [held_record(holder) for holder in holders],
        lambda: _who_lines(invocation, asked, holders),
    )


def _why_lines(invocation: Invocation, found: Why) -> list[Line]:
    now = invocation.lessor.now_ms()
    task = invocation.lessor.tasks.task(found.task)
    lines: list[Line] = [title_line(found.number, task.title)]
    reason = shown(block_words(invocation, task) or reason_text(found, task, now=now))
    trouble = landing_trouble(invocation, task)
    if trouble:
        reason += f"; it can't land: {shown(trouble)}"
    lines += [[f"  {text}"] for text in wrap(reason, invocation.columns - 2)]
    if found.cause is Cause.RUNNING:
        leases = invocation.lessor.leases.leases(task=task.id, live=True)
        halt = halt_here(invocation, leases[-1]) if leases else None
        told = wrap(halt_text(halt), invocation.columns - 2) if halt else []
        lines += [[Piece(f"  {text}", Tone.WARN)] for text in told]
    lines += _overlap_lines(found)
    if found.holder is not None and found.cause is Cause.RUNNING:
        lines += _term_lines(found.holder, now=now)
    elif found.holder is not None:
        lines += _holder_lines(found.holder, now=now, columns=invocation.columns)
    if found.overdue:
        lines.append([Piece("  overdue: it waits longer than its queue allows", Tone.WARN)])
    return [*lines, *next_lines([_step(invocation, found, task)])]


def _step(invocation: Invocation, found: Why, task: Task) -> str:
    if found.cause is Cause.PERSON:
        return f'lessor answer {found.number} "…"'
    if found.cause is Cause.RUNNING and task.queue == AD_HOC:
        return f"lessor drop {found.number}"
    if found.cause is Cause.RUNNING and found.holder is not None:
        here = logs_here(invocation, found.holder.lease)
        return found.next_step if "agent" in here else f"lessor show {found.number}"
    return found.next_step or f"lessor show {found.number}"


def _overlap_lines(found: Why) -> list[Line]:
    lines: list[Line] = [
        [Piece("  overlap   ", Tone.FAINT), own if own == held else f"{own} with {held}"]
        for own, held in found.overlaps[:MOST_PAIRS]
    ]
    if len(found.overlaps) > MOST_PAIRS:
        lines.append([f"            and {len(found.overlaps) - MOST_PAIRS} more"])
    if found.position > 1:
        lines.append([Piece("  position  ", Tone.FAINT), f"{found.position} in line"])
    return lines


def _who_lines(invocation: Invocation, asked: str, holders: Sequence[Held]) -> list[Line]:
    if not holders:
        return [[f"nobody holds {asked}"]]
    now = invocation.lessor.now_ms()
    lines = [
        line
        for holder in holders
        for line in _holder_lines(holder, now=now, columns=invocation.columns)
    ]
    return [*lines, *next_lines([f"lessor show {holders[0].number}"])]


def _holder_lines(holder: Held, *, now: int, columns: int) -> list[Line]:
    words = {"lease": "holder", "hold": "held for", "shadow": "result", "reservation": "turn of"}
    agent = Piece(holder.agent or "nobody", Tone.NAME)
    rows: list[list[Piece | str]] = [
        [
            Piece(f"  {words.get(holder.kind, holder.kind):<8}", Tone.FAINT),
            f"#{holder.number} {holder.title}",
            *([] if title_says_who(holder.title, holder.agent) else [agent]),
            f"epoch {holder.epoch}",
        ]
    ]
    return [*table(rows, columns=columns), *_term_lines(holder, now=now)]


def _term_lines(holder: Held, *, now: int) -> list[Line]:
    """What a lease covers, and when it ends."""
    left = holder.ends_ms - now
    if holder.kind == "shadow":
        ends = "when it has landed"
    elif left <= 0:
        ends = "ran out; the next claim ends it"
    elif holder.latest_ms <= holder.ends_ms:
        ends = f"{lapse(left)} left"
    else:
        latest = lapse(holder.latest_ms - now)
        ends = f"{lapse(left)} left unless renewed; {latest} at the latest"
    return [
        [Piece("  paths     ", Tone.FAINT), paths_text(holder.paths)],
        [Piece("  ends      ", Tone.FAINT), ends],
    ]
