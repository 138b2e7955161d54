"""PostgreSQL, while an old transaction somewhere keeps every dead row: what a claim looks up stays near."""

from __future__ import annotations

import psycopg
import pytest

from builders import MakeStore, StoreUnderTest, Yard
from lessor.store.postgres.opening import settle
from lessor.store.statements import load_statements

GRANTS = 2_000
NEAR = 12
"""Pages: the repository's row, the way down the counter's index, and the row that it leads to."""


@pytest.fixture
def store(make_store: MakeStore) -> StoreUnderTest:
    store = make_store("postgres")
    Yard(store, store.connect())
    return store


def test_the_newest_counter_is_met_before_those_that_vacuum_could_not_take(
    store: StoreUnderTest,
) -> None:
    turn = load_statements("postgres")["turn_repository"].replace(":repository_id", "1")
    lock = load_statements("postgres")["lock_repository"].replace(":repository_id", "1")
    with psycopg.connect(store.url) as old, psycopg.connect(store.url, autocommit=True) as db:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM lessor.counter")
        settle(db)
        for _ in range(GRANTS):
            db.execute(turn.encode())
        db.execute("ANALYZE lessor.counter")
        read = pages(db, lock)
        old.rollback()
    assert store.sql("SELECT turn FROM counter WHERE repository_id = 1") == [(GRANTS,)]
    assert read <= NEAR


def pages(db: psycopg.Connection[tuple[object, ...]], text: str) -> int:
    """How many pages a statement looks at, once its functions are planned."""
    for _ in range(2):
        row = db.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}".encode()).fetchone()
    assert row is not None
    (found,) = row[0]  # type: ignore[misc]
    return int(found["Plan"]["Shared Hit Blocks"]) + int(found["Plan"]["Shared Read Blocks"])
