"""The product with a guard taken out of its SQL: what the checker has to notice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessor.store.statements import load_statements

if TYPE_CHECKING:
    from builders import StoreUnderTest  # a player's program is without it

_HOLDERS = ("complete_leases", "complete_one", "renew_leases")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One guard.

    Attributes:
        edits: statement, pattern, what to put there instead; in each dialect that has it.
        triggers: tables whose triggers would forbid the wrong write by themselves.
        indexes: unique ones that would.
        broken: the rules of which one has to notice.
        kinds: the stores that have the guard.
    """

    edits: Sequence[tuple[str, str, str]]
    triggers: Sequence[str] = ()
    indexes: Sequence[str] = ()
    broken: Sequence[str]
    kinds: Sequence[str] = ("sqlite", "postgres")


MUTANTS = {
    "expiry": Mutant(
        edits=[(name, r"AND (:now|[ln]\.now) < l\.expires_ms", "") for name in _HOLDERS],
        broken=("ends_outside", "late_writes"),
    ),
    "ended": Mutant(
        edits=[(name, r"AND l\.ended_ms IS NULL ", "") for name in _HOLDERS],
        triggers=("lease", "task"),
        broken=("broken_events", "lost_ends"),
    ),
    "token": Mutant(
        edits=[
            (
                name,
                r"l\.worker_id = [:\w.]+( ->> 'worker_id')? AND l\.token_hash = [:\w.]+( ->> 'token_hash')?",
                "l.epoch > 0",
            )
            for name in _HOLDERS
        ],
        broken=("taken_from_others",),
    ),
    "overlap": Mutant(
        edits=[
            ("candidates", r"repository_id = \S+\s+AND (\w\.key)", r"repository_id < 0 AND \1"),
            ("glob_pairs", r"s\.repository_id = t\.repository_id", "s.repository_id < 0"),
        ],
        triggers=("scope",),
        indexes=("scope_one_writer_per_key",),
        broken=("overlapping_by_fence",),
    ),
    "needs": Mutant(
        edits=[("candidates", r"AND t\.needs_left = 0", "")],
        broken=("early_grants",),
    ),
    "limits": Mutant(
        edits=[(name, r"count\(\*\)", "0 * count(*)") for name in ("limit_usage", "candidates")],
        broken=("overstepped_limits",),
    ),
    "lock": Mutant(
        edits=[
            ("lock_repository", r"FOR UPDATE", ""),
            ("lock_repository_or_skip", r"FOR UPDATE SKIP LOCKED", ""),
            ("lock_place", r"FOR UPDATE", ""),
        ],
        triggers=("scope", "repository"),
        indexes=("scope_one_writer_per_key", "lease_one_grant_per_fence"),
        broken=("disordered_fences", "overlapping_by_fence"),
        kinds=("postgres",),  # SQLite's transactions hold the whole file
    ),
}


def mutate(url: str, name: str | None) -> None:
    """Take the guard `name` out of what this process loads, before it opens the store at `url`."""
    if name is None:
        return
    texts = load_statements("sqlite" if url.startswith("sqlite") else "postgres")
    for statement, pattern, instead in MUTANTS[name].edits:
        if statement not in texts:
            continue
        texts[statement], times = re.subn(pattern, instead, texts[statement])
        assert times, f"{statement} has no {pattern}"


def uncover(store: StoreUnderTest, name: str) -> None:
    """Take out of the database what would hide the mutant."""
    for table in MUTANTS[name].triggers:
        if store.kind == "postgres":
            store.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        else:
            for (trigger,) in store.sql(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = :table",
                table=table,
            ):
                store.sql(f"DROP TRIGGER {trigger}")
    for index in MUTANTS[name].indexes:
        store.sql(f"DROP INDEX {index}")
