"""What every claim and every holder's write runs goes by index, however much has been finished."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import apsw
import apsw.ext
import psycopg
import pytest
from populated import FINISHED, LIVE, populate
from statement_shapes import explain_postgres

from builders import MakeStore, StoreUnderTest
from lessor.clock import ManualClock
from lessor.store.postgres.opening import settle
from lessor.store.statements import load_statements

BIG = (
    "task",
    "lease",
    "scope",
    "task_scope",
    "submission",
    "event",
    "widening",
    "dependency",
    "request",
)
FEW = (
    "lease_one_reservation_per_repository",  # one row a repository
    "lease_by_task",  # live holds, turns and shadows
    "worker_host",  # live workers
)
HOLDER = {
    "ord": 0,
    "task_id": FINISHED + 5,
    "epoch": 1,
    "worker_id": 1,
    "token_hash": f"{FINISHED + 5:064d}",
    "digest": "d",
    "result": "{}",
    "stage": "none",
    "facts": "{}",
    "version": 1,
    "request": "r",
}
PLACE = {
    "queue": "default",
    "repository_id": 1,
    "kind": "claude",
    "agent": "claude-1",
    "capabilities": "[]",
}
SCOPES = json.dumps(
    [
        {
            "ord": 0,
            "text": "x/y",
            "key": "/x/y/",
            "key_end": "/x/y0",
            "mode": "w",
            "ancestors": ["/", "/x/", "/x/y/"],
        }
    ]
)
ONE = json.dumps([FINISHED + 5])
GUARDED = {**HOLDER, "lease_id": FINISHED + 5, "request_id": "r", "actor": "a"}
GRANTS = json.dumps(
    [
        {
            "ord": 0,
            "task_id": FINISHED + LIVE + 3,
            "epoch": 0,
            "token_hash": "t",
            "branch": "ai/x",
            "label": "l",
            "fence": 99_999,
            "hold_ms": 1,
        }
    ]
)
ENDS = json.dumps(
    [
        {
            "lease_id": FINISHED + 5,
            "task_id": FINISHED + 5,
            "reason": "released",
            "moves": 1,
            "status": "queued",
            "charge": 0,
            "kind": "released",
            "facts": "{}",
        }
    ]
)
MOVES = json.dumps(
    [
        {
            "task_id": FINISHED + LIVE + 3,
            "from_status": "queued",
            "status": "blocked",
            "kind": "b",
            "facts": "{}",
        }
    ]
)
VALUES: dict[str, Any] = {
    **PLACE,
    **GUARDED,
    "rows": json.dumps([HOLDER]),
    "tasks": ONE,
    "leases": ONE,
    "keys": '["db"]',
    "kinds": '["hold"]',
    "mark_rank": -(2**31),
    "mark_id": 0,
    "most": 9,
    "wake": 32,
    "with_scopes": 1,
    "with_reserved": 1,
    "at_ms": 1,
    "ttl_ms": 60_000,
    "hold_ms": 60_000,
    "fence": 99_999,
    "term": 0,
    "wanted": 1,
    "rank": 0,
    "grants": GRANTS,
    "parks": "[]",
    "status": "succeeded",
    "met": "succeeded",
    "reason": "released",
    "from_status": "queued",
    "from_state": "present",
    "from_epoch": 1,
    "branches": '["ai/1-x"]',
    "host_id": "",
    "live": 1,
    "after": 0,
    "limit_key": None,
    "number": 5,
    "before": 0,
    "states": "[]",
    "globs": 0,
    "needs_left": 0,
    "token_hashes": '["t"]',
    "label_head": "l",
    "addition": "",
    "slept": 0,
    "noticed": 1000,
    "boot_id": "b",
    "full_keys": "[]",
    "first": "k",
    "behind": "l",
    "least": 0,
    "whole": 0,
}
OWN = {
    "end_leases": {"rows": ENDS},
    "move_tasks": {"rows": MOVES},
    "scope_conflicts": {"rows": SCOPES},
    "widen_write": {"rows": SCOPES},
    "unfinished_by_key": {"rows": '[{"queue": "default", "unique_key": "k"}]'},
}

LOOKS_AT_ALL: dict[str, str] = {
    "count_tasks": "counts every state, on purpose",
    "list_tasks": "pages through everything, newest first, by the primary key",
    "leases": "lists what there is, by the primary key",
    "queues": "names of queues with unfinished tasks, for people",
    "extend_for_suspend": "every live lease gets the time back",
    "note_boot": "every live lease of this host",
    "new_term": "every live lease is over",
    "begin_term": "every live lease is over",
    "note_lineage": "every live lease is over",
    "live_workers": "lists workers, for people",
    "overdue": "what is queued in a repository, for people",
    "newest_on_branches": "what a repository's branches were for, for people: finished tasks' are in no index",
}


def statements(dialect: str) -> list[str]:
    return sorted(load_statements(dialect).keys() - LOOKS_AT_ALL.keys())


@pytest.fixture(scope="module", params=["analysed", "as made"])
def aged_sqlite(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[apsw.Connection]:
    """With statistics, as somebody's ANALYZE leaves them, and without."""
    url = f"sqlite://{tmp_path_factory.mktemp('aged')}/lessor.db"
    store = StoreUnderTest("sqlite", url, ManualClock())
    yard = populate(store)
    if request.param == "as made":
        store.sql("DELETE FROM sqlite_stat1")
        yard.lessor.close()
        yard.lessor = store.connect()
    yield yard.lessor.store._db
    store.close()


