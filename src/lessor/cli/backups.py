"""`lessor backup` and `lessor restore`."""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import urlsplit

import click

from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.text import Line

_DUMP = 'pg_dump --format=custom --schema=lessor --file=FILE "$LESSOR_STORE"'
_LOAD = 'pg_restore --clean --if-exists --dbname="$LESSOR_STORE" FILE && lessor restore --new-term'


@command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@pass_invocation
def backup(invocation: Invocation, *, file: Path) -> None:
    """Copy the store into a new file, while everything goes on. It never overwrites one."""
    from lessor.errors import StoreUnsupportedError
    from lessor.store.sqlite import SqliteStore
    from lessor.store.sqlite.restore import backup_store

    _refuse_postgres(invocation, "backed up", _DUMP)
    store = invocation.lessor.store
    if not isinstance(store, SqliteStore) or store.path == ":memory:":
        raise StoreUnsupportedError("This store has no file.", next_step="Name one with --store.")
    size = backup_store(store, file)
    record = {"file": str(file.absolute()), "bytes": size, "store": store.path}
    invocation.answer(record, lambda: _backup_lines(file, size))


@command("restore")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--new-term", is_flag=True, help="The store was rewound by other means: say so to it."
)
@pass_invocation
def restore(invocation: Invocation, *, file: Path | None, new_term: bool) -> None:
    """Put a backup in the store's place. Nobody may have the store open; it is kept beside.

    Every grant of the backup is over, and no id, number, epoch or fence is handed out again.
    --new-term does that alone, after a restore with the database's own means.
    """
    if new_term == (file is not None):
        raise click.UsageError("Say either a backup's FILE or --new-term.")
    if new_term:
        _new_term(invocation)
        return
    from lessor.store.sqlite.restore import restore_store

    _refuse_postgres(invocation, "restored", _LOAD)
    target = _store_file(invocation)
    done = restore_store(file or Path(), target, now=invocation.clock.wall_ms())
    tasks = sum(invocation.lessor.tasks.counts(everywhere=True).values())
    record = {
        "store": str(target),
        "kept": None if done.kept is None else str(done.kept),
        "continued": done.continued,
        "tasks": tasks,
    }
    invocation.answer(
        record, lambda: _restore_lines(target, done.kept, tasks, continued=done.continued)
    )


def _store_file(invocation: Invocation) -> Path:
    from lessor.connect import sqlite_file
    from lessor.errors import InvalidError

    file = sqlite_file(invocation.settings.store_url)
    if file is None:
        raise InvalidError(
            "The store that is named is no file.", next_step="Name one: --store sqlite:///path."
        )
    return file


def _refuse_postgres(invocation: Invocation, verb: str, line: str) -> None:
    from lessor.errors import StoreUnsupportedError

    if urlsplit(invocation.settings.store_url).scheme in {"postgresql", "postgres"}:
        raise StoreUnsupportedError(
            f"A PostgreSQL store is {verb} by the database's own tools.",
            next_step=f"Run: {line}",
        )


def _new_term(invocation: Invocation) -> None:
    from lessor.cli.phrases import next_lines

    store = invocation.lessor.store
    if store.dialect == "sqlite":
        store.once("new_term", high=0)
    else:
        store.once("begin_term")
    terms = {row.key: row.term for row in invocation.lessor.registry.repositories()}
    invocation.answer(
        {"terms": terms},
        lambda: [["a new term has begun: every grant before it is over"], *next_lines(["lessor"])],
    )


def _backup_lines(file: Path, size: int) -> list[Line]:
    from lessor.cli.phrases import bytes_text, next_lines

    # To restore isn't what comes next: whoever pastes it would undo all that happens from now on.
    return [
        [f"{file}  {bytes_text(size)}, readable by you alone"],
        [f"   to go back to it: lessor restore {shlex.quote(str(file))}"],
        *next_lines(["lessor"]),
    ]


def _restore_lines(target: Path, kept: Path | None, tasks: int, *, continued: bool) -> list[Line]:
    from lessor.cli.phrases import next_lines
    from lessor.cli.text import Piece, Tone

    lines: list[Line] = [
        [Piece("restored", Tone.GOOD), f"  {tasks} task{'s' if tasks != 1 else ''} into {target}"]
    ]
    if kept is not None:
        lines.append([f"   the store that was there: {kept}"])
    if not continued:
        why = "there was no store" if kept is None else "it couldn't be read"
        lines.append([f"   {why}: the gap in the numbers is a wide one"])
    lines.append(["   every grant of the backup is over; new tasks' numbers begin behind a gap,"])
    lines.append(["   so that nothing is handed out twice"])
    return [*lines, *next_lines(["lessor doctor"])]
