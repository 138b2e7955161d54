"""Which repository a command is about: the one around, or the one that is named.

The first command in a repository registers it; there is no other set-up.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.cli.invocation import Invocation
from lessor.errors import InvalidError, LessorError, NotARepositoryError, NotFoundError
from lessor.git.complaint import hide_credentials
from lessor.git.repository import (
    Repository,
    canonical_remote,
    find_repository,
    repository_key,
)
from lessor.model.repository import Repository as Registered
from lessor.model.task import DRILL

NONE = "none"
LOCAL = "local-"
_LOCAL_ID = "lessor-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A clone on this machine.

    Attributes:
        cwd: where the person is in it.
        prefix: the same, relative to the work tree's top; empty at the top.
    """

    repository: Repository
    cwd: Path
    prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The repository that a command is about.

    Attributes:
        id: its id in the store; None for tasks without a repository.
        key: its canonical remote, or the id kept in its common directory.
        checkout: the clone that the command was started in, or one that is known on this host.
    """

    id: str | None
    key: str
    name: str
    checkout: Checkout | None = None

    def checkout_or_refuse(self) -> Checkout:
        """The clone; NotARepositoryError where none is known here."""
        if self.id is None:
            raise NotARepositoryError(
                "What has no repository has no clone either.",
                next_step="Leave out `--repo none`, or name one: --repo PATH.",
            )
        if self.checkout is None:
            raise NotARepositoryError(
                f"No clone of {self.name} is known on this machine.",
                next_step="Run this inside of one, or name it: --repo PATH.",
            )
        return self.checkout


def find_standing(invocation: Invocation, *, register: bool) -> Standing:
    """The repository that --repo names, else the one around.

    A name is one that is registered, its end (`acme/shop`, `shop`), or a remote. `owner/name`
    alone means github.com's, as in that company's own tools.

    Args:
        register: make a repository known that is named and isn't known yet.

    Raises:
        NotARepositoryError: none was named, and there is none around.
        NotFoundError: the named one isn't known.
        InvalidError: the name fits several.
    """
    named = invocation.repo
    if named is None:
        return _around(invocation, invocation.here)
    if named == NONE:
        return Standing(id=None, key="", name="")
    if not named:
        raise InvalidError("--repo is empty.", next_step="Name a path or a repository.")
    known = invocation.lessor.registry.repositories()
    exact = [row for row in known if row.key == named]
    if not exact and Path(named).is_dir():
        return _around(invocation, Path(named).absolute())
    found = exact or [r for r in known if r.name == named or r.key.endswith(f"/{named}")]
    if len(found) > 1:
        places = ", ".join(_place(invocation, row) for row in found)
        raise InvalidError(
            f"{named!r} fits several: {places}.",
            next_step="Name one of them in full: --repo PATH.",
            keys=[row.key for row in found],
        )
    if found:
        return _registered(invocation, found[0])
    return _by_remote(invocation, named, known, register=register)


def _place(invocation: Invocation, row: Registered) -> str:
    """What tells a repository from another one of the same name: its remote, else its clone here."""
    if not row.key.startswith(LOCAL):
        return row.key
    clone = _known_checkout(invocation, row)
    return row.key if clone is None else os.fspath(clone.repository.root)


def _by_remote(
    invocation: Invocation, named: str, known: Sequence[Registered], *, register: bool
) -> Standing:
    key = _canonical(named)
    there = next((row for row in known if row.key == key), None)
    if there is None and key is not None and register:
        there = invocation.lessor.registry.add_repository(key)
    if there is not None:
        return _registered(invocation, there)
    names = ", ".join(sorted(row.name for row in known if row.key != DRILL)[:10])
    raise NotFoundError(
        f"No repository is known as {hide_credentials(named)[:80]!r}.",
        next_step=f"Known: {names}." if names else "Run any command in a clone of it first.",
    )


def _around(invocation: Invocation, directory: Path) -> Standing:
    try:
        repository = find_repository(directory)
    except NotARepositoryError as error:
        error.next_step = "Go into one, or name it: lessor --repo PATH."
        raise
    registered = _register(invocation, repository)
    checkout = Checkout(repository=repository, cwd=directory, prefix=_prefix(repository, directory))
    return Standing(id=registered.id, key=registered.key, name=registered.name, checkout=checkout)


def _register(invocation: Invocation, repository: Repository) -> Registered:
    registry = invocation.lessor.registry
    known = {row.key: row for row in registry.repositories()}
    key = repository_key(repository)
    if key not in known:
        # A remote that was added later gives the clone another name; its tasks stay together.
        earlier = _earlier_key(repository)
        key = earlier if earlier in known else key
    found = known.get(key)
    if found is None:
        asked = ["config", "--type=bool", "--get", "core.ignorecase"]
        folds = repository.git(asked, check=False).text == "true"
        found = registry.add_repository(key, name=repository.name, fold_case=folds)
    place = (invocation.host_id, os.fspath(repository.common_dir))
    if place not in registry.checkouts(found.id):
        registry.add_checkout(found.id, host_id=place[0], common_dir=place[1])
    return found


def _earlier_key(repository: Repository) -> str | None:
    try:
        return (repository.common_dir / _LOCAL_ID).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _registered(invocation: Invocation, row: Registered) -> Standing:
    return Standing(
        id=row.id, key=row.key, name=row.name, checkout=_known_checkout(invocation, row)
    )


def _known_checkout(invocation: Invocation, row: Registered) -> Checkout | None:
    for host, common_dir in invocation.lessor.registry.checkouts(row.id):
        if host == invocation.host_id and Path(common_dir).is_dir():
            try:
                repository = find_repository(Path(common_dir))
            except LessorError:  # moved, or no repository any more: the next one may be
                continue
            return Checkout(repository=repository, cwd=repository.root, prefix="")
    return None


def _prefix(repository: Repository, directory: Path) -> str:
    from lessor.git.command import run_git

    if repository.is_bare:
        return ""
    found = run_git(["rev-parse", "--show-prefix"], cwd=directory, check=False)
    return found.text.rstrip("/") if found.code == 0 else ""


def _canonical(named: str) -> str | None:
    key = canonical_remote(named)
    if key is not None:
        return key
    parts = named.split("/")
    if not all(parts) or any(part.startswith(".") for part in parts):
        return None
    host = "github.com/" if len(parts) == 2 else ""  # noqa: PLR2004 - owner and name
    return canonical_remote(f"https://{host}{named}") if len(parts) > 1 else None
