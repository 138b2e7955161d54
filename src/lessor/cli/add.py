"""`lessor add`: one task into the queue."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from lessor.cli.files import count_files, path_rules, read_text
from lessor.cli.finding import find_tasks, holders_of, path_from_top
from lessor.cli.given import beside
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, duration_option, own_words, pass_invocation
from lessor.cli.phrases import (
    begin_step,
    next_lines,
    paths_text,
    reason_text,
    title_line,
    title_says_who,
)
from lessor.cli.records import task_record, why_record
from lessor.cli.requesting import request_id_option
from lessor.cli.text import Line, Piece, Tone, pad, shown, table, wrap
from lessor.cli.times import clock_time, lapse, parse_instant
from lessor.errors import GitError
from lessor.model.task import Effects, NewTask, Task
from lessor.model.waiting import Cause, Why
from lessor.project import Project

LABEL = 11


@command("add")
@click.argument("title")
@click.option("--scope", "scopes", multiple=True, metavar="PATH", help="Start with these paths.")
@click.option(
    "--read", "reads", multiple=True, metavar="PATH", help="Nobody may write them meanwhile."
)
@click.option("--strict", is_flag=True, help="Confine it to its scope.")
@click.option("--prompt", metavar="FILE|-", help="What the agent is told, beside the title.")
@click.option("--check", metavar="COMMAND", help="Judges the result; else the project's own.")
@click.option("--after", "after", multiple=True, metavar="N", help="Wait until #N has succeeded.")
@click.option("--agent", metavar="KIND", help="Only this kind of agent may do it.")
@click.option(
    "--need", "needs", multiple=True, metavar="CAPABILITY", help="What a worker has to offer."
)
@click.option("--priority", type=int, default=0, help="-1000 to 1000; higher goes first.")
@click.option("--at", metavar="TIME", help="Not before 14:30, or 2026-06-22T14:30.")
@duration_option("--in", "delay", help="Not before so long from now.")
@click.option("--key", metavar="KEY", help="At most one unfinished task has it; again: that one.")
@click.option("--queue", metavar="NAME", help="The queue; else the project's own.")
@click.option("--branch", metavar="NAME", help="type/description; else one is made.")
@click.option(
    "--effects",
    type=click.Choice([effect.value for effect in Effects]),
    default=Effects.WORKSPACE.value,
    help="What may happen outside of the worktree.",
)
@click.option("--idempotency-key", metavar="KEY", help="Names the action across attempts.")
@click.option("--max-attempts", type=int, help="Attempts that count; else 3.")
@click.option("--limit-key", metavar="KEY", help="Counted against that key's limit.")
@request_id_option
@pass_invocation
def add(
    invocation: Invocation,
    *,
    title: str,
    scopes: tuple[str, ...],
    reads: tuple[str, ...],
    strict: bool,
    prompt: str | None,
    check: str | None,
    after: tuple[str, ...],
    agent: str | None,
    needs: tuple[str, ...],
    priority: int,
    at: str | None,
    delay: int | None,
    key: str | None,
    queue: str | None,
    branch: str | None,
    effects: str,
    idempotency_key: str | None,
    max_attempts: int | None,
    limit_key: str | None,
    request_id: str,
) -> None:
    """Put a task into the queue.

    Without --scope it starts with no paths and takes what it writes, as long as nobody else holds
    it. A scope is a path and all below it, or a glob (*, **, ?); @name is a set of lessor.toml.
    """
    standing = invocation.stand(register=True)
    project = find_project(invocation)
    task = NewTask(
        title=own_words(title),
        prompt=read_text(prompt, what="prompt") if prompt is not None else "",
        queue=queue if queue is not None else (project.queue if project else "default"),
        repository=standing.id,
        scopes=expand_scopes(invocation, project, scopes),
        reads=expand_scopes(invocation, project, reads),
        strict=strict,
        priority=priority,
        delay=None if delay is None else timedelta(milliseconds=delay),
        run_at=_run_at(invocation, at),
        needs=tuple(found.id for found in find_tasks(invocation, after)),
        unique_key=key,
        idempotency_key=idempotency_key,
        effects=Effects(effects),
        max_attempts=max_attempts
        if max_attempts is not None
        else (project.attempts if project else 3),
        check=check,
        agent=agent,
        capabilities=needs,
        limit_key=limit_key,
        branch=branch,
    )
    done = invocation.lessor.tasks.submit(
        [task], submitter=invocation.person, request_id=request_id
    )[0]
    _answer(invocation, project, invocation.lessor.tasks.task(done.task), created=done.created)


def expand_scopes(
    invocation: Invocation,
    project: Project | None,
    given: tuple[str, ...],
    *,
    from_top: bool = False,
) -> tuple[str, ...]:
    """The paths that were given, from the top; `@name` becomes the project's set of that name.

    Args:
        from_top: they are written so already: in a file, not on a command line.
    """
    named = project.scopes if project else {}
    found: list[str] = []
    for text in given:
        if text.startswith("@") and text[1:] in named:
            found += named[text[1:]]
        else:
            found.append(text if from_top else path_from_top(invocation, text))
    return tuple(found)


def find_project(invocation: Invocation) -> Project | None:
    """The project where the checkout stands; None without a clone or a commit."""
    if invocation.standing.checkout is None:
        return None
    try:
        return invocation.project()
    except GitError:  # no commit yet: there is nothing to read it from
        return None


def _run_at(invocation: Invocation, text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text, now=invocation.lessor.now_ms())


def _answer(invocation: Invocation, project: Project | None, task: Task, *, created: bool) -> None:
    why = invocation.lessor.tasks.why(task.id)
    files = _counts(invocation, project, task)
    record = {
        **task_record(task, repo=invocation.standing.key or None),
        "created": created,
        "files": files,
        "why": why_record(why),
    }
    invocation.answer(record, lambda: _lines(invocation, task, files, created=created))


def _counts(invocation: Invocation, project: Project | None, task: Task) -> dict[str, int]:
    """How many tracked files each path of the task's scope has, where a clone can tell."""
    checkout = invocation.standing.checkout
    if checkout is None or project is None or task.repository is None:
        return {}
    rules = path_rules(invocation, task.repository)
    return {
        path: count_files(checkout, project.commit, path, rules=rules)
        for path in (*task.scopes, *task.reads)
    }


