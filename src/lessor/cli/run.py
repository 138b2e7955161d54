"""`run` and `do`: agents that work, here and now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from lessor.cli.board import read_board
from lessor.cli.diff import size_text
from lessor.cli.invocation import Invocation
from lessor.cli.options import Command, own_words, pass_invocation
from lessor.cli.output import write_lines
from lessor.cli.phrases import next_lines, reason_text, title_line
from lessor.cli.results import changed_files
from lessor.cli.states import NEEDS_YOU, state_text
from lessor.cli.text import Line, Piece, Tone, wrap
from lessor.cli.times import lapse
from lessor.errors import BusyError, InvalidError, LessorError
from lessor.model.task import NewTask, Stage, Task

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: Callable[..., Any]) -> Callable[..., Any]:
        """typing.override, which Python 3.11 lacks."""
        return method


_AGENT_COMMAND = click.argument(
    "agent_command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD ARGS…]"
)
_AGENT = click.option(
    "--agent", metavar="KIND", help="claude, codex, gemini, or one of lessor.toml's."
)
_BASE = click.option(
    "--base", metavar="REV", help="What to begin from; else the branch that you are on."
)

_ANYWAY = click.option(
    "--anyway", is_flag=True, help="Also where the check fails before anything was changed."
)


_STAGES = ("verified", "unverified", "submitted", "pushed", "landed", "succeeded")
_STATES = (NEEDS_YOU, "quarantined", "reconciling", "failed", "blocked", "cancelled", "queued")


class _AgentCommand(Command):
    """A command that takes an agent's after `--`, and none without it.

    Else the second word of a title that nobody put in quotes is a program that is started.
    """

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        marked = "--" in args
        rest = super().parse_args(ctx, args)
        given = ctx.params.get("agent_command") or ()
        if given and not marked:
            words = " ".join([*filter(None, [ctx.params.get("title")]), *given])
            step = f'Put a title in quotes: lessor do "{words}".' if ctx.params.get("title") else ""
            raise InvalidError(
                f"{given[0]!r} stands where an agent's command would, and no `--` is before it.",
                next_step=f"{step} An agent's command comes last: -- CMD ARGS.".strip(),
            )
        return rest


@click.command(
    "run",
    cls=_AgentCommand,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": True},
)
@click.option(
    "-n",
    "workers",
    type=click.IntRange(1, 64),
    help="How many agents work side by side; 1 unless told.",
)
@click.option("--queue", metavar="NAME", help="The queue to work on.")
@_AGENT
@_BASE
@_ANYWAY
@click.option("--stay", is_flag=True, help="Wait for more when the queue is empty.")
@_AGENT_COMMAND
@pass_invocation
def run(
    invocation: Invocation,
    *,
    workers: int | None,
    queue: str | None,
    agent: str | None,
    base: str | None,
    anyway: bool,
    stay: bool,
    agent_command: tuple[str, ...],
) -> int:
    """Let agents work through the queue, each task in a worktree of its own.

    The command after `--` is the agent; `{prompt}` and `{brief}` in it become one argument each.
    Ctrl-C finishes what runs, twice stops it and keeps everything.
    """
    from lessor.cli.notes import ring
    from lessor.cli.running import (
        ensure_trusted,
        from_here,
        options_for,
        project_at_base,
        run_here,
        settle_unlanded,
    )

    project = project_at_base(invocation, base)
    agent_command = from_here(invocation, agent_command)
    options = options_for(
        project,
        command=agent_command,
        agent=agent,
        workers=workers,
        queue=queue,
        base=base,
        anyway=anyway,
        stay=stay,
    )
    ensure_trusted(invocation, project)
    settle_unlanded(invocation, project)
    code, done = run_here(invocation, options)
    numbers = sorted(set(done.tally.numbers.values()))
    if invocation.for_people:
        write_lines(_summary(invocation, numbers, options.workers))
    if numbers and not code and not done.stopped_early:
        ring("all is done")
    return code


@click.command("do", cls=_AgentCommand)
@click.argument("title")
@_AGENT
@_BASE
@_ANYWAY
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="PATH",
    help="Begin with these paths; else it grows.",
)
@click.option("--check", metavar="CMD", help="The command that judges the result.")
@click.option("--prompt", metavar="FILE|-", help="What the agent is told, beside the title.")
@_AGENT_COMMAND
@pass_invocation
def do(
    invocation: Invocation,
    *,
    title: str,
    agent: str | None,
    base: str | None,
    anyway: bool,
    scopes: tuple[str, ...],
    check: str | None,
    prompt: str | None,
    agent_command: tuple[str, ...],
) -> int:
    """Add one task and run it in the foreground.

    Exits with 75 where it couldn't begin, as something else is in its way: it stays in the queue.
    """
    from lessor.cli.add import expand_scopes
    from lessor.cli.files import read_text
    from lessor.cli.running import (
        ensure_trusted,
        from_here,
        options_for,
        project_at_base,
        run_here,
        settle_unlanded,
    )
    from lessor.runner.run import refuse_missing_agent

    title = own_words(title)
    words = "" if prompt is None else read_text(prompt, what="prompt")
    project = project_at_base(invocation, base)
    agent_command = from_here(invocation, agent_command)
    wish = options_for(
        project, command=agent_command, agent=agent, workers=1, queue=None, base=base
    )
    refuse_missing_agent(wish)
    ensure_trusted(invocation, project)
    settle_unlanded(invocation, project)
    made = invocation.lessor.tasks.submit(
        [
            NewTask(
                title=title,
                prompt=words,
                queue=wish.queue,
                repository=invocation.repository,
                scopes=expand_scopes(invocation, project, scopes),
                check=check,
                max_attempts=project.attempts,
            )
        ]
    )[0]
    options = options_for(
        project,
        command=agent_command,
        agent=agent,
        workers=1,
        queue=None,
        base=base,
        anyway=anyway,
        task=made.task,
    )
    if invocation.for_people:
        write_lines([title_line(made.number, title, Piece(options.agent, Tone.NAME))])
    try:
        code, done = run_here(invocation, options)
    except LessorError as error:
        rest = f"#{made.number} stays in the queue; lessor cancel {made.number} takes it out."
        error.next_step = f"{error.next_step} {rest}".strip()
        error.facts = {**error.facts, "number": made.number}
        raise
    if invocation.for_people:
        write_lines(_ending(invocation, invocation.lessor.tasks.task(made.task)))
    return code if made.task in done.tally.last else BusyError.exit_code


def _summary(invocation: Invocation, numbers: Sequence[int], workers: int) -> list[Line]:
    tasks = [
        invocation.lessor.tasks.task_numbered(n, repository=invocation.repository) for n in numbers
    ]
    if not tasks:
        return _nothing(invocation)
    counts = Counter(map(state_text, tasks))
    parts = [
        f"{n} {'need you' if word == NEEDS_YOU and n > 1 else word}"
        for word in (*_STAGES, *_STATES, "running")
        if (n := counts[word])
    ]
    steps = _steps(tasks)
    if workers == 1 and len(tasks) > 1:
        steps.append("lessor run -n 3  (more side by side)")
    return [[], [" · ".join(parts)], *next_lines(steps)]


def _nothing(invocation: Invocation) -> list[Line]:
    """What a run that got no task says: of those that wait, how many, and how to ask why."""
    board = read_board(invocation)
    if not board.queued:
        return [["nothing to claim"], *next_lines(['lessor add "…"', "lessor"])]
    first = next((task for task, _ in board.waits), None) or next(iter(board.ready), None)
    said = "1 task waits" if board.queued == 1 else f"{board.queued} tasks wait"
    steps = [f"lessor why {first.number}"] if first else []
    return [[f"nothing to claim: {said}"], *next_lines([*steps, "lessor"])]


def _steps(tasks: Sequence[Task]) -> list[str]:
    """What is worth the most after a run: who needs a person, what went wrong, what can land."""
    for task in tasks:
        if task.state == "needs_person":
            return [f'lessor answer {task.number} "…"']
    for task in tasks:
        if task.state != "succeeded":
            return [f"lessor show {task.number}"]
    if all(task.stage is Stage.LANDED for task in tasks):
        return ["lessor"]
    if len(tasks) > 1:
        return ["lessor", "lessor land --all"]
    return [f"lessor diff {tasks[0].number}", f"lessor land {tasks[0].number}"]


def _ending(invocation: Invocation, task: Task) -> list[Line]:
    number = task.number
    if task.state == "succeeded":
        leases = invocation.lessor.leases.leases(task=task.id)
        spent = sum((lease.ended_ms or lease.now_ms) - lease.granted_ms for lease in leases)
        files = changed_files(invocation, task)
        facts = [task.branch or "", size_text(files), lapse(spent)]
        head: Line = [
            Piece(str(task.stage), Tone.GOOD),
            *(f"  {fact}" for fact in facts if fact),
        ]
        steps = [f"lessor diff {number}", f"lessor land {number}"] if files else []
        return [[], head, *next_lines([*steps, f"lessor show {number}"])]
    if task.state == "queued":
        return _queued(invocation, task)
    steps = (
        [f'lessor answer {number} "…"']
        if task.state == "needs_person"
        else [f"lessor why {number}", f"lessor retry {number}"]
    )
    return [[], [Piece(state_text(task), Tone.WARN)], *next_lines(steps)]


def _queued(invocation: Invocation, task: Task) -> list[Line]:
    """The ending of a task that didn't begin, or was given back: why it waits, and what ends that."""
    why = invocation.lessor.tasks.why(task.id)
    reason = reason_text(why, task, now=invocation.lessor.now_ms())
    told = f"queued: {reason.removeprefix('is ')}"
    lines: list[Line] = [[Piece(line, Tone.WARN)] for line in wrap(told, invocation.columns)]
    steps = dict.fromkeys([why.next_step or "lessor run", f"lessor why {task.number}"])
    return [[], *lines, *next_lines(list(steps))]
