"""`lessor import`: a list of tasks from a file; run again, it changes them and never doubles any.

A task is known again by the file and the text's id, as its unique key; finished ones too. A task
that somebody has begun stays as it was asked for.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from lessor.cli.add import expand_scopes, find_project
from lessor.cli.files import STDIN, path_rules, read_text
from lessor.cli.imported import Fate, Imported, import_lines, import_record
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.trusting import agree
from lessor.errors import InvalidError, TransitionRefusedError
from lessor.model.lifecycle import TaskState
from lessor.model.scope import Mode, parse_scopes
from lessor.model.task import NewTask, Task
from lessor.project import Project
from lessor.project.checklist import read_checklist
from lessor.project.jsonlines import read_jsonlines
from lessor.project.trust import commands_digest, is_trusted
from lessor.project.wish import Waits, Wish, file_key, resolve_waits
from lessor.service.checking import check_tasks


@command("import")
@click.argument("file", metavar="FILE|-")
@click.option("--queue", metavar="NAME", help="The queue; else the project's own.")
@click.option("--trust", "digest", metavar="DIGEST", help="Agree to the check commands in it.")
@pass_invocation
def import_(invocation: Invocation, *, file: str, queue: str | None, digest: str | None) -> None:
    """Put a list of tasks into the queue: a Markdown checklist, or JSON lines (.jsonl).

    \b
    - [ ] Search: debounce the box            @scope web/search
    - [ ] Billing: retry on 503               @check "pytest -q tests/billing"
    - [ ] Billing: rename Charge to Payment   @after 2

    After the text stand @scope @read @check @after @agent @priority @limit @strict @id. @after
    names a place in the list, another line's @id, or a task (#14). Ticked lines ask for nothing.
    """  # noqa: D301 - click takes the character \b for "leave the lines as they are"
    name, wishes = _read(invocation, file)
    waits = resolve_waits(wishes, file=name)
    standing = invocation.stand(register=True)
    project = find_project(invocation)
    _agree_to_checks(invocation, wishes, digest=digest, file=file)
    known = _known(invocation, {wish.key(name) for wish in wishes})
    asked = [
        _new_task(invocation, project, wish, wait, file=name, queue=queue)
        for wish, wait in zip(wishes, waits, strict=True)
    ]
    for wish, task in zip(wishes, asked, strict=True):
        _refuse_bad(invocation, wish, task, file=name)
    imported = _write(invocation, wishes, waits, asked, known)
    left_out = _left_out(invocation, wishes, file=name)
    records = [import_record(item, repo=standing.key or None) for item in imported]
    invocation.answer_all(records, lambda: import_lines(invocation, imported, left_out))


def _read(invocation: Invocation, file: str) -> tuple[str, list[Wish]]:
    """The file's name as part of its tasks' identity, and its tasks."""
    text = read_text(file, what="list")
    name = STDIN if file == STDIN else _identity(invocation, Path(file))
    lines = file.endswith((".jsonl", ".ndjson")) or text.lstrip().startswith("{")
    return name, (read_jsonlines if lines else read_checklist)(text, file=name)


def _identity(invocation: Invocation, file: Path) -> str:
    """The file from the clone's top, so that every clone means the same one; else its whole path."""
    path = file.resolve()
    checkout = invocation.stand(register=True).checkout
    if checkout is not None:
        top = checkout.cwd.resolve()
        for _ in Path(checkout.prefix).parts:
            top = top.parent
        if path.is_relative_to(top):
            return path.relative_to(top).as_posix()
    return os.fspath(path)


def _agree_to_checks(
    invocation: Invocation, wishes: Sequence[Wish], *, digest: str | None, file: str
) -> None:
    """A check is run with the person's rights: what a file names is agreed to once, like the project's."""
    checkout = invocation.standing.checkout
    checks = {f"line {wish.line}": wish.check for wish in wishes if wish.check and not wish.done}
    if not checks or checkout is None:
        return
    named = commands_digest(checkout.repository, {check: check for check in checks.values()})
    if not is_trusted(invocation.settings, named):
        agree(
            invocation,
            [(line, check, file) for line, check in checks.items()],
            digest=named,
            given=digest,
            again=f"lessor import {shlex.quote(file)} --trust",
        )


def _known(invocation: Invocation, keys: Collection[str]) -> dict[str, Task]:
    """The newest task of each key, finished or not."""
    found = invocation.lessor.tasks.with_keys([*keys], repository=invocation.repository)
    return {task.unique_key or "": task for task in found}


def _new_task(
    invocation: Invocation,
    project: Project | None,
    wish: Wish,
    wait: Waits,
    *,
    file: str,
    queue: str | None,
) -> NewTask:
    tasks = invocation.lessor.tasks
    needs = (tasks.task_numbered(n, repository=invocation.repository).id for n in wait.numbers)
    return NewTask(
        title=wish.title,
        prompt=wish.prompt,
        queue=queue if queue is not None else (project.queue if project else "default"),
        repository=invocation.repository,
        scopes=expand_scopes(invocation, project, wish.scopes, from_top=True),
        reads=expand_scopes(invocation, project, wish.reads, from_top=True),
        strict=wish.strict,
        priority=wish.priority,
        needs=tuple(dict.fromkeys(needs)),
        unique_key=wish.key(file),
        max_attempts=project.attempts if project else 3,
        check=wish.check,
        agent=wish.agent,
        limit_key=wish.limit_key,
    )