def _lines(
    invocation: Invocation, task: Task, files: dict[str, int], *, created: bool
) -> list[Line]:
    known = "" if created else "is there already: nothing was added"
    if task.repository is None:  # their numbers are their own: #1 of a repository is another task
        known = known or "no repository"
    lines: list[Line] = [title_line(task.number, task.title, known)]
    lines += table(
        [
            *(_scope_row("writes", path, files.get(path)) for path in task.scopes),
            *(_scope_row("reads", path, files.get(path)) for path in task.reads),
        ],
        columns=invocation.columns,
    )
    if task.repository is not None and not task.scopes:
        lines.append([Piece("   writes  ", Tone.FAINT), "what it touches and nobody else holds"])
    why = invocation.lessor.tasks.why(task.id)
    if why.cause == "time" and why.at_ms is not None:
        moment = clock_time(why.at_ms, now=invocation.lessor.now_ms())
        lines.append([Piece("   starts  ", Tone.FAINT), f"not before {moment}"])
    holders = _holders(invocation, task)
    waits = holders or _waits(invocation, task, why)
    waits_here = bool(waits) and why.cause is not Cause.TASKS
    step = f"lessor why {task.number}" if waits_here else begin_step(task)
    return [*lines, *waits, *_ground(why, invocation.columns), *next_lines([step])]


def _waits(invocation: Invocation, task: Task, why: Why) -> list[Line]:
    """What else keeps it: other tasks, results that have to land first, a paused queue."""
    if why.cause in {Cause.READY, Cause.TIME, Cause.RUNNING, Cause.FINISHED}:
        return []
    said = reason_text(why, task, now=invocation.lessor.now_ms(), brief=True)
    return _row("waits", said, invocation.columns, tone=Tone.WARN)


def _ground(why: Why, columns: int) -> list[Line]:
    """On whose result it will begin, where that hasn't landed."""
    ground = why.sentence.partition("; it begins ")[2].removesuffix(".")
    return _row("begins", ground, columns) if ground else []


def _row(label: str, text: str, columns: int, *, tone: Tone = Tone.FAINT) -> list[Line]:
    return [
        [Piece(pad(f"   {label if n == 0 else ''}", LABEL), tone), part]
        for n, part in enumerate(wrap(shown(text), columns - LABEL))
    ]


def _scope_row(mode: str, path: str, files: int | None) -> list[Piece | str]:
    row: list[Piece | str] = [Piece(f"   {mode:<6}", Tone.FAINT), path]
    if files == 0:
        return [*row, Piece("no file yet: is it spelt right?", Tone.WARN)]
    if files is not None:
        row.append(Piece(f"{files} file{'s' if files > 1 else ''}", Tone.FAINT))
    return row


def _holders(invocation: Invocation, task: Task) -> list[Line]:
    """Who is in the way now: a claim would park the task behind them."""
    if task.repository is None:
        return []
    lessor = invocation.lessor
    held = {
        holder.number: holder
        for path in task.scopes
        for holder in holders_of(invocation, path, repository=task.repository)
        if holder.task != task.id
    }
    lines: list[Line] = []
    for holder in held.values():
        since = lapse(lessor.now_ms() - holder.since_ms)
        agent = "" if title_says_who(holder.title, holder.agent) else f", {holder.agent}"
        who = f"{paths_text(holder.paths)}{agent}, {since} in"
        told = f"for #{holder.number} {holder.title} ({who})"
        lines += _row("waits", told, invocation.columns, tone=Tone.WARN)
    if lines:
        lines += _row(
            "starts", beside(_starter(invocation, several=len(held) > 1)), invocation.columns
        )
    return lines


def _starter(invocation: Invocation, *, several: bool) -> str:
    """What would start a task once the paths it waits for are free.

    That somebody runs agents here is known by a lease; whether that run takes up another task isn't:
    it may be one task's own, or be told to end.
    """
    lessor, done = invocation.lessor, "they are done" if several else "that is done"
    leases = lessor.leases.leases(repository=invocation.repository, live=True)
    workers = {lease.worker for lease in leases if lease.worker}
    if any(lessor.registry.worker(worker).heartbeat for worker in workers):
        return f"when {done}, in the run that still goes on then, else with: lessor run"
    return f"when {done} and somebody runs it; this one waits for that: lessor run --stay"
