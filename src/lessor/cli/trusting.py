"""`lessor trust`: agree, once, to what a repository's files would run."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from lessor.cli.draft import DRAFT, has_draft
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.output import write_lines
from lessor.cli.phrases import next_lines
from lessor.cli.text import Line, Piece, Tone, pad, shown, width, wrap
from lessor.errors import DeniedError, InvalidError
from lessor.project import Project
from lessor.project.trust import trust as remember

LABEL = 12
SHORTEST_DIGEST = 8


@command("trust")
@click.argument("digest", required=False)
@pass_invocation
def trust(invocation: Invocation, *, digest: str | None) -> None:
    """Show the commands that this repository's files name, and agree to run them.

    It asks once; a commit that changes one of them asks again. Without a terminal, DIGEST agrees to
    exactly the commands that were shown with it.
    """
    project = invocation.project()
    if not project.trusted:
        agree(
            invocation,
            project.commands,
            digest=project.digest,
            given=digest,
            again="lessor trust",
        )
    record = {
        "trusted": True,
        "digest": project.digest,
        "commit": project.commit,
        "commands": [
            {"what": what, "command": text, "origin": origin}
            for what, text, origin in project.commands
        ],
    }
    invocation.answer(record, lambda: _lines(invocation, project))


def agree(
    invocation: Invocation,
    commands: Sequence[tuple[str, str, str]],
    *,
    digest: str,
    given: str | None,
    again: str,
) -> None:
    """Show commands and remember that the person agrees to them.

    Args:
        commands: (what, command, origin) each.
        given: a digest from the command line, which agrees without a question.
        again: the command that agrees without a terminal, the digest left out.

    Raises:
        DeniedError: they said no, or nobody can be asked.
        InvalidError: the digest that was given names other commands.
    """
    listed = [f"{what}: {text} ({origin})" for what, text, origin in commands]
    if given is not None:
        if len(given) < SHORTEST_DIGEST or not digest.startswith(given.lower()):
            raise InvalidError(
                f"{given[:40]!r} isn't the digest of these commands.",
                next_step=f"Look at them, then: {again} {digest[:12]}",
                digest=digest,
            )
    else:
        if invocation.for_people:
            write_lines(command_lines(commands, invocation.columns), sys.stderr)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise DeniedError(
                "Nobody has agreed to run these commands yet, and there is no terminal to ask on.",
                next_step=f"If they are right: {again} {digest[:12]}",
                digest=digest,
                commands=listed,
            )
        if not click.confirm("Run them here from now on?", err=True):
            raise DeniedError("You didn't agree; nothing was run.", commands=listed)
    remember(invocation.settings, digest, note="".join(f"{line}\n" for line in listed))


def command_lines(commands: Sequence[tuple[str, str, str]], columns: int) -> list[Line]:
    """What would be run, each with the file that names it."""
    lines: list[Line] = []
    labels = [f"  {shown(what)}  " for what, _, _ in commands]
    left = max([LABEL, *map(width, labels)])
    for label, (_, text, origin) in zip(labels, commands, strict=True):
        parts = wrap(shown(text), max(columns - left - len(origin) - 4, 30))
        lines.append(
            [Piece(pad(label, left), Tone.NAME), parts[0], Piece(f"  ({origin})", Tone.FAINT)]
        )
        lines += [[pad("", left), part] for part in parts[1:]]
    return lines


def _lines(invocation: Invocation, project: Project) -> list[Line]:
    if not project.commands:
        told: list[Line] = [["this repository names nothing to run"]]
        if has_draft(invocation):
            told.append([Piece(DRAFT, Tone.WARN)])
        return [*told, *next_lines(["lessor"])]
    return [
        [Piece("trusted", Tone.GOOD), f"  {project.digest[:12]}, in this clone, until one changes"],
        *next_lines(["lessor run"]),
    ]
