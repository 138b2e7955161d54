"""Numbered schema files: applied once, in order, forward only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import StoreCorruptError, StoreNewerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file: `0001_initial.sql` is version 1."""

    version: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text, kept with the version."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load_migrations(dialect: str) -> list[Migration]:
    """The files of `dialect`, by version."""
    found = []
    for file in (Path(__file__).parent / dialect / "migrations").iterdir():
        number, _, rest = file.name.partition("_")
        if file.name.endswith(".sql"):
            found.append(
                Migration(
                    version=int(number), name=rest[:-4], text=file.read_text(encoding="utf-8")
                )
            )
    return sorted(found, key=lambda m: m.version)


def pending(migrations: list[Migration], applied: Mapping[int, str]) -> list[Migration]:
    """What is still to apply to a store that has `applied` (version to digest).

    Raises:
        StoreNewerError: the store has a version that this Lessor doesn't know.
        StoreCorruptError: a version was applied from another text.
    """
    newest = migrations[-1].version
    if applied and max(applied) > newest:
        raise StoreNewerError(
            f"The store has schema version {max(applied)}; this Lessor knows up to {newest}.",
            next_step="Upgrade Lessor on this machine.",
            store_version=max(applied),
            known_version=newest,
        )
    for migration in migrations:
        digest = applied.get(migration.version)
        if digest is not None and digest != migration.digest:
            raise StoreCorruptError(
                f"Schema version {migration.version} of the store was made by other text than this Lessor's.",
                next_step="Use the Lessor that made the store, or restore a backup.",
                version=migration.version,
            )
    return [m for m in migrations if m.version not in applied]
