"""The list of commands, and the group that loads each one when it is called.

A command is added by a line in `COMMANDS`. Its module is imported only when the command runs, so
that a command never pays for what another one needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from lessor.cli.text import Line, Piece, Tone

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: Callable[..., Any]) -> Callable[..., Any]:
        """typing.override, which Python 3.11 lacks."""
        return method


class Part(StrEnum):
    """The parts of the help page."""

    EVERYDAY = "everyday"
    MORE = "more"
    SCRIPTS = "for scripts"
    OPERATORS = "for operators"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One command.

    Attributes:
        home: `module:attribute` of the click command.
        usage: how it is called, on the help page; everyday commands only.
        summary: what it does in one line; everyday commands only.
    """

    home: str
    part: Part
    usage: str = ""
    summary: str = ""


def _everyday(home: str, usage: str, summary: str) -> Entry:
    return Entry(home=f"lessor.cli.{home}", part=Part.EVERYDAY, usage=usage, summary=summary)


def _in(part: Part, home: str) -> Entry:
    return Entry(home=f"lessor.cli.{home}", part=part)


COMMANDS: Mapping[str, Entry] = MappingProxyType(
    {
        "do": _everyday("run:do", 'do "…"', "add a task and run it, here and now"),
        "add": _everyday("add:add", 'add "…"', "put a task into the queue"),
        "run": _everyday("run:run", "run [-n N]", "let agents work through the queue"),
        "show": _everyday("show:show", "show N", "asked, said, changed, checked, why leases ended"),
        "diff": _everyday("diff:diff", "diff N", "what a task changed"),
        "answer": _everyday("deciding:answer", 'answer N "…"', "answer a question; it goes on"),
        "land": _everyday(
            "land:land", "land N | --all", "put a result onto your branch, checked there"
        ),
        "clean": _everyday("cleaning:clean_", "clean", "remove worktrees that hold no work"),
        "demo": _in(Part.MORE, "demo:demo"),
        "import": _in(Part.MORE, "importing:import_"),
        "retry": _in(Part.MORE, "deciding:retry"),
        "why": _in(Part.MORE, "why:why"),
        "who": _in(Part.MORE, "why:who"),
        "logs": _in(Part.MORE, "logs:logs"),
        "open": _in(Part.MORE, "opening:open_"),
        "landed": _in(Part.MORE, "landed:landed"),
        "cancel": _in(Part.MORE, "deciding:cancel"),
        "hold": _in(Part.MORE, "holding:hold"),
        "drop": _in(Part.MORE, "holding:drop"),
        "list": _in(Part.MORE, "listing:list_"),
        "salvage": _in(Part.MORE, "salvages:salvage"),
        "workspace": _in(Part.MORE, "workspaces:workspace"),
        "queue": _in(Part.MORE, "queues:queue"),
        "limit": _in(Part.MORE, "queues:limit"),
        "trust": _in(Part.MORE, "trusting:trust"),
        "push": _in(Part.MORE, "pushing:push"),
        "repo": _in(Part.MORE, "repository:repo"),
        "ready": _in(Part.SCRIPTS, "ready:ready"),
        "claim": _in(Part.SCRIPTS, "claiming:claim"),
        "renew": _in(Part.SCRIPTS, "claiming:renew"),
        "widen": _in(Part.SCRIPTS, "widening:widen"),
        "complete": _in(Part.SCRIPTS, "ending:complete"),
        "fail": _in(Part.SCRIPTS, "ending:fail"),
        "release": _in(Part.SCRIPTS, "ending:release"),
        "acquire": _in(Part.SCRIPTS, "claiming:acquire"),
        "sweep-stale": _in(Part.SCRIPTS, "claiming:sweep_stale"),
        "history": _in(Part.SCRIPTS, "listing:history"),
        "block": _in(Part.SCRIPTS, "deciding:block"),
        "unblock": _in(Part.SCRIPTS, "deciding:unblock"),
        "drill": _in(Part.OPERATORS, "demo:drill"),
        "doctor": _in(Part.OPERATORS, "doctor:doctor"),
        "backup": _in(Part.OPERATORS, "backups:backup"),
        "restore": _in(Part.OPERATORS, "backups:restore"),
        "git": _in(Part.OPERATORS, "server_hooks:git"),
        "force-release": _in(Part.OPERATORS, "deciding:force_release"),
        "completion": _in(Part.OPERATORS, "completion:completion"),
    }
)

_EVERYWHERE = ("-o table|json|jsonl|yaml", "--repo PATH|NAME", "--store URL")

_TYPING_ERROR = 0.7
"""How alike a name has to be to be proposed: of a mistyped one, not of another (`delete`, `release`)."""

_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "help": "lessor --help",
        "top": "lessor -w",
        "watch": "lessor -w",
        "take": "lessor open",
        "cd": "lessor open",
        "wait": "lessor why",
        "stop": "lessor block",
        "abort": "lessor cancel",
        "discard": "lessor clean --discard",
        "requeue": "lessor retry",
        "report": "",
        "status": "lessor",
        "ls": "lessor list",
        "merge": "lessor land",
        "pause": "lessor queue pause",
        "resume": "lessor queue resume",
    }
)
"""What other programs call a command, and what it is here."""


class Commands(click.Group):
    """The group at the root."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, in the order of the help page."""
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name, imported now."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.home.partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The called command; an unknown one is refused with the nearest name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=_TYPING_ERROR)
            meant = _ELSEWHERE.get(args[0], f"lessor {near[0]}" if near else "")
            hint = f" Did you mean `{meant}`?" if meant else ""
            if args[0] == "init":
                hint = " Nothing has to be set up: `lessor` shows what it found here."
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    @override
    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The page of `lessor --help`: eight commands with a line each, the others by name."""
        import sys

        from lessor.cli.output import columns, wants_colour
        from lessor.cli.text import painted

        colour = wants_colour(sys.stdout)
        formatter.write(
            "".join(f"{painted(line, colour=colour)}\n" for line in help_page(columns()))
        )


def help_page(columns: int) -> list[Line]:
    """The help page's lines."""
    from lessor.cli.text import pad, wrap

    intro = "Lessor lends coding agents temporary, provable authority over tasks and paths."
    page = ("lessor", "what runs, waits and needs you here  (-w: live)")
    everyday = [(e.usage, e.summary) for e in COMMANDS.values() if e.part is Part.EVERYDAY]
    lines: list[Line] = [[text] for text in wrap(intro, columns)]
    for usage, summary in (("", ""), page, ("", ""), *everyday):
        for n, text in enumerate(wrap(summary, columns - 20)):
            lines.append([Piece(f"  {pad('' if n else usage, 18)}", Tone.STRONG), text])
    lines.append([])
    for part in (Part.MORE, Part.SCRIPTS, Part.OPERATORS):
        names = " ".join(name for name, entry in COMMANDS.items() if entry.part is part)
        for n, text in enumerate(wrap(names, columns - 17)):
            lines.append([Piece(f"  {pad('' if n else part, 15)}", Tone.FAINT), text])
    lines.append([])
    together = "   ".join(_EVERYWHERE)
    options = [together] if len(together) <= columns - 17 else _EVERYWHERE
    for n, text in enumerate(options):
        lines.append([Piece(f"  {pad('' if n else 'everywhere', 15)}", Tone.FAINT), text])
    return [
        *lines,
        [],
        ["lessor COMMAND --help  explains one."],
    ]
