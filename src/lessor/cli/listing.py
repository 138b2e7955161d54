"""`lessor list` and `lessor history`."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

import click

from lessor.cli.finding import find_task
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.phrases import next_lines, paths_text, title_line
from lessor.cli.records import event_record, lease_record, task_record
from lessor.cli.repositories import NONE
from lessor.cli.states import state_text, tone_of
from lessor.cli.text import Line, Piece, Tone, row, table
from lessor.cli.times import clock_time, lapse
from lessor.model.lifecycle import TaskState
from lessor.model.task import DRILL, Task
from lessor.service.reading import HistoryEntry, LeaseRecord

_MOST = 50


@command("list")
@click.option("--all", "everywhere", is_flag=True, help="Of every repository.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in TaskState]),
    help="Only these.",
)
@click.option("--queue", default="", metavar="NAME", help="Only of this queue.")
@click.option("--leases", "leases_only", is_flag=True, help="Live leases instead of tasks.")
@click.option("-n", "--most", type=click.IntRange(1, 10_000), default=_MOST, show_default=True)
@click.option("--before", default="", metavar="N", help="Go on from an earlier page's last.")
@pass_invocation
def list_(
    invocation: Invocation,
    *,
    everywhere: bool,
    states: tuple[str, ...],
    queue: str,
    leases_only: bool,
    most: int,
    before: str,
) -> None:
    """List tasks, the newest first; or live leases.

    Those of drills are left out, unless their queue is named: --queue lessor-drill.
    """
    repository = None if everywhere else invocation.repository
    keys = _keys(invocation)
    if leases_only:
        _list_leases(invocation, repository, keys, most=most)
        return
    tasks = invocation.lessor.tasks.tasks(
        repository=repository,
        everywhere=everywhere,
        queue=queue,
        states=states,
        before=find_task(invocation, before).id if before else "",
        most=most,
    )
    asked = [
        *(["--all"] if everywhere else []),
        *(word for state in states for word in ("--state", state)),
        *(["--queue", queue] if queue else []),
        *(["-n", str(most)] if most != _MOST else []),
    ]
    go_on = shlex.join(["lessor", "list", *asked, "--before"]) if len(tasks) == most else ""
    shown_tasks = tasks if queue else [task for task in tasks if task.queue != DRILL]
    _answer_tasks(invocation, shown_tasks, keys, everywhere=everywhere, go_on=go_on)


@command("history")
@click.argument("task")
@click.option("--after", type=click.IntRange(0), default=0, help="Only changes after this number.")
@click.option("-n", "--most", type=click.IntRange(1, 100_000), default=1_000, show_default=True)
@pass_invocation
def history(invocation: Invocation, *, task: str, after: int, most: int) -> None:
    """List every change of a task, the oldest first."""
    found = find_task(invocation, task)
    entries = invocation.lessor.tasks.history(found.id, after=after, most=most)
    invocation.answer_all(
        [event_record(entry) for entry in entries],
        lambda: _history_lines(invocation, found, entries),
    )


def _keys(invocation: Invocation) -> Mapping[str | None, str]:
    return {row.id: row.key for row in invocation.lessor.registry.repositories()}


def _places(invocation: Invocation) -> Mapping[str | None, str]:
    """By repository the name that leads there: its own, or its key where two have the same name."""
    rows = invocation.lessor.registry.repositories()
    names = Counter(row.name for row in rows)
    places: dict[str | None, str] = {None: NONE}
    places |= {row.id: row.name if names[row.name] == 1 else row.key for row in rows}
    return places


def _list_leases(
    invocation: Invocation,
    repository: str | None,
    keys: Mapping[str | None, str],
    *,
    most: int,
) -> None:
    found = invocation.lessor.leases.leases(repository=repository, live=True, most=most)
    invocation.answer_all(
        [lease_record(lease, repo=keys.get(lease.repository)) for lease in found],
        lambda: _lease_lines(found, invocation.columns),
    )


def _answer_tasks(
    invocation: Invocation,
    tasks: Sequence[Task],
    keys: Mapping[str | None, str],
    *,
    everywhere: bool,
    go_on: str,
) -> None:
    invocation.answer_all(
        [task_record(task, repo=keys.get(task.repository)) for task in tasks],
        lambda: _task_lines(
            invocation, tasks, _places(invocation) if everywhere else {}, go_on=go_on
        ),
    )


def _task_lines(
    invocation: Invocation,
    tasks: Sequence[Task],
    places: Mapping[str | None, str],
    *,
    go_on: str,
) -> list[Line]:
    """A table of tasks.

    Args:
        go_on: the command for the next page but for its end; empty where this is the last.
    """
    if not tasks:
        return [["no tasks"], *next_lines(['lessor add "…"'])]
    rows = []
    for task in tasks:
        state = state_text(task)
        where = [Piece(places[task.repository], Tone.FAINT)] if places else []
        cells = row(
            f"#{task.number}",
            Piece(state, tone_of(state)),
            task.title,
            Piece(paths_text(task.scopes) if task.repository else "", Tone.NAME),
        )
        rows.append([*where, *cells])
    lines = table(rows, columns=invocation.columns)
    shown = tasks[-1 if go_on else 0]
    # A number is its repository's own: of several, the command says which.
    named = f" --repo {shlex.quote(places[shown.repository])}" if places else ""
    step = f"lessor show{named} {shown.number}"
    if go_on:
        step = f"{go_on} {shown.id if places else shown.number}"
    return [*lines, *next_lines([step])]


def _lease_lines(found: Sequence[LeaseRecord], columns: int) -> list[Line]:
    if not found:
        return [["nobody holds a lease"]]
    rows = (
        row(
            lease.id,
            f"#{lease.number}",
            Piece(_holder(lease), Tone.NAME),
            paths_text(lease.paths),
            lapse(lease.expires_ms - lease.now_ms) if lease.live else "ran out",
        )
        for lease in found
    )
    return [
        *table(rows, columns=columns, whole=frozenset({0})),
        *next_lines([f"lessor show {found[0].number}"]),
    ]


def _holder(lease: LeaseRecord) -> str:
    return lease.agent if lease.kind == "lease" else f"{lease.kind} of {lease.agent or 'nobody'}"


def _history_lines(
    invocation: Invocation, task: Task, entries: Sequence[HistoryEntry]
) -> list[Line]:
    now = invocation.lessor.now_ms()
    rows = (
        row(
            Piece(f"{entry.n:>3}", Tone.FAINT),
            clock_time(entry.at_ms, now=now),
            entry.kind,
            f"epoch {entry.epoch}",
            Piece(_facts(entry.facts), Tone.FAINT),
        )
        for entry in entries
    )
    head = title_line(task.number, task.title)
    return [head, *table(rows, columns=invocation.columns)]


def _facts(facts: Mapping[str, object]) -> str:
    said = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in facts.items()
        if value not in (None, "", [], {})
    ]
    # A line is cut at its end: what is short, and says more, comes before paths and ids.
    return " ".join(sorted(said, key=len))