def _refuse_bad(invocation: Invocation, wish: Wish, task: NewTask, *, file: str) -> None:
    """Refuse a task that can't be meant, with its line, before any is written."""
    rules = path_rules(invocation, task.repository)
    try:
        check_tasks([task])
        for mode, paths in ((Mode.WRITE, task.scopes), (Mode.READ, task.reads)):
            parse_scopes(paths, mode=mode, rules=rules)
    except InvalidError as error:
        raise InvalidError(
            f"{file}, line {wish.line}: {error.message}",
            next_step=error.next_step,
            file=file,
            line=wish.line,
        ) from error


def _write(
    invocation: Invocation,
    wishes: Sequence[Wish],
    waits: Sequence[Waits],
    asked: Sequence[NewTask],
    known: Mapping[str, Task],
) -> list[Imported]:
    """Add what is new in one transaction, then change what differs."""
    tasks = invocation.lessor.tasks
    there = {n: known.get(task.unique_key or "") for n, task in enumerate(asked)}
    fresh = [n for n, wish in enumerate(wishes) if there[n] is None and not wish.done]
    wanted = {n: _with_needs(asked[n], waits[n], there, fresh) for n in range(len(asked))}
    made = tasks.submit([wanted[n] for n in fresh], submitter=invocation.person) if fresh else []
    ids = {n: submitted.task for n, submitted in zip(fresh, made, strict=True)}
    imported = []
    for n, wish in enumerate(wishes):
        old = there[n]
        if n in ids:
            imported.append(Imported(wish=wish, fate=Fate.ADDED, task=tasks.task(ids[n])))
        elif old is None or wish.done:
            imported.append(Imported(wish=wish, fate=Fate.TICKED, task=old))
        else:
            needs = [*wanted[n].needs, *(ids[p] for p in waits[n].places if p in ids)]
            changed = replace(wanted[n], needs=tuple(dict.fromkeys(needs)), needs_index=())
            imported.append(_amend(invocation, wish, old, changed))
    return imported


def _with_needs(
    task: NewTask, wait: Waits, there: Mapping[int, Task | None], fresh: Sequence[int]
) -> NewTask:
    """The task with its needs: tasks that exist by id, new ones by their place in the batch."""
    existing = [found.id for place in wait.places if (found := there[place]) is not None]
    batch = tuple(fresh.index(place) for place in wait.places if place in fresh)
    return replace(task, needs=(*task.needs, *existing), needs_index=batch)


def _amend(invocation: Invocation, wish: Wish, old: Task, wanted: NewTask) -> Imported:
    tasks = invocation.lessor.tasks
    if not _differs(invocation, old, wanted):
        return Imported(wish=wish, fate=Fate.SAME, task=old)
    if old.state is not TaskState.QUEUED:
        return Imported(wish=wish, fate=Fate.BEGUN, task=old)
    try:
        stays = replace(wanted, queue=old.queue, max_attempts=old.max_attempts)
        changed = tasks.amend(old.id, stays, actor=invocation.person)
    except TransitionRefusedError:  # begun in this very moment
        return Imported(wish=wish, fate=Fate.BEGUN, task=tasks.task(old.id))
    return Imported(wish=wish, fate=Fate.CHANGED, task=changed)


def _differs(invocation: Invocation, old: Task, wanted: NewTask) -> bool:
    plain = ("title", "prompt", "check", "agent", "priority", "strict", "limit_key")
    if any(getattr(old, name) != getattr(wanted, name) for name in plain):
        return True
    rules = path_rules(invocation, old.repository)
    taken = set(invocation.lessor.tasks.taken(old.id))
    for mode, before, after in (
        (Mode.WRITE, old.scopes, wanted.scopes),
        (Mode.READ, old.reads, wanted.reads),
    ):
        asked = {scope.text for scope in parse_scopes(after, mode=mode, rules=rules)}
        # What it took while it worked is no change of the list, whether that has it since or not.
        if not set(before) - taken <= asked <= set(before):
            return True
    return set(invocation.lessor.tasks.needs(old.id)) != set(wanted.needs)


def _left_out(invocation: Invocation, wishes: Sequence[Wish], *, file: str) -> list[Task]:
    """Queued tasks of this file that it no longer asks for; the person decides about them."""
    asked = {wish.key(file) for wish in wishes if not wish.done}
    of_file = invocation.lessor.tasks.open_with_keys(
        file_key(file), repository=invocation.repository
    )
    return [
        task for task in of_file if task.state is TaskState.QUEUED and task.unique_key not in asked
    ]
