"""Two dialects of one set of statements: same names, same parameters, same result columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw
import psycopg
import pytest
from statement_shapes import (
    explain_postgres,
    names,
    own,
    parameters,
    postgres_columns,
    sqlite_columns,
)

from builders import MakeStore
from lessor.service import publish_rows, rows
from lessor.store.statements import load_statements

RECORDS: dict[str, tuple[str, ...]] = {
    "GrantRow": ("claim_write", "grants"),
    "CandidateRow": ("candidates",),
    "SurveyRow": ("drain",),
    "FreedRow": ("end_queue_reservations", "end_unserved_reservations"),
    "LapsedRow": ("lapsed_leases", "lapsed_by_limit"),
    "RepositoryRow": ("lock_repository",),
    "CompletedRow": ("complete_leases", "complete_one"),
    "RenewedRow": ("renew_leases",),
    "LockedRow": ("lock_leases", "lock_live_leases"),
    "RefusalRow": ("refusal",),
    "TaskRow": ("tasks",),
    "LeaseRow": ("leases", "lease"),
    "WorkerRow": ("add_worker", "worker", "live_workers"),
    "ScopeHit": ("scope_conflicts",),
    "WaitRow": ("task_wait",),
    "FenceRefRow": ("put_fence_ref", "move_fence_ref", "fence_ref", "unclosed_fence_refs"),
    "StandingRow": ("branch_standings",),
    "ResultRow": ("lock_result",),
    "IntentRow": ("intent", "task_intents", "unsettled_intents"),
}


ROWS = {
    name: value
    for module in (rows, publish_rows)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, tuple)
}


@pytest.fixture
def sqlite(make_store: MakeStore) -> apsw.Connection:
    """A connection as the store has it, its working table included."""
    lessor = make_store("sqlite").connect()
    return lessor.store._db


@pytest.fixture
def postgres(make_store: MakeStore) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a migrated database."""
    with psycopg.connect(make_store("postgres").url, autocommit=True) as db:
        yield db


def test_both_dialects_have_the_same_statements() -> None:
    sqlite, postgres = load_statements("sqlite").keys(), load_statements("postgres").keys()
    assert sqlite - own("sqlite") - postgres == set()
    assert postgres - own("postgres") - sqlite == set()
    assert len(names()) > 80


@pytest.mark.parametrize("name", names())
def test_a_statement_takes_the_same_parameters(name: str) -> None:
    assert parameters("sqlite", name) == parameters("postgres", name)


def test_every_statement_gives_the_same_columns(
    sqlite: apsw.Connection, postgres: psycopg.Connection[Any]
) -> None:
    different = {}
    for name in names():
        pair = (sqlite_columns(sqlite, name), postgres_columns(postgres, name))
        if pair[0] != pair[1]:
            different[name] = pair
    assert different == {}


def test_rows_are_named_as_the_columns(
    sqlite: apsw.Connection, postgres: psycopg.Connection[Any]
) -> None:
    for record, statements in RECORDS.items():
        fields = list(ROWS[record]._fields)
        for name in statements:
            assert sqlite_columns(sqlite, name) == fields, (record, name)
            assert postgres_columns(postgres, name) == fields, (record, name)
    for name in ("claim_first", "claim_first_free"):
        assert sqlite_columns(sqlite, name) == list(rows.GrantRow._fields), name
    for name in ("claim_free", "claim_next_free", "claim_next"):
        assert postgres_columns(postgres, name) == list(rows.GrantRow._fields), name


def test_every_record_is_looked_at() -> None:
    assert ROWS.keys() == RECORDS.keys()


def test_sqlite_can_explain_every_statement(sqlite: apsw.Connection) -> None:
    for name, text in load_statements("sqlite").items():
        rest: str | None = text
        while rest and rest.strip():
            info = apsw.ext.query_info(sqlite, rest, explain_query_plan=True)
            assert not info.has_vdbe or info.query_plan is not None, name
            rest = info.query_remaining


def test_postgres_can_explain_every_statement(postgres: psycopg.Connection[Any]) -> None:
    postgres.prepare_threshold = None
    for name in load_statements("postgres"):
        assert explain_postgres(postgres, name), name
