"""Rows of what is pushed: `rows` for fence references, intents and branches."""

from __future__ import annotations

from typing import NamedTuple


class FenceRefRow(NamedTuple):
    """put_fence_ref, move_fence_ref, fence_ref, unclosed_fence_refs."""

    lease_id: int
    remote: str
    oid: str
    state: str


class IntentRow(NamedTuple):
    """intent, task_intents, unsettled_intents."""

    id: int
    kind: str
    repository_id: int
    task_id: int
    number: int
    lease_id: int
    epoch: int
    target: str
    facts: str
    secret_hash: str
    announced_ms: int
    settled_ms: int | None
    outcome: str | None
    response: str
    ended_ms: int | None
    end_reason: str | None
    expires_ms: int
    now: int


class StandingRow(NamedTuple):
    """branch_standings."""

    branch: str
    task_id: int
    number: int
    title: str
    status: str
    epoch: int
    lease_id: int | None
    agent: str | None
    expires_ms: int | None
    head: str | None
    now: int
