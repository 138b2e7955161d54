"""`lessor queue` and `lessor limit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from lessor.cli.invocation import Invocation
from lessor.cli.options import Command, duration_option, group, pass_invocation
from lessor.cli.phrases import next_lines
from lessor.cli.text import Line, Piece, Tone, table
from lessor.cli.times import lapse

NO_LIMIT = "none"


@group("queue")
@click.pass_context
def queue(ctx: click.Context) -> None:
    """List queues, pause and resume them, change their settings."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_queues)


@queue.command("list", cls=Command)
@pass_invocation
def list_queues(invocation: Invocation) -> None:
    """List queues that have settings or unfinished tasks."""
    found = invocation.lessor.registry.queues()
    invocation.answer_all(
        [_record(row) for row in found], lambda: _lines(found, invocation.columns)
    )


@queue.command("pause", cls=Command)
@click.argument("name", default="default")
@pass_invocation
def pause(invocation: Invocation, *, name: str) -> None:
    """Grant nothing more from a queue; what runs goes on."""
    _set(invocation, name, step=f"lessor queue resume {name}", paused=True)


@queue.command("resume", cls=Command)
@click.argument("name", default="default")
@pass_invocation
def resume(invocation: Invocation, *, name: str) -> None:
    """Grant from a queue again."""
    _set(invocation, name, step="lessor run", paused=False)


@queue.command("set", cls=Command)
@click.argument("name")
@duration_option("--wait-max", "wait_max_ms", help="A task that waits longer is overdue.")
@click.option("--overtake-limit", type=int, help="Grants that may pass a waiting task.")
@duration_option("--overtake-time", "overtake_ms", help="For how long it may be passed.")
@pass_invocation
def set_queue(
    invocation: Invocation,
    *,
    name: str,
    wait_max_ms: int | None,
    overtake_limit: int | None,
    overtake_ms: int | None,
) -> None:
    """Change a queue's settings; what isn't given stays."""
    _set(
        invocation,
        name,
        step="lessor queue list",
        wait_max_ms=wait_max_ms,
        overtake_limit=overtake_limit,
        overtake_ms=overtake_ms,
    )


@click.command("limit", cls=Command)
@click.argument("kind", required=False, type=click.Choice(["queue", "key", "agent"]))
@click.argument("key", required=False)
@click.argument("maximum", required=False)
@pass_invocation
def limit(
    invocation: Invocation, *, kind: str | None, key: str | None, maximum: str | None
) -> None:
    """Show how many leases a queue, a key or an agent may have at once, or change one.

    \b
    lessor limit                       all limits
    lessor limit agent claude 3        at most three
    lessor limit agent claude none     no limit any more
    """  # noqa: D301 - click takes the character \b for "leave the lines as they are"
    registry = invocation.lessor.registry
    if kind is not None:
        if key is None or maximum is None:
            raise click.UsageError("Say a kind, a name and a number, or nothing at all.")
        if maximum != NO_LIMIT and not maximum.isdecimal():
            raise click.UsageError(f"{maximum!r} is neither a number nor `{NO_LIMIT}`.")
        registry.set_limit(kind, key, None if maximum == NO_LIMIT else int(maximum[:12]))
    found = registry.limits()
    records = [{"kind": k, "key": name, "maximum": most} for k, name, most in found]
    invocation.answer_all(records, lambda: _limit_lines(found, invocation.columns))


def _set(invocation: Invocation, name: str, *, step: str, **settings: Any) -> None:
    row = invocation.lessor.registry.set_queue(name, **settings)
    invocation.answer(
        _record(row), lambda: [*_lines([row], invocation.columns), *next_lines([step])]
    )


def _record(row: Mapping[str, int | str]) -> dict[str, object]:
    return {
        "name": row["name"],
        "paused": bool(row["paused"]),
        "waitMaxMs": row["wait_max_ms"],
        "overtakeLimit": row["overtake_limit"],
        "overtakeMs": row["overtake_ms"],
    }


def _lines(rows: Sequence[Mapping[str, int | str]], columns: int) -> list[Line]:
    if not rows:
        return [["no queue has tasks or settings"]]
    return table(
        (
            [
                str(row["name"]),
                Piece("paused", Tone.WARN) if row["paused"] else Piece("open", Tone.GOOD),
                f"overdue after {lapse(int(row['wait_max_ms']))}",
                f"passed at most {row['overtake_limit']} times or {lapse(int(row['overtake_ms']))}",
            ]
            for row in rows
        ),
        columns=columns,
    )


def _limit_lines(found: Sequence[tuple[str, str, int]], columns: int) -> list[Line]:
    if not found:
        return [["no limits are set"]]
    return table(
        ([kind, name, f"at most {maximum} at once"] for kind, name, maximum in found),
        columns=columns,
    )
