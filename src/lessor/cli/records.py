"""Records as programs get them: TypeIDs, RFC 3339, and the names that the field uses.

A lease's record has these names in this shape: leaseId, repo, scope.kind, scope.paths, workspaceId,
owner.taskId, owner.agentId, status, version, acquiredAt, expiresAt. They are part of the interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lessor.cli.output import Record
from lessor.cli.times import instant
from lessor.model.grant import Grant
from lessor.model.task import Task
from lessor.model.waiting import Held, Why
from lessor.service.reading import HistoryEntry, LeaseRecord

PATH_SET = "path-set"
ACTIVE = "active"


def task_record(task: Task, *, repo: str | None) -> Record:
    """A task; `repo` is its repository's key."""
    return {
        "taskId": task.id,
        "number": task.number,
        "title": task.title,
        "prompt": task.prompt,
        "repo": repo,
        "queue": task.queue,
        "priority": task.priority,
        "state": task.state,
        "stage": task.stage,
        "agent": task.agent,
        "check": task.check,
        "branch": task.branch,
        "scope": {"kind": PATH_SET, "paths": list(task.scopes)},
        "reads": list(task.reads),
        "strict": task.strict,
        "effects": task.effects,
        "capabilities": list(task.capabilities),
        "key": task.unique_key,
        "idempotencyKey": task.idempotency_key,
        "limitKey": task.limit_key,
        "epoch": task.epoch,
        "attempts": task.attempts,
        "charged": task.charged,
        "maxAttempts": task.max_attempts,
        "needsLeft": task.needs_left,
        "waitingOn": task.waiting_on,
        "base": task.base,
        "commit": task.commit,
        "said": task.said,
        "lastError": task.last_error,
        "createdAt": instant(task.created_ms),
        "queuedAt": instant(task.queued_ms),
        "runAt": instant(task.run_at_ms),
        "finishedAt": _instant(task.finished_ms),
    }


def lease_record(lease: LeaseRecord, *, repo: str | None) -> Record:
    """A lease as it was read; `repo` is its repository's key."""
    status = lease.end or (ACTIVE if lease.live else "expired")
    return {
        "leaseId": lease.id,
        "kind": lease.kind,
        "repo": repo,
        "scope": {"kind": PATH_SET, "paths": list(lease.paths)},
        "reads": list(lease.reads),
        "workspaceId": workspace_name(lease.number, lease.paths),
        "owner": {"taskId": lease.task, "agentId": lease.agent},
        "status": status,
        "version": lease.version,
        "acquiredAt": instant(lease.granted_ms),
        "expiresAt": instant(lease.expires_ms),
        "number": lease.number,
        "title": lease.title,
        "epoch": lease.epoch,
        "fence": lease.fence,
        "term": lease.term,
        "branch": lease.branch,
        "label": lease.label,
        "renewedAt": instant(lease.renewed_ms),
        "latestUntil": instant(lease.max_until_ms),
        "endedAt": _instant(lease.ended_ms),
        "proof": lease.proof,
        "lateWrites": lease.late,
        "ttlMs": max(0, lease.expires_ms - lease.now_ms) if lease.live else 0,
    }


def grant_record(grant: Grant, *, repo: str | None, agent: str) -> Record:
    """A lease just granted, with what its holder has to do; never its token."""
    return {
        "leaseId": grant.lease,
        "kind": "lease",
        "repo": repo,
        "scope": {"kind": PATH_SET, "paths": list(grant.scopes)},
        "reads": list(grant.reads),
        "workspaceId": workspace_name(grant.number, grant.scopes),
        "owner": {"taskId": grant.task, "agentId": agent},
        "status": ACTIVE,
        "version": grant.holder.version,
        "acquiredAt": instant(grant.granted_ms),
        "expiresAt": instant(grant.expires_ms),
        "number": grant.number,
        "title": grant.title,
        "prompt": grant.prompt,
        "check": grant.check,
        "effects": grant.effects,
        "strict": grant.strict,
        "idempotencyKey": grant.idempotency_key,
        "queue": grant.queue,
        "epoch": grant.epoch,
        "fence": grant.fence,
        "term": grant.term,
        "branch": grant.branch,
        "label": grant.label,
        "attempts": grant.attempts,
        "latestUntil": instant(grant.max_until_ms),
        "ttlMs": grant.ttl_ms,
    }


def held_record(held: Held) -> Record:
    """Somebody's hold on paths."""
    return {
        "leaseId": held.lease,
        "kind": held.kind,
        "scope": {"kind": PATH_SET, "paths": list(held.paths)},
        "owner": {"taskId": held.task, "agentId": held.agent},
        "number": held.number,
        "title": held.title,
        "epoch": held.epoch,
        "acquiredAt": instant(held.since_ms),
        "expiresAt": instant(held.ends_ms),
        "latestUntil": instant(held.latest_ms),
    }


def why_record(why: Why) -> Record:
    """Why a task is where it is."""
    return {
        "taskId": why.task,
        "number": why.number,
        "state": why.state,
        "cause": why.cause,
        "sentence": why.sentence,
        "holder": held_record(why.holder) if why.holder else None,
        "overlaps": [{"own": own, "held": held} for own, held in why.overlaps],
        "needs": list(why.needs),
        "position": why.position,
        "at": _instant(why.at_ms),
        "reserved": why.reserved,
        "overdue": why.overdue,
        "nextStep": why.next_step,
    }


def event_record(entry: HistoryEntry) -> Record:
    """One change of a task."""
    return {
        "n": entry.n,
        "at": instant(entry.at_ms),
        "kind": entry.kind,
        "epoch": entry.epoch,
        "facts": _plain(entry.facts),
    }


def workspace_name(number: int, paths: Sequence[str]) -> str:
    """The name that goes with a lease's workspace: `wt-billing-17`."""
    words = "".join(
        letter if letter.isascii() and letter.isalnum() else "-"
        for letter in (paths[0].rstrip("/").rpartition("/")[2] if paths else "")
    ).strip("-")
    return f"wt-{words[:40].lower()}-{number}" if words else f"wt-{number}"


def _instant(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else instant(milliseconds)


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
