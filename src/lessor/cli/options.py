"""What every command takes, and the kinds of values that several of them take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lessor.cli.given import give
from lessor.cli.invocation import Invocation
from lessor.cli.output import Format

_Function = TypeVar("_Function", bound=Callable[..., Any])

_ELLIPSES = frozenset({"…", "..."})

pass_invocation = click.make_pass_decorator(Invocation, ensure=True)


def duration_option(*names: str, **more: Any) -> Callable[[_Function], _Function]:
    """An option for a duration such as 90s, 20m, 4h; the function gets milliseconds."""
    return click.option(*names, metavar="TIME", callback=_read_duration, **more)


def own_words(text: str) -> str:
    """`text`, unless it is only the ellipsis that stands for somebody's words in a command that is shown.

    Raises:
        InvalidError: the command was copied as it stands.
    """
    from lessor.errors import InvalidError

    if text.strip() in _ELLIPSES:
        raise InvalidError(
            f"{text.strip()} stands for your own words.", next_step="Write them in its place."
        )
    return text


class Command(click.Command):
    """A command with the options that every command has."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params.extend(shared_options())


def command(name: str, **more: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command out of a function; its docstring is the help."""
    return click.command(name, cls=Command, **more)


def group(name: str) -> Callable[[Callable[..., Any]], click.Group]:
    """Make a group of commands out of a function that runs when none of them is called."""
    return click.group(
        name,
        invoke_without_command=True,
        params=shared_options(),
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def shared_options() -> list[click.Parameter]:
    """-o, --repo and --store; they set the invocation, wherever on the line they stand."""
    return [
        click.Option(
            ["-o", "--output"],
            type=click.Choice([form.value for form in Format]),
            expose_value=False,
            callback=_set("output", Format),
            help="How results are written; yaml is the same as json.",
        ),
        click.Option(
            ["--repo"],
            metavar="PATH|NAME",
            expose_value=False,
            callback=_set("repo", str),
            help="The repository: a path in it, or its name; `none` for tasks without one.",
        ),
        click.Option(
            ["--store"],
            metavar="URL",
            expose_value=False,
            callback=_set("store", str),
            help="sqlite:///path or postgresql://…; else LESSOR_STORE, else your own file.",
        ),
    ]


def _set(
    name: str, make: Callable[[str], object]
) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def callback(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            setattr(ctx.ensure_object(Invocation), name, make(value))
            if name in {"repo", "store"}:
                give(name, value)

    return callback


def _read_duration(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    from lessor.errors import InvalidError
    from lessor.project.duration import parse_duration

    if value is None:
        return None
    try:
        return parse_duration(value)
    except InvalidError as error:
        raise click.BadParameter(str(error), ctx, param) from error
