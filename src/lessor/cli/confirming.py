"""Asking before something can't be undone."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from lessor.cli.invocation import Invocation
from lessor.cli.output import write_lines
from lessor.cli.text import Line
from lessor.errors import DeniedError

yes_option = click.option("--yes", is_flag=True, help="Don't ask; for scripts.")


def confirm(
    invocation: Invocation, question: str, shown: Sequence[Line], *, yes: bool, again: str
) -> None:
    """Show what would go, and go on only if the person agrees.

    Args:
        invocation: what the command stands on.
        question: what they say yes or no to.
        shown: what goes, for people.
        yes: they agreed on the command line.
        again: the command that agrees without a terminal.

    Raises:
        DeniedError: they said no, or nobody can be asked.
    """
    if yes:
        return
    if invocation.for_people:
        write_lines(shown, sys.stderr)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise DeniedError(
            "Nobody has agreed to that, and there is no terminal to ask on.",
            next_step=f"If it is right: {again}",
        )
    if not click.confirm(question, err=True):
        raise DeniedError("You didn't agree; nothing was removed.")