@pytest.fixture(scope="module")
def aged_postgres(server: Any) -> Iterator[psycopg.Connection[Any]]:
    store = StoreUnderTest("postgres", server.create("real"), ManualClock())
    populate(store)
    with psycopg.connect(store.url, autocommit=True, prepare_threshold=None) as db:
        yield db
    store.close()
    server.drop(store.url)


def aliases(text: str) -> dict[str, set[str]]:
    """Which tables the names in a statement stand for."""
    found: dict[str, set[str]] = {}
    for table, alias in re.findall(r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+AS\s+(\w+))?", text):
        found.setdefault(alias or table, set()).add(table)
    return found


@pytest.mark.parametrize("name", statements("sqlite"))
def test_sqlite_goes_by_index(aged_sqlite: apsw.Connection, name: str) -> None:
    text = load_statements("sqlite")[name]
    known = aliases(re.sub(r"--[^\n]*", "", text))
    scans = []
    rest: str | None = text
    while rest and rest.strip():
        info = apsw.ext.query_info(aged_sqlite, rest, explain_query_plan=True)
        rest = info.query_remaining
        scans += [line for line in _details(info.query_plan) if _is_scan(line, known)]
    assert scans == []


def _details(plan: Any) -> Iterator[str]:
    if plan is not None:
        yield plan.detail
        for sub in plan.sub or []:
            yield from _details(sub)


def _is_scan(line: str, known: dict[str, set[str]]) -> bool:
    found = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line)
    return (
        found is not None
        and "VIRTUAL" not in line
        and found[2] not in FEW
        and bool(known.get(found[1], set()) & set(BIG))
    )


@pytest.mark.parametrize("name", statements("postgres"))
def test_postgres_goes_by_index(aged_postgres: psycopg.Connection[Any], name: str) -> None:
    aged_postgres.execute("DISCARD ALL")
    settle(aged_postgres)
    plan = explain_postgres(aged_postgres, name, {**VALUES, **OWN.get(name, {})})
    scans = [line for line in plan if re.search(rf"Seq Scan on ({'|'.join(BIG)})\b", line)]
    assert scans == [], "\n".join(plan)


def test_a_claim_reads_only_partial_indexes_of_live_rows(
    aged_postgres: psycopg.Connection[Any],
) -> None:
    aged_postgres.execute("DISCARD ALL")
    settle(aged_postgres)
    for name, indexes in {
        "candidates": ("task_ready", "scope_key"),
        "drain": ("lease_drain", "task_waiting", "task_due", "lease_lapse"),
        "lapsed_leases": ("lease_lapse",),
        "promote_due": ("task_due",),
        "lock_live_leases": ("lease_one_live_per_task",),
        "scope_conflicts": ("scope_key",),
        "ready_tasks": ("task_ready",),
    }.items():
        plan = "\n".join(explain_postgres(aged_postgres, name, {**VALUES, **OWN.get(name, {})}))
        for index in indexes:
            assert index in plan, f"{name}:\n{plan}"


def test_what_looks_at_everything_is_for_people() -> None:
    """Nothing that a claim or a holder runs is on the list of exceptions."""
    assert (
        LOOKS_AT_ALL.keys() <= load_statements("sqlite").keys() | load_statements("postgres").keys()
    )
    assert not any(
        name.startswith(("claim", "renew", "complete", "lock", "end_")) for name in LOOKS_AT_ALL
    )


def test_a_store_of_some_age_is_claimed_from_as_any_other(make_store: MakeStore) -> None:
    for kind in ("sqlite", "postgres"):
        yard = populate(make_store(kind))
        grant = yard.claim_one()
        assert grant.number == FINISHED + LIVE + 1
        assert yard.complete(grant).state == "succeeded"
