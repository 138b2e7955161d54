"""`lessor git`: what a repository that is pushed to asks about each push."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from lessor.cli.invocation import Invocation
from lessor.cli.options import Command, pass_invocation, shared_options
from lessor.cli.phrases import next_lines
from lessor.cli.text import Line, Piece, Tone
from lessor.errors import InvalidError
from lessor.git.repository import Repository, find_repository


@click.group(
    "git",
    params=shared_options(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
def git() -> None:
    """Hooks of a repository that is pushed to."""


@git.command("install-server-hooks", cls=Command, short_help="Refuse stale pushes there.")
@click.argument("place", metavar="REPO.git", type=click.Path(path_type=Path))
@pass_invocation
def install_server_hooks(invocation: Invocation, *, place: Path) -> None:
    """Let a repository on this machine refuse stale pushes, whoever makes them.

    Run it inside of a clone, or with --repo: the leases of that repository are what REPO.git asks
    about. A leased branch is then pushed by its live holder alone, with `lessor push`, and only with
    paths that the lease covers; all other references go by `git config lessor.unleased` there.
    Hooks that are there already go on running, before Lessor's.
    """
    from lessor.git import server_hooks
    from lessor.hook import client
    from lessor.receive.keeper import SETTINGS, settings_text, stop_keeper

    target, standing = find_repository(place), invocation.standing
    own = standing.checkout
    itself = own is not None and own.repository.common_dir == target.common_dir
    if itself and not target.is_bare:
        raise InvalidError(
            f"{place} is this clone itself; the hooks go where pushes arrive.",
            next_step="Name that repository: lessor git install-server-hooks REPO.git.",
        )
    if standing.id is None or itself:
        raise InvalidError(
            f"Whose leases {place} asks about isn't clear.",
            next_step="Run this inside of a clone of it, or name the repository: --repo NAME.",
        )
    settings = invocation.settings
    store = _absolute(settings.store_url)
    folder = server_hooks.install_server_hooks(
        target,
        client=Path(client.__file__).resolve(),
        base=getattr(sys, "_base_executable", "") or sys.executable,
        python=sys.executable,
        beside={
            SETTINGS: settings_text(store=store, listen=settings.listen_dsn, repository=standing.id)
        },
    )
    stop_keeper(folder)  # one that knows other settings
    record = {
        "place": str(target.common_dir),
        "repo": standing.key,
        "settings": str(folder),
        "hooks": list(server_hooks.NAMES),
    }
    invocation.answer(record, lambda: _installed(target, standing.name, folder))


@git.command("uninstall-server-hooks", cls=Command, short_help="Take them out again.")
@click.argument("place", metavar="REPO.git", type=click.Path(path_type=Path))
@pass_invocation
def uninstall_server_hooks(invocation: Invocation, *, place: Path) -> None:
    """Take Lessor's hooks out again, and put back those that were there before."""
    from lessor.git import server_hooks
    from lessor.receive.keeper import stop_keeper

    target = find_repository(place)
    found = server_hooks.uninstall_server_hooks(target)
    folder = target.common_dir / server_hooks.FOLDER
    if folder.is_dir():
        stop_keeper(folder)
    what = "are out" if found else "weren't there"
    record = {"place": str(target.common_dir), "removed": found}
    invocation.answer(
        record, lambda: [[Piece(str(target.common_dir), Tone.STRONG), f": Lessor's hooks {what}"]]
    )


def _absolute(store: str) -> str:
    """The store as another process, in another directory, opens it."""
    scheme, mark, rest = store.partition("://")
    if mark and scheme != "sqlite":
        return store
    place = f"/{rest.lstrip('/')}" if mark and rest.startswith("/") else (rest if mark else store)
    if place == ":memory:":
        raise InvalidError("A store in memory is nobody else's.", next_step="Name a file: --store.")
    return f"sqlite://{os.path.abspath(os.path.expanduser(place))}"  # noqa: PTH100, PTH111


def _installed(target: Repository, name: str, folder: Path) -> list[Line]:
    return [
        [
            Piece(str(target.common_dir), Tone.STRONG),
            f" asks about each push whether {name} is leased",
        ],
        ["   a leased branch: only its live holder, only its paths, with `lessor push`"],
        ["   anything else: as before, unless `git config lessor.unleased refuse` says otherwise"],
        [Piece(f"   its settings are in {folder}", Tone.FAINT)],
        *next_lines(["lessor push N", f"lessor git uninstall-server-hooks {target.common_dir}"]),
    ]
