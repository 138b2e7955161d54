"""Texts that a command reads from a file or from standard input, and how many files a scope has."""

from __future__ import annotations

import sys
from pathlib import Path

from lessor.cli.invocation import Invocation
from lessor.cli.repositories import Checkout
from lessor.errors import InvalidError
from lessor.model.scope import PathRules, covers, parse_scope

LARGEST = 64 * 1024 * 1024
STDIN = "-"


def read_text(name: str, *, what: str) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        InvalidError: it isn't there, can't be read, is no UTF-8 or larger than 64 MB.
    """
    try:
        content = _read_stdin() if name == STDIN else _read_file(Path(name))
    except OSError as error:
        raise InvalidError(
            f"The {what} {name!r} can't be read: {error.strerror}.",
            next_step="Name a file that you can read, or - for standard input.",
        ) from error
    if len(content) > LARGEST:
        raise InvalidError(
            f"The {what} {name!r} is larger than {LARGEST // 1024 // 1024} MB.",
            next_step="Name a file in the repository instead.",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"The {what} {name!r} isn't UTF-8.", next_step="Save it as UTF-8."
        ) from error


def path_rules(invocation: Invocation, repository: str | None) -> PathRules:
    """How a repository of the store compares paths."""
    if repository is None:
        return PathRules()
    row = invocation.lessor.registry.repository(repository)
    return PathRules(fold_case=row.fold_case, normalize=row.normalize)


def count_files(checkout: Checkout, commit: str, scope: str, *, rules: PathRules) -> int:
    """How many tracked files of `commit` the scope covers."""
    from lessor.git.repository import files_at

    asked = parse_scope(scope, rules=rules)
    repository = checkout.repository
    if asked.pattern is None and not rules.fold_case:
        if asked.text == ".":
            return len(files_at(repository.common_dir, commit))
        path = asked.text.removeprefix("path:")
        listed = repository.git(["ls-tree", "-r", "-z", "--name-only", commit, "--", path])
        return len(listed.records)
    return sum(covers(asked, path, rules=rules) for path in files_at(repository.common_dir, commit))


def _read_stdin() -> bytes:
    return sys.stdin.buffer.read(LARGEST + 1)


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST + 1)
