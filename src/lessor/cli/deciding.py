"""What a person decides about tasks: answer, retry, cancel, block, release by force."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from lessor.cli.fencing import close_fences
from lessor.cli.files import STDIN, read_text
from lessor.cli.finding import find_task, find_tasks
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, own_words, pass_invocation
from lessor.cli.phrases import begin_step, next_lines, title_line
from lessor.cli.records import task_record
from lessor.cli.requesting import request_id_option
from lessor.cli.states import state_words
from lessor.cli.text import Line, Piece, Tone
from lessor.errors import InvalidError, TransitionRefusedError
from lessor.model.lifecycle import is_terminal
from lessor.model.task import AD_HOC, NewTask, Task
from lessor.service.deciding import Decided
from lessor.service.wording import LONGEST_TEXT

_NOW = {"needs_person": "is waiting for your answer"}


@command("answer")
@click.argument("task")
@click.argument("text")
@request_id_option
@pass_invocation
def answer(invocation: Invocation, *, task: str, text: str, request_id: str) -> None:
    """Answer a task's question; it is queued again and told the answer. `-` reads it from stdin."""
    found = find_task(invocation, task)
    words = _text(text)
    if not words.strip():
        raise InvalidError(
            "The answer is empty.", next_step=f'Say it: lessor answer {found.number} "…".'
        )
    with refusals([found], "answered"):
        done = invocation.lessor.tasks.answer(
            found.id, words, actor=invocation.person, request_id=request_id
        )
    _answer(invocation, [found], done, "goes on with your answer", next_step=begin_step(found))


@command("retry")
@click.argument("task")
@click.argument("words", required=False, default="")
@request_id_option
@pass_invocation
def retry(invocation: Invocation, *, task: str, words: str, request_id: str) -> None:
    """Queue a task again, its attempts forgotten; more WORDS are added to what it asks.

    A finished task stays finished: its work is asked for again as a new task, with the same scope.
    """
    found = find_task(invocation, task)
    said = _text(words)
    if is_terminal(found.state):
        _again(invocation, found, said, request_id=request_id)
        return
    with refusals([found], "queued again"):
        done = invocation.lessor.tasks.requeue(
            [found.id],
            actor=invocation.person,
            reason=said if len(said.encode(errors="surrogatepass")) <= LONGEST_TEXT else "",
            addition=said,
            request_id=request_id,
        )
    _answer(invocation, [found], done, "is queued again", next_step=begin_step(found))


@command("cancel")
@click.argument("tasks", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="Kept with the task.")
@request_id_option
@pass_invocation
def cancel(invocation: Invocation, *, tasks: tuple[str, ...], reason: str, request_id: str) -> None:
    """End tasks for good. A running agent is told and stopped; what it made is kept."""
    found = find_tasks(invocation, tasks)
    with refusals(found, "cancelled"):
        done = invocation.lessor.tasks.cancel(
            [task.id for task in found],
            actor=invocation.person,
            reason=reason,
            request_id=request_id,
        )
    close_fences(invocation)
    _answer(invocation, found, done, "is cancelled")


@command("block")
@click.argument("tasks", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="Kept with the task.")
@request_id_option
@pass_invocation
def block(invocation: Invocation, *, tasks: tuple[str, ...], reason: str, request_id: str) -> None:
    """Keep tasks from being claimed until they are unblocked; a live lease ends, uncharged."""
    found = find_tasks(invocation, tasks)
    with refusals(found, "blocked"):
        done = invocation.lessor.tasks.block(
            [task.id for task in found],
            actor=invocation.person,
            reason=reason,
            request_id=request_id,
        )
    close_fences(invocation)
    step = f"lessor unblock {found[0].number}"
    _answer(invocation, found, done, "is blocked", next_step=step)


@command("unblock")
@click.argument("tasks", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="Kept with the task.")
@request_id_option
@pass_invocation
def unblock(
    invocation: Invocation, *, tasks: tuple[str, ...], reason: str, request_id: str
) -> None:
    """Let blocked tasks be claimed again."""
    found = find_tasks(invocation, tasks)
    with refusals(found, "unblocked"):
        done = invocation.lessor.tasks.unblock(
            [task.id for task in found],
            actor=invocation.person,
            reason=reason,
            request_id=request_id,
        )
    _answer(invocation, found, done, "is queued again", next_step=begin_step(found[0]))


