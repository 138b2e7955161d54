"""The entry point: runs one command, and turns every refusal into a sentence and an exit code.

0 ok · 1 error, or some failed · 2 usage · 3 nothing to claim · 4 not allowed · 5 not found ·
6 conflict · 7 lease lost · 8 waits for a person · 75 try again · 130 Ctrl-C · 129, 143 SIGHUP, SIGTERM ·
141 a closed pipe
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from lessor.cli.commands import Commands
from lessor.cli.interruption import Interruption
from lessor.cli.invocation import Invocation
from lessor.cli.options import pass_invocation, shared_options
from lessor.cli.outlet import PIPE_CLOSED, UnheardError, failure, open_outlet, unwritten
from lessor.cli.problem import problem_of, report
from lessor.errors import LessorError
from lessor.git.slow import told_when_slow

OK = 0
INTERRUPTED = 128 + signal.SIGINT

COMPLETE = "_LESSOR_COMPLETE"
_NAME = "lessor"


@click.group(
    cls=Commands,
    invoke_without_command=True,
    params=shared_options(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name=_NAME, message="lessor %(version)s")
@click.option("-w", "--watch", is_flag=True, help="Keep the page up to date.")
@pass_invocation
@click.pass_context
def root(ctx: click.Context, invocation: Invocation, *, watch: bool) -> None:
    """Show what runs, waits and needs you in this repository."""
    ctx.call_on_close(invocation.close)
    told_when_slow.set(invocation.tell_of_slow_git)
    if ctx.invoked_subcommand is None:
        from lessor.cli.page import show_page

        show_page(invocation, watch=watch)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    _open_closed_streams()
    sys.stdout = open_outlet(sys.stdout)
    interruption = Interruption()
    with interruption.listening():
        code = run(list(sys.argv[1:] if arguments is None else arguments))
    sys.exit(interruption.exit_code if code == INTERRUPTED else code)


def _open_closed_streams() -> None:
    """Python leaves None where a shell closed a stream (`>&-`); who writes there reaches nobody."""
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()


def _nowhere() -> TextIO:
    # The lowest free descriptor is the closed one: nothing that opens later writes to the store by it.
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)


def run(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    code: object = OK
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except UnheardError as unheard:
        return report(unheard.problem, arguments)
    except (LessorError, click.ClickException, OSError) as error:
        if failure() is None or not isinstance(error, OSError):
            return report(problem_of(error, arguments), arguments)
    failed = failure()
    if failed is None:
        return code if isinstance(code, int) else OK
    problem = unwritten(failed)
    # Of a reader that went away nobody wants to hear.
    return problem.exit_code if problem.exit_code == PIPE_CLOSED else report(problem, arguments)


def _invoke(arguments: list[str]) -> object:
    """What the command returns; click's own `main` would answer a closed pipe with 1."""
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, _NAME, COMPLETE, instruction)
    try:
        with root.make_context(_NAME, arguments) as ctx:
            return root.invoke(ctx)
    except click.exceptions.Exit as done:
        return done.exit_code
