"""Written past the rules, by raw SQL: the database itself forbids what must never be."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import apsw
import psycopg
import pytest

from builders import StoreUnderTest, Yard

pytestmark = pytest.mark.breaks_rules

LEASE = """INSERT INTO lease (kind, repository_id, task_id, epoch, worker_id, token_hash, fence, term, ttl_ms,
  granted_ms, renewed_ms, expires_ms, max_until_ms, queue, agent, branch, label, workspace_id, environment_id)
  VALUES (:kind, 1, :task, :epoch, 1, 't', :fence, 0, 1, 1, 1, 1, 1, 'q', 'a', :branch, '', :workspace, :environment)"""
SCOPE = """INSERT INTO scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence)
  VALUES (:lease, :ord, 1, 1, 'x', :key, :end, :mode, :pattern, :above, 1)"""


def forbidden(store: StoreUnderTest, what: str, text: str, **values: Any) -> None:
    """The statement is refused by the constraint that says `what`, and changes nothing."""
    before = store.contents()
    with pytest.raises((apsw.ConstraintError, psycopg.errors.IntegrityError)) as refused:
        store.sql(text, **values)
    assert re.search(what, str(refused.value)), refused.value
    assert store.contents() == before


def lease(store: StoreUnderTest, *, expect: str = "", **changed: Any) -> None:
    """Write a lease by hand; where `expect` is given, it is refused by that."""
    values = {
        "kind": "lease",
        "task": 1,
        "epoch": 1,
        "fence": 50,
        "branch": None,
        "workspace": None,
        "environment": None,
        **changed,
    }
    if expect:
        forbidden(store, expect, LEASE, **values)
    else:
        store.sql(LEASE, **values)


def scope(store: StoreUnderTest, path: str, *, expect: str = "", **changed: Any) -> None:
    """Write a scope row by hand."""
    key = f"/{path}/" if path else "/"
    above: Any = [key[: at + 1] for at, letter in enumerate(key) if letter == "/"]
    values = {
        "lease": 1,
        "ord": 0,
        "key": key,
        "end": key[:-1] + "0",
        "mode": "w",
        "pattern": None,
        "above": str(above).replace("'", '"') if store.kind == "sqlite" else above,
        **changed,
    }
    if expect:
        forbidden(store, expect, SCOPE, **values)
    else:
        store.sql(SCOPE, **values)


def test_a_task_has_one_live_lease_and_one_per_epoch(yard: Yard, store: StoreUnderTest) -> None:
    yard.running("a")
    lease(store, epoch=2, expect="lease_one_live_per_task|lease.task_id")
    yard.add("other")
    store.sql("UPDATE lease SET ended_ms = 1, end_reason = 'forced'")
    lease(store, epoch=1, expect="lease_one_per_epoch|lease.task_id, lease.epoch")
    lease(store, epoch=2)


def test_a_fence_is_given_once(yard: Yard, store: StoreUnderTest) -> None:
    yard.running("a")
    lease(
        store, task=2, fence=1, expect="lease_one_grant_per_fence|lease.repository_id, lease.fence"
    )


def test_a_branch_a_workspace_and_an_environment_have_one_live_holder(
    yard: Yard, store: StoreUnderTest
) -> None:
    lease(store, branch="fix/a", workspace=7, environment=9)
    for n, (field, value, what) in enumerate(
        (
            ("branch", "fix/a", "lease_one_live_per_branch|lease.branch"),
            ("workspace", 7, "lease_one_live_per_workspace|lease.workspace_id"),
            ("environment", 9, "lease_one_live_per_environment|lease.environment_id"),
        )
    ):
        lease(store, task=2 + n, fence=60 + n, expect=what, **{field: value})
    store.sql("UPDATE lease SET ended_ms = 1, end_reason = 'forced'")
    lease(store, task=9, fence=70, branch="fix/a", workspace=7, environment=9)
    assert yard.repository


def test_one_unfinished_task_has_a_branch_and_a_unique_key(
    yard: Yard, store: StoreUnderTest
) -> None:
    for _ in range(2):
        yard.add()
    set_branch = "UPDATE task SET branch = 'fix/a' WHERE id = :id"
    set_key = "UPDATE task SET unique_key = 'k' WHERE id = :id"
    for text, what in (
        (set_branch, "task_one_unfinished_per_branch|task.branch"),
        (set_key, "task_one_unfinished_per_key|task.unique_key"),
    ):
        store.sql(text, id=1)
        forbidden(store, what, text, id=2)
    store.sql("UPDATE task SET status = 'cancelled', finished_ms = 1 WHERE id = 1")
    store.sql(set_branch, id=2)
    store.sql(set_key, id=2)


@pytest.mark.parametrize(
    ("held", "asked", "mode"),
    [
        ("a/b", "a/b", "w"),
        ("a/b", "a", "w"),
        ("a/b", "a/b/c", "w"),
        ("a/b", "", "w"),
        ("a/b", "a", "r"),
        ("a/b", "a/b/c", "r"),
    ],
)
def test_overlapping_paths_of_which_one_writes_cant_both_be_held(
    yard: Yard, store: StoreUnderTest, held: str, asked: str, mode: str
) -> None:
    scope(store, held)
    scope(
        store,
        asked,
        lease=2,
        mode=mode,
        expect="scope_no_overlap|scope_one_writer|scope.repository_id",
    )
    scope(store, asked, lease=1, ord=1, mode="r")  # one lease may hold both
    assert yard.repository


def test_a_reader_is_protected_from_a_writer_too(yard: Yard, store: StoreUnderTest) -> None:
    scope(store, "a/b", mode="r")
    scope(store, "a/b/c", lease=2, mode="r")
    for path in ("a", "a/b", "a/b/c", "a/b/c/d", ""):
        scope(store, path, lease=3, expect="scope_no_overlap")
    for n, path in enumerate(("a/bb", "a/b-2", "a/a", "b")):
        scope(store, path, lease=4, ord=n)
    assert yard.repository


def test_two_rows_of_one_statement_cant_overlap_either(yard: Yard, store: StoreUnderTest) -> None:
    scope(store, "x")
    double = """INSERT INTO scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, ancestors, fence)
      SELECT t.id + 10, 0, 1, 1, 'y', '/y/', '/y0', 'w', s.ancestors, 1 FROM task AS t, scope AS s"""
    above = '["/", "/y/"]' if store.kind == "sqlite" else ["/", "/y/"]
    store.sql("DELETE FROM scope")
    scope(store, "z", above=above)
    yard.add()
    yard.add()
    forbidden(store, "scope_no_overlap|scope_one_writer|scope.repository_id", double)


def test_a_held_path_cant_be_moved(yard: Yard, store: StoreUnderTest) -> None:
    yard.running("a")
    for change in (
        "key = '/b/'",
        "key_end = '/b0'",
        "mode = 'r'",
        "pattern = '*'",
        "repository_id = 2",
        "reserved_rank = 0",
    ):
        forbidden(store, "scope_keeps_its_path", f"UPDATE scope SET {change}")
    store.sql("UPDATE scope SET lease_id = 77")


def test_what_is_terminal_stays_so(yard: Yard, store: StoreUnderTest) -> None:
    grant = yard.running("a")
    yard.complete(grant)
    for status in ("queued", "running", "failed", "cancelled"):
        forbidden(
            store,
            "task_terminal_stays_terminal|task_finished_when_terminal",
            "UPDATE task SET status = :s, finished_ms = CASE WHEN :s IN ('failed', 'cancelled') THEN finished_ms END",
            s=status,
        )


def test_epochs_fences_and_terms_only_grow(yard: Yard, store: StoreUnderTest) -> None:
    yard.running("a")
    forbidden(store, "task_epoch_only_grows", "UPDATE task SET epoch = epoch - 1")
    forbidden(
        store, "counter_only_grows", "UPDATE counter SET fence = fence - 1 WHERE repository_id = 1"
    )
    store.sql("UPDATE repository SET term = 5")
    forbidden(store, "repository_only_grows", "UPDATE repository SET term = 4")


def test_an_ended_lease_stays_ended(yard: Yard, store: StoreUnderTest) -> None:
    yard.complete(yard.running("a"))
    for change in (
        "ended_ms = NULL, end_reason = NULL",
        "ended_ms = ended_ms + 1",
        "expires_ms = expires_ms + 1",
    ):
        forbidden(store, "lease_stays_ended|lease_deadline", f"UPDATE lease SET {change}")


def test_events_are_only_appended(yard: Yard, store: StoreUnderTest) -> None:
    yard.add()
    forbidden(store, "event_is_append_only", "UPDATE event SET facts = '{}'")
    forbidden(
        store,
        "event_pkey|event.task_id|UNIQUE",
        "INSERT INTO event (task_id, n, at_ms, kind, epoch, facts) VALUES (1, 1, 0, 'x', 0, '{}')",
    )


def test_nothing_of_an_unfinished_task_is_deleted(yard: Yard, store: StoreUnderTest) -> None:
    grant = yard.running("a")
    forbidden(store, "task_deleted_only_when_terminal|foreign", "DELETE FROM task")
    forbidden(store, "lease_deleted_only_when_terminal", "DELETE FROM lease")
    forbidden(store, "event_deleted_only_when_terminal", "DELETE FROM event")
    yard.complete(grant)
    for table in ("event", "lease", "task_scope", "submission", "task"):  # as retention does
        store.sql(f"DELETE FROM {table}")
    assert store.sql("SELECT count(*) FROM task") == [(0,)]


CHECKS = {
    "UPDATE task SET status = 'odd'": "task_status|CHECK|status",
    "UPDATE task SET due = 2": "task_due|CHECK|due",
    "UPDATE task SET needs_left = -1": "needs_left",
    "UPDATE task SET effects = 'odd'": "effects",
    "UPDATE task SET stage = 'odd'": "stage",
    "UPDATE task SET epoch = -1": "epoch",
    "UPDATE task SET attempts = -1": "attempts",
    "UPDATE task SET charged = -1": "charged",
    "UPDATE task SET max_attempts = 0": "max_attempts",
    "UPDATE task SET progress = 3": "progress",
    "UPDATE task SET waiting_on = 1": "task_waits_only_when_queued",
    "UPDATE task SET finished_ms = 1": "task_finished_when_terminal",
    "UPDATE lease SET kind = 'odd'": "kind",
    "UPDATE lease SET end_reason = 'odd', ended_ms = 1": "end_reason",
    "UPDATE lease SET end_reason = 'forced'": "lease_ended_with_reason",
    "UPDATE lease SET ended_ms = 1": "lease_ended_with_reason",
    "UPDATE lease SET drained = 2": "drained",
    "UPDATE lease SET expires_ms = max_until_ms + 1": "lease_deadline_within_hold",
    "UPDATE repository SET fold_case = 2": "fold_case",
    "UPDATE task_scope SET mode = 'x'": "mode",
    "INSERT INTO queue (name, overtake_limit) VALUES ('q', 0)": "overtake_limit",
    "INSERT INTO usage_limit (kind, key, maximum) VALUES ('odd', 'k', 1)": "kind",
    "INSERT INTO usage_limit (kind, key, maximum) VALUES ('key', 'k', -1)": "maximum",
    "INSERT INTO dependency (task_id, needs_id) VALUES (1, 1)": "dependency|CHECK|task_id",
    "INSERT INTO dependency (task_id, needs_id) VALUES (1, 99)": "(?i)foreign key",
    "UPDATE submission SET number = 1": "submission_one_number|submission.number",
}


@pytest.mark.parametrize("text", CHECKS)
def test_a_value_that_means_nothing_is_refused(
    yard: Yard, store: StoreUnderTest, text: str
) -> None:
    yard.running("a")
    yard.add("second", free=True)
    if text.startswith("UPDATE task SET"):
        text = f"{text} WHERE id = 1"
    if text.startswith("UPDATE submission"):
        store.sql("UPDATE submission SET repository_id = 1, number = 2 WHERE task_id = 2")
    forbidden(store, CHECKS.get(text.removesuffix(" WHERE id = 1"), ""), text)


def test_one_turn_is_reserved_in_a_repository(yard: Yard, store: StoreUnderTest) -> None:
    lease(store, kind="reservation")
    lease(store, kind="reservation", task=2, expect="lease_one_reservation|lease.repository_id")
    assert yard.repository


def test_a_workspace_path_has_one_record(yard: Yard, store: StoreUnderTest) -> None:
    yard.add()
    text = """INSERT INTO workspace (task_id, epoch, host_id, path, branch, base, state, at_ms)
      VALUES (1, 1, 'h', '/w', 'b', 'c', 'present', 1)"""
    store.sql(text)
    forbidden(store, "workspace_one_per_path|workspace.path", text)
    store.sql("UPDATE workspace SET state = 'gone'")
    store.sql(text)


def test_a_constraint_that_fires_is_a_typed_error(yard: Yard, store: StoreUnderTest) -> None:
    """What the rules let through by a fault shows as the constraint's own name, and nothing is written."""
    grant = yard.running("a")
    plainly: Callable[[], Any] = lambda: store.connect().leases.widen(grant.holder, ["b"])  # noqa: E731
    store.sql(
        "INSERT INTO widening (repository_id, fence, ord, lease_id, task_id, text, key, mode) "
        "VALUES (1, 2, 1, 1, 1, 'x', '/x/', 'w')"
    )
    before = store.contents()
    error = yard.refused(plainly)
    assert error.code == "constraint"
    assert "widening" in str(error.facts["constraint"])
    assert store.contents() == before