@command("force-release")
@click.argument("task")
@click.option("--reason", required=True, metavar="TEXT", help="Why its holder has to lose it.")
@click.option("--checked", required=True, metavar="TEXT", help="What you looked at before.")
@request_id_option
@pass_invocation
def force_release(
    invocation: Invocation, *, task: str, reason: str, checked: str, request_id: str
) -> None:
    """End somebody else's live lease. Its late writes are refused; the reason is kept for good."""
    found = find_task(invocation, task)
    with refusals([found], "taken from anybody"):
        done = invocation.lessor.leases.force_release(
            found.id,
            actor=invocation.person,
            reason=reason,
            checked=checked,
            request_id=request_id,
        )
    close_fences(invocation)
    _answer(
        invocation,
        [found],
        [done],
        "was taken from its holder",
        next_step=f"lessor why {found.number}",
    )


@contextmanager
def refusals(tasks: Sequence[Task], verb: str) -> Iterator[None]:
    """Say a refused decision in the person's own words: numbers, and what the task is instead."""
    try:
        yield
    except TransitionRefusedError as error:
        named = error.facts.get("task")
        number = next((task.number for task in tasks if task.id == named), tasks[0].number)
        state = str(error.facts.get("state") or "not running")
        raise TransitionRefusedError(
            f"#{number} can't be {verb}: it {_NOW.get(state) or state_words(state)}.",
            next_step=f"See: lessor why {number}.",
            **{**error.facts, "number": number},
        ) from error


def _text(given: str) -> str:
    return read_text(STDIN, what="text").strip() if given == STDIN else own_words(given)


def _again(invocation: Invocation, task: Task, words: str, *, request_id: str) -> None:
    """A new task that asks for the same; the finished one keeps its state and its result."""
    if task.queue == AD_HOC:
        raise InvalidError(
            f"#{task.number} stood for its paths alone: there is no work to ask for again.",
            next_step=f"Have them again: lessor hold {shlex.join(task.scopes)}",
        )
    lessor = invocation.lessor
    wish = NewTask(
        title=task.title,
        prompt="\n\n".join(part for part in (task.prompt, words) if part),
        queue=task.queue,
        repository=task.repository,
        scopes=task.scopes,
        reads=task.reads,
        strict=task.strict,
        priority=task.priority,
        check=task.check,
        agent=task.agent,
        capabilities=task.capabilities,
        effects=task.effects,
        idempotency_key=task.idempotency_key,
        limit_key=task.limit_key,
        max_attempts=task.max_attempts,
    )
    done = lessor.tasks.submit([wish], submitter=invocation.person, request_id=request_id)
    made = lessor.tasks.task(done[0].task)
    record = {**task_record(made, repo=invocation.standing.key or None), "again": task.id}
    invocation.answer(record, lambda: _again_lines(task, made))


def _again_lines(task: Task, made: Task) -> list[Line]:
    return [
        title_line(made.number, made.title),
        [f"   asks again for what #{task.number} asked, which {state_words(task.state)}"],
        *next_lines([begin_step(made)]),
    ]


def _answer(
    invocation: Invocation,
    tasks: Sequence[Task],
    done: Sequence[Decided],
    words: str,
    *,
    next_step: str = "",
) -> None:
    states = {decided.task: decided.state for decided in done}
    records = [
        {"taskId": task.id, "number": task.number, "state": states.get(task.id)} for task in tasks
    ]
    invocation.answer_all(records, lambda: _lines(tasks, words, next_step))


def _lines(tasks: Sequence[Task], words: str, next_step: str) -> list[Line]:
    lines: list[Line] = [
        title_line(task.number, task.title, Piece(words, Tone.GOOD)) for task in tasks
    ]
    return [*lines, *next_lines([next_step])] if next_step else lines
