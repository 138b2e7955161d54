"""`lessor ready`: what a claim would look at. Scripts ask it all day, so it imports little."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lessor.cli.given import as_given
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.records import task_record
from lessor.cli.text import Line, Piece, Tone, row, table
from lessor.model.task import Task


@command("ready")
@click.option("--queue", default="default", show_default=True, metavar="NAME", help="The queue.")
@click.option("-n", "--most", type=click.IntRange(1, 10_000), default=100, show_default=True)
@pass_invocation
def ready(invocation: Invocation, *, queue: str, most: int) -> None:
    """List the tasks that a claim would look at, in its order.

    Paths that somebody holds are only found when a task is claimed: a task listed here may still
    have to wait for them.
    """
    standing = invocation.standing
    tasks = invocation.lessor.tasks.ready(repository=standing.id, queue=queue, most=most)
    invocation.answer_all(
        [task_record(task, repo=standing.key or None) for task in tasks],
        lambda: _lines(tasks, invocation.columns),
    )


def _lines(tasks: Sequence[Task], columns: int) -> list[Line]:
    if not tasks:
        return [["nothing is ready"], _next('lessor add "…"')]
    rows = (
        row(f"#{task.number}", task.title, Piece(", ".join(task.scopes) or "grows", Tone.NAME))
        for task in tasks
    )
    return [*table(rows, columns=columns), _next("lessor claim")]


def _next(step: str) -> Line:
    return [Piece("next  ", Tone.FAINT), Piece(as_given(step), Tone.STRONG)]
