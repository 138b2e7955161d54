"""The person's trust in a repository's commands: given once, to exactly these commands.

What a repository's files name is run with the person's own rights. A clone is trusted by a digest
over the commands as they would be run; another commit that changes one of them asks again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from lessor.errors import StoreUnavailableError
from lessor.git.repository import Repository
from lessor.settings import Settings


def commands_digest(repository: Repository, commands: Mapping[str, Any]) -> str:
    """A digest that names these commands in this clone; any change gives another one."""
    body = [os.fspath(repository.common_dir), dict(commands)]
    text = json.dumps(body, sort_keys=True, ensure_ascii=True, default=_plain)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _plain(value: object) -> object:
    if not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} can't be part of a digest")
    return dict(value)


def is_trusted(settings: Settings, digest: str) -> bool:
    """Whether the person has trusted the commands that `digest` names."""
    return (settings.trust_dir / digest).is_file()


def trust(settings: Settings, digest: str, *, note: str) -> None:
    """Remember that the person trusts these commands; `note` says to people which they are.

    Raises:
        StoreUnavailableError: the state directory can't be written.
    """
    try:
        settings.trust_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(settings.trust_dir / digest, flags, 0o600), "w") as file:
            file.write(note)
    except OSError as error:
        raise StoreUnavailableError(
            f"{settings.trust_dir} can't be written: {error.strerror}.",
            next_step="Check that the state directory is yours to write.",
        ) from error
