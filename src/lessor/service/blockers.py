"""Overlaps in which a side is a glob: fetched where the literal beginnings touch, decided exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lessor.model.scope import Mode, Scope, conflicts
from lessor.service.rows import pack, unpack
from lessor.store import Transaction

MOST_PAIRS = 1_000


def find_glob_blockers(tx: Transaction, tasks: Sequence[int]) -> dict[int, int]:
    """For each of `tasks` a lease that overlaps it by a glob.

    A task with more than a thousand pairs is taken as overlapping: safe, and `why` says so.
    """
    found: dict[int, int] = {}
    seen: Counter[int] = Counter()
    for task, lease, key, mode, pattern, other_key, other_mode, other_pattern in tx.rows(
        "glob_pairs", tasks=pack(list(tasks)), most=MOST_PAIRS
    ):
        seen[task] += 1
        if task not in found and (
            seen[task] >= MOST_PAIRS
            or conflicts(
                stored_scope(key, mode, pattern), stored_scope(other_key, other_mode, other_pattern)
            )
        ):
            found[task] = lease
    return found


def parse_candidate_scopes(text: str) -> tuple[Scope, ...]:
    """A candidate's scopes as its row has them: [text, key, mode, pattern] each."""
    return tuple(
        Scope(text=shown, key=key, mode=Mode(mode), pattern=pattern)
        for shown, key, mode, pattern in unpack(text)
    )


def stored_scope(key: str, mode: str, pattern: str | None, *, text: str = "") -> Scope:
    """A scope out of the store, where it lies already normalised."""
    return Scope(text=text, key=key, mode=Mode(mode), pattern=pattern)
