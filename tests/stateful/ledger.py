"""Everything that a store holds, read by raw SQL: before and after each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from builders import TABLES, StoreUnderTest

Row = Mapping[str, Any]
Table = Mapping[tuple[Any, ...], Row]

KEYS: dict[str, tuple[str, ...]] = {
    "meta": ("key",),
    "counter": ("repository_id",),
    "queue": ("name",),
    "usage_limit": ("kind", "key"),
    "submission": ("task_id",),
    "dependency": ("task_id", "needs_id"),
    "task_scope": ("task_id", "ord"),
    "scope": ("lease_id", "ord"),
    "widening": ("repository_id", "fence", "ord"),
    "salvage": ("task_id", "epoch", "n"),
    "event": ("task_id", "n"),
    "late_result": ("task_id", "epoch"),
    "request": ("actor", "request_id"),
}


@dataclass(frozen=True, slots=True)
class Ledger:
    """All rows by table and primary key."""

    tables: Mapping[str, Table]

    def rows(self, table: str) -> list[Row]:
        """The rows of a table, by key."""
        return [row for _, row in sorted(self.tables[table].items())]

    def by_id(self, table: str) -> dict[int, Row]:
        """The rows of a table whose key is a number."""
        return {key[0]: row for key, row in self.tables[table].items()}

    def without_late(self) -> Mapping[str, Table]:
        """The same without evidence of late results, and what they count for."""
        late: dict[int, int] = {}
        events = {}
        for key, row in sorted(self.tables["event"].items()):
            if row["kind"] == "late":
                late[row["task_id"]] = late.get(row["task_id"], 0) + 1
            else:
                events[key[0], row["n"] - late.get(row["task_id"], 0)] = {**row, "n": None}
        tasks = {
            key: {**row, "events": row["events"] - late.get(key[0], 0)}
            for key, row in self.tables["task"].items()
        }
        return {**self.tables, "event": events, "task": tasks, "late_result": {}}


def read_ledger(store: StoreUnderTest) -> Ledger:
    """Read everything, in one statement where each costs a round trip."""
    if store.kind == "postgres":
        columns = ", ".join(f"(SELECT json_agg(t) FROM {name} AS t)" for name in TABLES)
        (found,) = store.sql(f"SELECT {columns}")
        tables = dict(zip(TABLES, (rows or [] for rows in found), strict=True))
    else:
        tables = {name: _all(store, name) for name in TABLES}
    return Ledger(
        {
            name: {tuple(row[part] for part in KEYS.get(name, ("id",))): row for row in rows}
            for name, rows in tables.items()
        }
    )


def _all(store: StoreUnderTest, table: str) -> list[Row]:
    names = _COLUMNS.get(table)
    if names is None:
        names = [row[1] for row in store.sql(f"PRAGMA table_info({table})")]
        _COLUMNS[table] = names
    return [dict(zip(names, row, strict=True)) for row in store.sql(f"SELECT * FROM {table}")]


_COLUMNS: dict[str, list[str]] = {}
