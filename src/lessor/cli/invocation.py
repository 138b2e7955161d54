"""One call of the command line: its settings, its store, its repository, its way to answer.

Everything is opened when it is first used: `lessor --help` opens nothing, and a command that needs
no repository runs outside of one.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lessor.cli.output import Format, Record, columns, write_lines, write_record, write_records
from lessor.cli.text import Line, Piece, Tone, shown
from lessor.cli.times import lapse
from lessor.clock import Clock, SystemClock
from lessor.errors import StoreUnavailableError

if TYPE_CHECKING:
    from lessor.cli.repositories import Standing
    from lessor.project import Project
    from lessor.service.lessor import Lessor
    from lessor.settings import Settings


class Invocation:
    """What a command stands on.

    Attributes:
        store: the URL after --store.
        repo: what stands after --repo.
        output: the format that was asked for.
    """

    def __init__(self) -> None:
        self.store: str | None = None
        self.repo: str | None = None
        self.output = Format.TABLE
        self.clock: Clock = SystemClock()
        self._standing: Standing | None = None

    @cached_property
    def settings(self) -> Settings:
        """This machine's and person's settings."""
        from lessor.settings import load_settings

        return load_settings(store=self.store)

    @cached_property
    def host_id(self) -> str:
        """This host's own id."""
        from lessor.runner.host_id import host_id

        try:
            return host_id(self.settings.state_dir)
        except OSError as error:
            raise _unusable(self.settings.state_dir, error) from error

    @cached_property
    def lessor(self) -> Lessor:
        """The store, opened; that a named one had to be made is said, as its name may be mistyped."""
        from lessor.connect import connect
        from lessor.settings import HOME_STORE

        settings = self.settings
        named = settings.store_origin != HOME_STORE
        new = _missing_file(settings.store_url) if named and self.for_people else None
        opened = connect(
            settings.store_url,
            clock=self.clock,
            host_id=self.host_id,
            listen_dsn=settings.listen_dsn,
        )
        if new is not None:
            told = f"There was no store at {new}: a new one was made ({settings.store_origin})."
            self.note(told)
        return opened

    def stand(self, *, register: bool = False) -> Standing:
        """The repository that the command is about; one that is around is registered.

        Args:
            register: make one known, too, that is only named.

        Raises:
            NotARepositoryError: there is none around, and none was named.
            NotFoundError: the named one isn't known.
        """
        if self._standing is None:
            from lessor.cli.repositories import find_standing

            self._standing = find_standing(self, register=register)
        return self._standing

    @property
    def standing(self) -> Standing:
        """The same, without registering what is only named."""
        return self.stand()

    @property
    def repository(self) -> str | None:
        """The id of that repository in the store; None after `--repo none`."""
        return self.stand().id

    @cached_property
    def person(self) -> str:
        """The name under which this person or script holds leases: LESSOR_AGENT, else the login.

        It can stand in a label: letters, digits and . _ - @ : / stay, anything else becomes -.
        """
        import getpass
        import re

        name = os.environ.get("LESSOR_AGENT", "")
        if not name:
            try:
                name = getpass.getuser()
            except (OSError, KeyError):  # no such user in the password file: a container
                name = f"uid-{os.getuid()}"
        return re.sub(r"[^A-Za-z0-9._@:/-]", "-", name)[:100] or "person"

    @property
    def here(self) -> Path:
        """The directory that the command was started in."""
        return Path.cwd()

    def project(self, *, commit: str | None = None) -> Project:
        """The project at `commit`, else where the checkout stands.

        Raises:
            NotARepositoryError: there is no checkout around.
        """
        from lessor.git.repository import head_commit
        from lessor.project import project_of

        checkout = self.standing.checkout_or_refuse()
        at = commit or head_commit(checkout.cwd)
        return project_of(checkout.repository, commit=at, settings=self.settings)

    @property
    def for_people(self) -> bool:
        """Whether the answer is a text for people."""
        return self.output is Format.TABLE

    @property
    def columns(self) -> int:
        """How wide lines may be."""
        return columns()

    def tell_of_slow_git(self, verb: str, left_s: float) -> None:
        """Say at the terminal what is waited for."""
        self.note(f"{_takes_long(verb, left_s)} Ctrl-C stops it.")

    def tell_of_runs_slow_git(self, verb: str, left_s: float) -> None:
        """The same in a run, where Ctrl-C lets it finish."""
        self.note(_takes_long(verb, left_s))

    def note(self, told: str) -> None:
        """Say something beside the answer, to people alone."""
        if self.for_people:
            with suppress(OSError):  # the work that it tells of goes on unheard
                write_lines([[Piece("  note  ", Tone.WARN), shown(told)]], sys.stderr)

    def answer(self, record: Record, lines: Callable[[], Iterable[Line]]) -> None:
        """Answer with one record: its lines for people, itself for programs."""
        if self.for_people:
            write_lines(lines())
        else:
            write_record(record, self.output)

    def answer_all(self, records: Sequence[Record], lines: Callable[[], Iterable[Line]]) -> None:
        """Answer with several records."""
        if self.for_people:
            write_lines(lines())
        else:
            write_records(records, self.output)

    def close(self) -> None:
        """Give up the store's connection, if it was opened."""
        if "lessor" in self.__dict__:
            self.lessor.close()


def _takes_long(verb: str, left_s: float) -> str:
    return f"git {verb} takes long; it may go on for {lapse(round(left_s * 1000))}."


def _missing_file(url: str) -> Path | None:
    """The file of a SQLite store that isn't there yet."""
    from lessor.connect import sqlite_file

    try:
        path = sqlite_file(url)
        return None if path is None or path.exists() else path
    except (OSError, ValueError, RuntimeError):
        return None  # opening it says what is wrong


def _unusable(state_dir: Path, error: OSError) -> StoreUnavailableError:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    step = "Free some space there" if full else "Check that it is yours to write"
    return StoreUnavailableError(
        f"{state_dir} can't be used: {error.strerror}.",
        next_step=f"{step}, or set LESSOR_STATE_DIR.",
        state_dir=str(state_dir),
    )
