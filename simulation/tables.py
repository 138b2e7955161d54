"""What the store holds, followed row by row as it is committed; SQLite's own hook tells, no rule does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import apsw

Row = Mapping[str, Any]
Key = tuple[Any, ...]

KEYS: Mapping[str, tuple[str, ...]] = {
    "meta": ("key",),
    "counter": ("repository_id",),
    "queue": ("name",),
    "usage_limit": ("kind", "key"),
    "submission": ("task_id",),
    "dependency": ("task_id", "needs_id"),
    "task_scope": ("task_id", "ord"),
    "scope": ("lease_id", "ord"),
    "shadow_scope": ("lease_id", "ord"),
    "widening": ("repository_id", "fence", "ord"),
    "unlanded": ("task_id",),
    "stand": ("task_id",),
    "fence_ref": ("lease_id", "remote"),
    "event": ("task_id", "n"),
    "late_result": ("task_id", "epoch"),
    "request": ("actor", "request_id"),
    "repository": ("id",),
    "worker": ("id",),
    "task": ("id",),
    "lease": ("id",),
    "intent": ("id",),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One row as it was before a transaction and as it is after it; None where there was or is none."""

    key: Key
    old: Row | None
    new: Row | None


class Tables:
    """All rows, with the few indexes that the invariants need."""

    def __init__(self, db: apsw.Connection) -> None:
        self.columns = {
            name: [str(row[1]) for row in db.execute(f"PRAGMA table_info({name})")] for name in KEYS
        }
        self.rows: dict[str, dict[Key, Row]] = {name: {} for name in KEYS}
        self.live: dict[int, set[int]] = defaultdict(set)  # leases that haven't ended, by task
        self.scopes: dict[int, dict[Key, Row]] = defaultdict(dict)  # by repository
        self.waiting: dict[int, set[int]] = defaultdict(set)  # tasks, by the lease they wait for
        self._pending: list[tuple[str, Any, Any]] = []

    def follow(self, db: apsw.Connection) -> None:
        """Hear of every row that this connection changes."""
        db.preupdate_hook(self._note, id=self)

    def discard(self) -> None:
        """Forget what was rolled back."""
        self._pending.clear()

    def commit(self) -> dict[str, list[Change]]:
        """Take over what was committed, a change a row."""
        merged: dict[tuple[str, Key], Change] = {}
        for table, was, becomes in self._pending:
            columns = self.columns[table]
            old = None if was is None else dict(zip(columns, was, strict=True))
            new = None if becomes is None else dict(zip(columns, becomes, strict=True))
            if old is not None and new is not None and _key(table, old) != _key(table, new):
                _merge(merged, table, old, None)
                _merge(merged, table, None, new)
            else:
                _merge(merged, table, old, new)
        self._pending.clear()
        return self._apply(merged)

    def resync(self, db: apsw.Connection) -> dict[str, list[Change]]:
        """Read everything; what had changed unheard."""
        merged: dict[tuple[str, Key], Change] = {}
        for table, columns in self.columns.items():
            there = {
                _key(table, row): row
                for row in (
                    dict(zip(columns, values, strict=True))
                    for values in db.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608
                )
            }
            known = self.rows[table]
            for key in sorted(there.keys() | known.keys(), key=repr):
                if there.get(key) != known.get(key):
                    merged[table, key] = Change(key, known.get(key), there.get(key))
        return self._apply(merged)

    def lease(self, number: int | None) -> Row | None:
        """A lease by its row number."""
        return self.rows["lease"].get((number,))

    def lease_of(self, task: int, epoch: int) -> Row | None:
        """The lease of a task at an epoch."""
        return next(
            (
                row
                for row in self.rows["lease"].values()
                if row["task_id"] == task and row["epoch"] == epoch and row["kind"] == "lease"
            ),
            None,
        )

    def paths(self, task: int) -> Iterable[Row]:
        """The scopes of a task."""
        return (row for key, row in self.rows["task_scope"].items() if key[0] == task)

    def task(self, number: int) -> Row | None:
        """A task by its row number."""
        return self.rows["task"].get((number,))

    def live_leases(self) -> Iterable[Row]:
        """Leases that haven't ended, of every kind."""
        for numbers in self.live.values():
            for number in sorted(numbers):
                yield self.rows["lease"][number,]

    def _note(self, seen: Any) -> None:
        if seen.database_name == "main" and seen.table_name in self.columns:
            self._pending.append((seen.table_name, seen.old, seen.new))

    def _apply(self, merged: dict[tuple[str, Key], Change]) -> dict[str, list[Change]]:
        found: dict[str, list[Change]] = {}
        for (table, key), change in merged.items():
            if change.old == change.new:
                continue
            if change.new is None:
                self.rows[table].pop(key, None)
            else:
                self.rows[table][key] = change.new
            self._index(table, change)
            found.setdefault(table, []).append(change)
        return found

    def _index(self, table: str, change: Change) -> None:
        old, new = change.old, change.new
        if table == "lease":
            if old is not None and old["ended_ms"] is None:
                self.live[old["task_id"]].discard(old["id"])
            if new is not None and new["ended_ms"] is None:
                self.live[new["task_id"]].add(new["id"])
        elif table == "scope":
            if old is not None:
                self.scopes[old["repository_id"]].pop(change.key, None)
            if new is not None:
                self.scopes[new["repository_id"]][change.key] = new
        elif table == "task":
            if old is not None and old["waiting_on"] is not None:
                self.waiting[old["waiting_on"]].discard(old["id"])
            if new is not None and new["waiting_on"] is not None:
                self.waiting[new["waiting_on"]].add(new["id"])


def _key(table: str, row: Row) -> Key:
    return tuple(row[part] for part in KEYS[table])


def _merge(
    merged: dict[tuple[str, Key], Change], table: str, old: Row | None, new: Row | None
) -> None:
    key = _key(table, new if new is not None else old or {})
    before = merged.get((table, key))
    merged[table, key] = Change(key, old if before is None else before.old, new)
