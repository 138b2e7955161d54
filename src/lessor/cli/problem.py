"""What went wrong, for people and for programs."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from lessor.cli.given import as_given
from lessor.cli.output import Format, Record, columns, write_json, write_lines
from lessor.cli.text import Line, Piece, Tone, width, wrap
from lessor.errors import LessorError

_ENDS_WITH_COMMAND = re.compile(r"(^|: )(lessor|git)( (?:[^.;`…]|\.(?=\S))+)?\.$")
FAILED = 1
USAGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A refusal or a failure.

    Attributes:
        code: stable; part of the interface.
        message: what happened, in a sentence.
        next_step: what to do about it.
        facts: the values of both sides.
    """

    code: str
    message: str
    exit_code: int
    next_step: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def lines(self, wide: int | None = None) -> list[Line]:
        """For people; the sentences in lines of at most `wide` columns, a command as it can be copied."""
        told = _lines(self.message)
        if wide is not None:
            told = [part for line in told for part in _broken(line, wide - len("lessor: "))]
        lines: list[Line] = [[Piece("lessor: ", Tone.BAD), line] for line in told]
        lines += [
            [Piece("  next  ", Tone.FAINT), _to_copy(line)] for line in _lines(self.next_step)
        ]
        return lines

    def record(self) -> Record:
        """For programs."""
        return {
            "code": self.code,
            "message": self.message,
            "nextStep": self.next_step,
            "exitCode": self.exit_code,
            "facts": dict(self.facts),
        }


def report(problem: Problem, arguments: Sequence[str]) -> int:
    """Write what went wrong to standard error, in the format that was asked for; the exit code."""
    with suppress(OSError):  # then the exit code is all that can be said
        if asked_format(arguments) is Format.TABLE:
            wide = columns() if sys.stderr.isatty() else None
            write_lines(problem.lines(wide), sys.stderr)
        else:
            write_json(problem.record(), indent=None, stream=sys.stderr)
    return problem.exit_code


def problem_of(
    error: LessorError | click.ClickException | OSError, arguments: Sequence[str] = ()
) -> Problem:
    """The problem that an exception tells of.

    Args:
        arguments: what was typed; click forgets whose option it is that has no value.
    """
    if isinstance(error, LessorError):
        return Problem(
            code=error.code,
            message=error.message,
            next_step=as_given(error.next_step),
            exit_code=error.exit_code,
            facts=error.facts,
        )
    if isinstance(error, click.UsageError):
        hint = f"See `{error.ctx.command_path if error.ctx else _called(arguments)} --help`."
        # Click puts each choice of an argument that is missing on a line of its own, behind a tab.
        message = _without_command(error) or error.format_message().replace("\n\t", " ")
        return Problem(code="usage", message=message, next_step=hint, exit_code=USAGE)
    if isinstance(error, click.ClickException):
        return Problem(code="failed", message=error.format_message(), exit_code=FAILED)
    where = f"{error.filename}: " if error.filename else ""
    return Problem(code="system", message=f"{where}{error.strerror or error}.", exit_code=FAILED)


def _called(arguments: Sequence[str]) -> str:
    from lessor.cli.commands import COMMANDS

    return " ".join(["lessor", *[word for word in arguments if word in COMMANDS][:1]])


def _without_command(error: click.UsageError) -> str:
    """Of a group that was called alone, which commands it has; click has its whole help there."""
    ctx = error.ctx
    if not isinstance(error, NoArgsIsHelpError) or ctx is None:
        return ""
    names = ctx.command.list_commands(ctx) if isinstance(ctx.command, click.Group) else []
    return f"{ctx.command_path} needs one of: {', '.join(names)}."


def _to_copy(line: str) -> str:
    """A step that ends with a command, without the sentence's own dot: that would be copied along."""
    return line[:-1] if _ENDS_WITH_COMMAND.search(line) else line


def _broken(line: str, wide: int) -> list[str]:
    # A word that is longer than a line, such as a path, is left whole.
    return wrap(line, wide) if all(width(word) <= wide for word in line.split(" ")) else [line]


def asked_format(arguments: Sequence[str]) -> Format:
    """The format that a command line asks for, read without understanding the rest of it."""
    asked = Format.TABLE
    for place, word in enumerate(arguments):
        if word == "--":
            break
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        if word in {"-o", "--output"}:
            asked = _format(following, asked)
        elif word.startswith("--output="):
            asked = _format(word.partition("=")[2], asked)
        elif word.startswith("-o") and not word.startswith("--"):
            asked = _format(word[2:].removeprefix("="), asked)
    return asked


def _format(text: str, otherwise: Format) -> Format:
    return Format(text) if text in {*Format} else otherwise


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
