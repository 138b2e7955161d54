"""`lessor open`: into a task's worktree."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import click

from lessor.cli.finding import find_task
from lessor.cli.invocation import Invocation
from lessor.cli.looks import workspace_record
from lessor.cli.options import command, pass_invocation
from lessor.cli.output import write_lines
from lessor.cli.phrases import title_line
from lessor.cli.text import Line, Piece, Tone
from lessor.errors import LessorError, NotFoundError
from lessor.git.refs import BRANCHES, read_ref
from lessor.model.lifecycle import TaskState
from lessor.model.task import Task
from lessor.model.workspace import Workspace

_SHELL = "/bin/sh"


@command("open")
@click.argument("task")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD ARGS…]")
@pass_invocation
def open_(invocation: Invocation, *, task: str, program: tuple[str, ...]) -> None:
    """Go into a task's worktree: a shell there, or the command after `--`.

    Without a terminal it prints where that is: cd "$(lessor open 3)"
    """
    found = find_task(invocation, task)
    place = _place(invocation, found)
    inside = bool(program) or (sys.stdin.isatty() and sys.stdout.isatty())
    if not inside or not invocation.for_people:
        record = workspace_record(invocation, place, found)
        invocation.answer(record, lambda: [[place.path]])
        return
    write_lines(_lines(invocation, found, place, shell=not program), sys.stderr)
    invocation.close()
    sys.stdout.flush()
    argv = program or (os.environ.get("SHELL") or _SHELL,)
    os.chdir(place.path)
    _become(argv)


def _place(invocation: Invocation, task: Task) -> Workspace:
    """The task's newest worktree on this machine.

    Raises:
        NotFoundError: there is none any more.
    """
    known = invocation.lessor.workspaces.of_task(task.id)
    here = [one for one in known if one.host_id == invocation.host_id and Path(one.path).is_dir()]
    if here:
        return here[-1]
    raise NotFoundError(
        f"#{task.number} has no worktree on this machine.",
        next_step=_instead(invocation, task),
        number=task.number,
    )


def _instead(invocation: Invocation, task: Task) -> str:
    """What shows the work all the same: its branch stays when a worktree goes."""
    checkout = invocation.standing.checkout
    if checkout is not None and task.branch:
        repository = checkout.repository
        if read_ref(repository.common_dir, f"{BRANCHES}{task.branch}") is not None:
            beside = repository.root.with_name(f"{repository.root.name}-{task.number}")
            where = f"{shlex.quote(os.fspath(beside))} {task.branch}"
            return f"Its branch is here; look at it beside yours: git worktree add {where}"
    return f"See what became of it: lessor show {task.number}."


def _lines(invocation: Invocation, task: Task, place: Workspace, *, shell: bool) -> list[Line]:
    lines: list[Line] = [title_line(task.number, task.title), [f"   {place.path}"]]
    if task.state is TaskState.RUNNING:
        leases = invocation.lessor.leases.leases(task=task.id, live=True)
        who = leases[-1].agent if leases else "somebody"
        lines.append([Piece(f"   {who} works in it: look, and write nothing", Tone.WARN)])
    else:
        lines.append(["   nobody has its lease: commit here with git commit --no-verify"])
    return [*lines, [Piece("   exit leads back", Tone.FAINT)]] if shell else lines


def _become(argv: tuple[str, ...]) -> None:
    """Go on as that program, in this terminal.

    Raises:
        NotFoundError: there is no such program.
    """
    # Python ignores a closed pipe, and a program begins with what is ignored.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - a person's own command, as they typed it
    except (FileNotFoundError, ValueError) as error:  # Python starts nothing without a name
        raise NotFoundError(
            f"There is no program {argv[0]!r}.", next_step="Give its path after `--`."
        ) from error
    except OSError as error:
        raise LessorError(f"{argv[0]} can't be started: {error.strerror}.") from error
