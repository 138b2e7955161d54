"""One thing wrong in Lessor: the edits that make it, what finds it, and a copy with it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Edit = tuple[str, str, str]
CLAIMING = "store/sqlite/sql/claiming.sql"
ENDING = "store/sqlite/sql/ending.sql"
SCOPES = "store/sqlite/sql/scopes.sql"
LANDING = "store/sqlite/sql/landing.sql"
TASKS = "store/sqlite/sql/tasks.sql"
PUBLISHING = "store/sqlite/sql/publishing.sql"
REGISTRY = "store/sqlite/sql/registry.sql"
OWN = "store/sqlite/sql/own.sql"
SCHEMA = "store/sqlite/migrations/0001_initial.sql"


def trigger(name: str) -> Edit:
    """The edit that takes a trigger out, whatever its body."""
    return (SCHEMA, rf"CREATE TRIGGER {name}\b(.|\n)*?END;", "")


def index(name: str) -> Edit:
    """The edit that takes a unique index out."""
    return (SCHEMA, rf"CREATE UNIQUE INDEX {name}\b[^;]*;", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One thing wrong.

    Attributes:
        edits: a file below src/lessor, a pattern, what stands there instead.
        caught_by: the invariants that it breaks; any of them may be met first.
        test: else the test that finds it, where the simulation never meets it: a node of pytest's.
        row: what is to become of an ended lease, where it turns that wrong.
        needs: the faults that it takes: seeds without one of them are left out.
        lacks: the faults that it takes the absence of, or that make seeds long where it shows.
        fenced: whether it takes a remote that fences.
    """

    name: str
    edits: Sequence[Edit]
    caught_by: Collection[str] = field(default_factory=frozenset)
    test: str = ""
    row: str = ""
    needs: Collection[str] = field(default_factory=frozenset)
    lacks: Collection[str] = field(default_factory=frozenset)
    fenced: bool = False


def ended_alone(naming: str, *, indent: int) -> str:
    """A holder's proof without its deadline: whoever ran out goes on until somebody ends the lease."""
    lines = (
        "from lessor.service.proof import HolderLostError, guard",
        "from lessor.service.rows import LockedRow, pack",
        f'row = LockedRow._make(tx.rows("lock_leases", rows=pack([guard({naming}, holder)]))[0])',
        "if row.ended_ms is not None or not row.mine:",
        "    raise HolderLostError(row)",
    )
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def apply(mutation: Mutation, source: Path, target: Path) -> None:
    """Copy the product and what looks at it, with one thing wrong.

    Raises:
        ValueError: a pattern isn't there any more: the row has to follow the code.
    """
    for folder in ("src", "simulation", *(("tests",) if mutation.test else ())):
        shutil.copytree(
            source / folder, target / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    if mutation.test:
        shutil.copy(source / "pyproject.toml", target)
    for name, pattern, instead in mutation.edits:
        file = target / "src" / "lessor" / name
        text, times = re.subn(pattern, instead, file.read_text(encoding="utf-8"))
        if not times:
            raise ValueError(f"{mutation.name}: {name} has no {pattern}")
        file.write_text(text, encoding="utf-8")
