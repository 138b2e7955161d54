"""Invariants of the remote: no stale push lands, and the record says what the remote has done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from lessor.service.naming import Naming
from simulation.ground import clash
from simulation.judging import Commit
from simulation.remote import Remote, Taken
from simulation.tables import Row, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A push that the remote has just taken."""

    tables: Tables
    naming: Naming
    remote: Remote
    push: Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A commit beside what the remote has taken so far."""

    commit: Commit
    remote: Remote


def no_stale_push_lands(landed: Landed) -> Iterator[str]:
    """The remote takes no push of a lease once a later, overlapping one is ready there."""
    if not landed.push.lease:
        return
    lease = landed.tables.lease(landed.naming.lease_row(landed.push.lease))
    if lease is None:
        yield f"a push moved the fence of {landed.push.lease}, which there isn't"
        return
    for (number, _), fence in landed.tables.rows["fence_ref"].items():
        other = landed.tables.lease(number)
        if other is None or fence["state"] != "open":
            continue
        if other["ended_ms"] is not None and other["fence"] <= lease["fence"]:
            continue
        if _overlap(landed.tables, lease, other):
            yield f"lease {lease['id']} pushed {landed.push.ref} after lease {number} was ready"


def no_push_lands_after_its_fence_is_closed(landed: Landed) -> Iterator[str]:
    """A lease whose fence reference is on record as closed pushes nothing any more."""
    if not landed.push.lease:
        return
    number = landed.naming.lease_row(landed.push.lease)
    for key, fence in landed.tables.rows["fence_ref"].items():
        if key[0] == number and fence["state"] == "closed":
            yield f"lease {number} pushed {landed.push.ref}, and its fence is closed"


def no_push_lands_that_was_settled_otherwise(landed: Landed) -> Iterator[str]:
    """A fenced push that is on record as failed never lands."""
    for intent in landed.tables.rows["intent"].values():
        if landed.push.fence is None or intent["outcome"] != "failed":
            continue
        if json.loads(intent["facts"])["next_fence"] == landed.push.fence:
            yield f"push {intent['id']} was settled as failed, and landed"


def branches_keep_their_commits(landed: Landed) -> Iterator[str]:
    """A branch at the remote only moves to commits that lead to what it had."""
    old, new = landed.push.old, landed.push.new
    if old is not None and not landed.remote.leads_to(new, old):
        yield f"{landed.push.ref} lost {old[:8]}"


def a_push_is_settled_as_it_went(settled: Settled) -> Iterator[str]:
    """A push is on record as done exactly when the remote took it."""
    for change in settled.commit.of("intent"):
        intent = change.new
        if intent is None or intent["settled_ms"] is None:
            continue
        facts = json.loads(intent["facts"])
        fenced = facts["next_fence"] is not None
        took = [
            push
            for push in settled.remote.log
            if (push.ref, push.new) == (facts["ref"], facts["new"])
            and (not fenced or push.fence == facts["next_fence"])
        ]
        if intent["outcome"] == "done" and not took:
            yield f"push {intent['id']} is on record as done, and the remote never took it"
        if fenced and intent["outcome"] == "failed" and took:
            yield f"push {intent['id']} is on record as failed, and the remote took it"


LANDED_RULES = (
    no_stale_push_lands,
    no_push_lands_after_its_fence_is_closed,
    no_push_lands_that_was_settled_otherwise,
    branches_keep_their_commits,
)
SETTLED_RULES = (a_push_is_settled_as_it_went,)


def _overlap(tables: Tables, lease: Row, other: Row) -> bool:
    if lease["repository_id"] != other["repository_id"] or lease["id"] == other["id"]:
        return False
    if lease["task_id"] == other["task_id"]:
        return True
    return any(
        clash(a["text"], a["mode"], b["text"], b["mode"])
        for a in tables.paths(lease["task_id"])
        for b in tables.paths(other["task_id"])
    )
