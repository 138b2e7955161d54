"""Rows as the statements return them, by name; the only place that knows their columns' order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lessor.errors import StoreCorruptError


class GrantRow(NamedTuple):
    """claim_write, claim_free, grants."""

    lease_id: int
    task_id: int
    epoch: int
    version: int
    fence: int
    term: int
    ttl_ms: int
    granted_ms: int
    expires_ms: int
    max_until_ms: int
    label: str
    branch: str | None
    repository_id: int
    queue: str
    attempts: int
    effects: str
    progress: int
    number: int
    title: str
    prompt: str
    check_command: str | None
    idempotency_key: str | None
    strict: int
    scopes: str
    ended_ms: int | None
    rank: int
    now: int
    stand: str | None


class CandidateRow(NamedTuple):
    """candidates."""

    task_id: int
    epoch: int
    rank: int
    agent: str | None
    limit_key: str | None
    branch: str | None
    progress: int
    globs: int
    number: int
    title: str
    blocker: int | None
    scopes: str | None
    has_own: int
    live_globs: int
    limited: int
    shadowed: int
    now: int


class LapsedRow(NamedTuple):
    """lapsed_leases."""

    lease_id: int
    task_id: int
    epoch: int
    kind: str
    worker_id: int | None
    expires_ms: int
    proof: str | None
    status: str
    effects: str
    charged: int
    max_attempts: int
    same_errors: int
    keyed: int
    queue: str
    unsettled: int
    now: int


class FreedRow(NamedTuple):
    """end_queue_reservations, end_unserved_reservations."""

    lease_id: int
    task_id: int
    epoch: int
    kind: str
    ended_ms: int


class SurveyRow(NamedTuple):
    """drain: what was drained, and what else a claim has to see to.

    `parked` is the task whose turn may have to be reserved, with the five columns after it.
    """

    drained: int
    woken: int
    due: int
    lapsed: int
    undrained: int
    parked: int | None
    parked_fence: int
    parked_ms: int
    overtake_limit: int
    overtake_ms: int
    reserved: int


class RepositoryRow(NamedTuple):
    """lock_repository."""

    id: int
    fence: int
    term: int
    floor_ms: int
    fold_case: int
    normalize: int
    unlanded: str


class ResultRow(NamedTuple):
    """lock_result."""

    task_id: int
    status: str
    lease_id: int
    landed: str | None
    trouble: str | None
    given_up: int


class CompletedRow(NamedTuple):
    """complete_leases: a row for each item whose task had a lease at that epoch."""

    ord: int
    done: int
    lease_id: int
    mine: int
    ended_ms: int | None
    end_reason: str | None
    end_digest: str | None
    expires_ms: int | None
    now: int
    wakes: int


class RenewedRow(NamedTuple):
    """renew_leases."""

    ord: int
    done: int
    lease_id: int | None
    mine: int
    ended_ms: int | None
    end_reason: str | None
    renew_request: str | None
    version: int | None
    ttl_ms: int | None
    expires_ms: int | None
    max_until_ms: int | None
    now: int


class LockedRow(NamedTuple):
    """lock_leases, lock_live_leases."""

    ord: int
    lease_id: int | None
    task_id: int
    epoch: int
    mine: int
    repository_id: int | None
    fence: int | None
    ended_ms: int | None
    end_reason: str | None
    end_digest: str | None
    expires_ms: int | None
    status: str | None
    effects: str
    charged: int
    max_attempts: int
    same_errors: int
    error_print: str | None
    keyed: int
    queue: str | None
    unsettled: int
    worker_id: int | None
    version: int | None
    now: int


class RefusalRow(NamedTuple):
    """refusal."""

    task_id: int
    number: int
    status: str
    epoch: int
    lease_id: int | None
    agent: str | None
    worker_id: int | None
    expires_ms: int | None
    end_reason: str | None
    kind: str | None
    now: int


class TaskRow(NamedTuple):
    """tasks."""

    id: int
    number: int
    title: str
    prompt: str
    queue: str
    repository_id: int
    rank: int
    status: str
    stage: str
    effects: str
    agent: str | None
    check_command: str | None
    branch: str | None
    strict: int
    progress: int
    unique_key: str | None
    idempotency_key: str | None
    limit_key: str | None
    capabilities: str
    epoch: int
    attempts: int
    charged: int
    max_attempts: int
    run_at_ms: int
    queued_ms: int
    created_ms: int
    finished_ms: int | None
    needs_left: int
    waiting_on: int | None
    result: str | None
    scopes: str


class LeaseRow(NamedTuple):
    """leases, lease."""

    id: int
    kind: str
    repository_id: int
    task_id: int
    number: int
    title: str
    epoch: int
    worker_id: int | None
    agent: str
    version: int
    fence: int
    term: int
    ttl_ms: int
    granted_ms: int
    renewed_ms: int
    expires_ms: int
    max_until_ms: int
    queue: str
    branch: str | None
    label: str
    workspace_id: int | None
    ended_ms: int | None
    end_reason: str | None
    acknowledged_ms: int | None
    proof: str | None
    result: str | None
    late: int
    now: int


class WorkerRow(NamedTuple):
    """add_worker, worker, live_workers."""

    id: int
    agent: str
    kind: str
    host_id: str
    boot_id: str
    pid: int | None
    pid_namespace: str
    start_ticks: int | None
    capabilities: str
    heartbeat: int
    registered_ms: int
    retired_ms: int | None


class ScopeHit(NamedTuple):
    """scope_conflicts."""

    ord: int
    lease_id: int
    task_id: int
    text: str
    key: str
    mode: str
    pattern: str | None
    fence: int
    reserved_rank: int | None


class WaitRow(NamedTuple):
    """task_wait."""

    task_id: int
    status: str
    queue: str
    repository_id: int
    rank: int
    due: int
    run_at_ms: int
    needs_left: int
    waiting_on: int | None
    parked_fence: int | None
    parked_ms: int | None
    agent: str | None
    capabilities: str
    limit_key: str | None
    queued_ms: int
    globs: int
    paused: int
    wait_max_ms: int
    now: int


_ENCODE = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps makes one at each call
_TEXT = json.encoder.encode_basestring_ascii  # flat records: three times as fast as with an encoder


def pack(rows: Iterable[Mapping[str, Any]] | Sequence[Any]) -> str:
    """A list as the one JSON parameter that a statement takes for it."""
    return _ENCODE(rows if isinstance(rows, list) else list(rows))


def pack_facts(**facts: Any) -> str:
    """An event's facts, or a result."""
    # One expression without calls: two of these are made for each lease of a batch.
    parts = [
        f'"{name}":null'
        if value is None
        else f'"{name}":{_TEXT(value)}'
        if isinstance(value, str)
        else f'"{name}":{_ENCODE(value) if value or type(value) is not dict else "{}"}'
        for name, value in facts.items()
    ]
    return "{" + ",".join(parts) + "}"


def unpack(text: str) -> Any:
    """What `pack` or the database made; StoreCorruptError where it can't be read back."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise damaged(text) from error


def damaged(text: str) -> StoreCorruptError:
    """What the store kept can't be read back: nobody but this module's writers made it."""
    return StoreCorruptError(
        f"A record of the store is damaged: {text[:60]!r}.",
        next_step="Restore a backup: lessor restore FILE.",
    )
