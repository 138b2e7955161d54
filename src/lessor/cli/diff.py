"""`lessor diff`: what a task changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

import click

from lessor.cli.finding import find_task
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.output import wants_colour
from lessor.cli.phrases import next_lines, title_line
from lessor.cli.results import Work, find_work
from lessor.cli.text import Line, Piece, Tone, painted, row, table
from lessor.git.changes import FileChange, diff_summary
from lessor.model.task import Task


@command("diff")
@click.argument("task")
@click.option("--stat", is_flag=True, help="Only which files, and how many lines.")
@pass_invocation
def diff(invocation: Invocation, *, task: str, stat: bool) -> None:
    """Show what a task changed since its base. Off a terminal it is a patch that git can apply."""
    found = find_task(invocation, task)
    work = find_work(invocation, found)
    if stat or not invocation.for_people:
        _answer_files(invocation, found, work)
        return
    patch = work.repository.git(
        ["diff", "--no-ext-diff", "--no-color", "--binary", work.base, work.head, "--"]
    ).out
    if not patch:
        invocation.note(f"#{found.number} has changed nothing that is committed.")
        return
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
        return
    # less shows a short text without waiting for a key, and its colours.
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(_coloured(patch), color=None)


def _answer_files(invocation: Invocation, task: Task, work: Work) -> None:
    files = diff_summary(work.repository.common_dir, work.base, work.head)
    record = {
        "taskId": task.id,
        "number": task.number,
        "base": work.base,
        "commit": work.head,
        "finished": work.finished,
        "files": [
            {"path": file.path, "added": file.added, "removed": file.removed} for file in files
        ],
    }

    def lines() -> list[Line]:
        rows = (row(f"  {file.path}", counts_text(file.added, file.removed)) for file in files)
        head = title_line(task.number, task.title)
        return [
            head,
            *table(rows, columns=invocation.columns),
            *next_lines([f"lessor diff {task.number}"]),
        ]

    invocation.answer(record, lines)


def counts_text(added: int | None, removed: int | None) -> str:
    """Lines that were added and removed, or that the file is binary."""
    if added is None or removed is None:
        return "binary"
    return f"+{added} \u2212{removed}"


def size_text(files: Sequence[FileChange]) -> str:
    """How many lines in how many files; empty where nothing was changed."""
    if not files:
        return ""
    lines = counts_text(sum(f.added or 0 for f in files), sum(f.removed or 0 for f in files))
    return f"{lines} in {len(files)} file{'s' if len(files) > 1 else ''}"


def _coloured(patch: bytes) -> Iterator[str]:
    """The patch's lines, safe on a terminal, coloured by their first character."""
    tones = {"+": Tone.GOOD, "-": Tone.BAD, "@": Tone.NAME}
    colour = wants_colour(sys.stdout)
    # Click ends what it pages with a line's end of its own.
    for n, line in enumerate(os.fsdecode(patch).removesuffix("\n").split("\n")):
        tone = tones.get(line[:1], Tone.PLAIN)
        if line.startswith(("diff ", "index ", "--- ", "+++ ")):
            tone = Tone.STRONG
        text = painted([Piece(line.expandtabs(8), tone)], colour=colour)
        yield f"\n{text}" if n else text
