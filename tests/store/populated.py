"""A store of some age: much that is finished, much that waits, a thousand leases that live."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from builders import StoreUnderTest, Yard

FINISHED = 12_000
READY = 1_500
WAITING = 1_000
LIVE = 1_000
NOW = 1_800_000_000_000

_TASK = [
    "id",
    "queue",
    "repository_id",
    "rank",
    "status",
    "due",
    "run_at_ms",
    "waiting_on",
    "parked_fence",
    "parked_ms",
    "branch",
    "effects",
    "progress",
    "epoch",
    "attempts",
    "max_attempts",
    "events",
    "queued_ms",
    "finished_ms",
]
_SUBMISSION = [
    "task_id",
    "repository_id",
    "number",
    "title",
    "prompt",
    "strict",
    "submitter",
    "created_ms",
]
_SCOPE = ["task_id", "ord", "text", "key", "key_end", "mode", "ancestors"]
_LEASE = [
    "id",
    "kind",
    "repository_id",
    "task_id",
    "epoch",
    "worker_id",
    "token_hash",
    "fence",
    "term",
    "ttl_ms",
    "granted_ms",
    "renewed_ms",
    "expires_ms",
    "max_until_ms",
    "queue",
    "agent",
    "branch",
    "label",
    "ended_ms",
    "end_reason",
    "drained",
]
_HELD = [
    "lease_id",
    "ord",
    "repository_id",
    "task_id",
    "text",
    "key",
    "key_end",
    "mode",
    "ancestors",
    "fence",
]
_EVENT = ["task_id", "n", "at_ms", "kind", "epoch", "facts"]


def populate(store: StoreUnderTest) -> Yard:
    """Fill the store by raw SQL, past the rules but within the constraints."""
    yard = Yard(store, store.connect())
    db = store.raw()
    tables: list[tuple[str, list[str], Iterator[tuple[Any, ...]]]] = [
        ("task", _TASK, _tasks()),
        ("submission", _SUBMISSION, _submissions()),
        ("task_scope", _SCOPE, _scopes(store.kind)),
        ("lease", _LEASE, _leases()),
        ("scope", _HELD, _held(store.kind)),
        ("event", _EVENT, _events()),
    ]
    for table, columns, rows in tables:
        _insert(store.kind, db, table, columns, rows)
    fence = FINISHED + LIVE
    db.execute(f"UPDATE counter SET fence = {fence} WHERE repository_id = 1")
    db.execute(f"UPDATE repository SET last_number = {_count()} WHERE id = 1")
    if store.kind == "postgres":
        for table in ("task", "lease"):
            db.execute(f"SELECT setval('lessor.{table}_id_seq', (SELECT max(id) FROM {table}))")
    db.execute("ANALYZE")
    db.close()
    return yard


def _count() -> int:
    return FINISHED + READY + WAITING + LIVE


def _status(n: int) -> str:
    if n <= FINISHED:
        return "succeeded"
    if n <= FINISHED + LIVE:
        return "running"
    return "queued"


def _tasks() -> Iterator[tuple[Any, ...]]:
    for n in range(1, _count() + 1):
        status = _status(n)
        begun = status != "queued"
        waits = n > _count() - WAITING
        yield (
            *(n, "default", 1, 0, status, 1, NOW, FINISHED + 1 if waits else None),
            *(1 if waits else None, NOW if waits else None, f"ai/{n}-x" if begun else None),
            *("workspace", 1, int(begun), int(begun), 3, 1, NOW),
            NOW if status == "succeeded" else None,
        )


def _submissions() -> Iterator[tuple[Any, ...]]:
    for n in range(1, _count() + 1):
        yield n, 1, n, f"task {n}", "", 0, "", NOW


def _scopes(kind: str) -> Iterator[tuple[Any, ...]]:
    for n in range(1, _count() + 1):
        yield n, 0, *_path(n, kind)


def _path(n: int, kind: str) -> tuple[Any, ...]:
    text = f"d{n % 97}/f{n}"
    above: Any = ["/", f"/d{n % 97}/", f"/{text}/"]
    return text, f"/{text}/", f"/{text}0", "w", json.dumps(above) if kind == "sqlite" else above


def _leases() -> Iterator[tuple[Any, ...]]:
    for n in range(1, FINISHED + LIVE + 1):
        over = n <= FINISHED
        yield (
            *(n, "lease", 1, n, 1, 1, f"{n:064d}", n, 0, 60_000, NOW, NOW, NOW + 60_000),
            *(NOW + 900_000, "default", "claude-1", f"ai/{n}-x", ""),
            *(NOW if over else None, "completed" if over else None, int(over)),
        )


def _held(kind: str) -> Iterator[tuple[Any, ...]]:
    for n in range(FINISHED + 1, FINISHED + LIVE + 1):
        text, key, end, mode, above = _path(n, kind)
        yield n, 0, 1, n, text, key, end, mode, above, n


def _events() -> Iterator[tuple[Any, ...]]:
    for n in range(1, _count() + 1):
        yield n, 1, NOW, "submitted", 0, "{}"


def _insert(
    kind: str, db: Any, table: str, columns: list[str], rows: Iterator[tuple[Any, ...]]
) -> None:
    names = ", ".join(columns)
    if kind == "sqlite":
        with db:
            marks = ", ".join("?" * len(columns))
            db.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
    else:
        with db.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
