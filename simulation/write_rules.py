"""Invariants of what is written: by the live holder alone, never undone, each with its event."""

from __future__ import annotations

from collections.abc import Iterator

from simulation.judging import Commit
from simulation.tables import Row

_TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
_BY_HOLDER = frozenset({"completed", "failed", "released", "asked"})
_BY_PERSON = frozenset({"cancelled", "forced"})
_PEOPLE = frozenset({"cancel", "block", "force_release"})
_MAY_GO = frozenset({"scope", "shadow_scope", "usage_limit", "task_scope", "dependency"})
_GROWS = {
    "task": ("attempts", "events"),
    "counter": ("turn", "floor_ms"),
    "lease": ("version",),
    "repository": ("term",),
}
_FROZEN = ("ended_ms", "end_reason", "end_digest", "expires_ms", "version", "result", "token_hash")
_NOT_EXTENDED = ("version", "renewed_ms", "renew_request")


def only_the_live_holder_renews(commit: Commit) -> Iterator[str]:
    """A lease is renewed by its live holder alone, who knows its version, and by one version."""
    for old, new in commit.rows("lease"):
        moved = [name for name in _NOT_EXTENDED if old[name] != new[name]]
        if not moved:
            continue
        if commit.doing.kind != "renew" or not commit.held(old, versioned=True):
            yield f"{_lease(old, commit)} changed {moved} by {_who(commit)}"
        if new["version"] != old["version"] + 1:
            yield f"lease {new['id']} went from version {old['version']} to {new['version']}"


def only_the_live_holder_ends_it_as_done(commit: Commit) -> Iterator[str]:
    """A lease is completed, failed, released or asked by its live holder alone."""
    for old, new in commit.rows("lease"):
        ended = old["ended_ms"] is None and new["end_reason"] in _BY_HOLDER
        if not ended or old["kind"] != "lease":
            continue
        if not commit.held(old, versioned=True):
            yield f"{_lease(old, commit)} was {new['end_reason']} by {_who(commit)}"


def only_time_lapses_and_only_people_force(commit: Commit) -> Iterator[str]:
    """Else a lease ends by its deadline, by a person, or by a witness."""
    for old, new in commit.rows("lease"):
        if old["ended_ms"] is not None or new["ended_ms"] is None or old["kind"] != "lease":
            continue
        reason, latest = new["end_reason"], commit.latest(old["repository_id"])
        if reason == "lapsed" and latest < old["expires_ms"] + commit.slept:
            yield f"{_lease(old, commit)} lapsed {old['expires_ms'] - latest} ms early"
        elif reason in _BY_PERSON and commit.doing.kind not in _PEOPLE:
            yield f"{_lease(old, commit)} was {reason} by {_who(commit)}"
        elif reason == "gone" and commit.doing.kind != "end_gone" and old["proof"] is None:
            yield f"{_lease(old, commit)} is gone without a proof"
        elif reason not in {*_BY_HOLDER, *_BY_PERSON, "lapsed", "gone"}:
            yield f"{_lease(old, commit)} ended as {reason}"


def only_the_live_holder_widens(commit: Commit) -> Iterator[str]:
    """Paths are added to a live lease by its live holder alone."""
    fresh = {row["id"] for row in commit.made("lease")}
    for row in commit.made("scope"):
        lease = commit.tables.lease(row["lease_id"])
        if lease is None or lease["id"] in fresh or lease["kind"] != "lease":
            continue
        if not commit.held(lease, versioned=False):
            yield f"{_lease(lease, commit)} got {row['text']} by {_who(commit)}"


def only_the_live_holder_announces(commit: Commit) -> Iterator[str]:
    """A push, and a fence reference, is announced by the live holder alone."""
    for table in ("intent", "fence_ref"):
        for row in commit.made(table):
            lease = commit.tables.lease(row["lease_id"])
            if lease is None or not commit.held(lease, versioned=False):
                yield f"{table} of lease {row['lease_id']} was announced by {_who(commit)}"


def a_push_is_settled_once_and_by_the_right_one(commit: Commit) -> Iterator[str]:
    """A push is settled once: by its live holder, or by whoever recovers it once its lease has ended."""
    for old, new in commit.rows("intent"):
        lease = commit.tables.lease(new["lease_id"])
        if old["settled_ms"] is not None and old != new:
            yield f"push {new['id']} was settled as {old['outcome']}, and became {new['outcome']}"
        live = lease is not None and lease["ended_ms"] is None
        if lease is not None and live and not commit.held(lease, versioned=False):
            yield f"push {new['id']} of a live lease was settled by {_who(commit)}"


def a_deadline_never_comes_nearer(commit: Commit) -> Iterator[str]:
    """A renewal that was taken stays: the deadline of a live lease never comes nearer."""
    for old, new in commit.rows("lease"):
        still = old["ended_ms"] is None and old["kind"] == "lease"
        rebooted = new["proof"] is not None
        if still and not rebooted and new["expires_ms"] < old["expires_ms"]:
            yield f"lease {new['id']}: {old['expires_ms']} became {new['expires_ms']}"
        if new["expires_ms"] > new["max_until_ms"]:
            yield f"lease {new['id']} lasts longer than its longest hold"


def what_ended_stays_ended(commit: Commit) -> Iterator[str]:
    """A finished task stays finished, an ended lease ended, and neither is rewritten."""
    for old, new in commit.rows("task"):
        if old["status"] in _TERMINAL and new["status"] != old["status"]:
            yield f"task {new['id']} was {old['status']} and became {new['status']}"
    for old, new in commit.rows("lease"):
        moved = [name for name in _FROZEN if old[name] != new[name]]
        if old["ended_ms"] is not None and moved:
            yield f"lease {new['id']} had ended, and changed {moved}"


def a_task_is_finished_once(commit: Commit) -> Iterator[str]:
    """A task is completed by one lease at most."""
    for old, new in commit.rows("lease"):
        if new["end_reason"] != "completed" or old["end_reason"] == "completed":
            continue
        first = commit.memory.completed.setdefault(new["task_id"], new["id"])
        if first != new["id"]:
            yield f"task {new['task_id']} was completed by lease {first} and by {new['id']}"
        task = commit.tables.task(new["task_id"])
        if task is None or task["status"] != "succeeded":
            yield f"lease {new['id']} was completed, and its task isn't"


def nothing_goes_back(commit: Commit) -> Iterator[str]:
    """Counters, floors, versions and terms only grow."""
    for table, columns in _GROWS.items():
        for old, new in commit.rows(table):
            for column in columns:
                if new[column] < old[column]:
                    yield f"{table}.{column} went from {old[column]} to {new[column]}"


def nothing_is_deleted(commit: Commit) -> Iterator[str]:
    """Nothing is deleted, and what was told or answered isn't rewritten."""
    for table, changes in commit.changes.items():
        for change in changes:
            if change.new is None and table not in _MAY_GO:
                yield f"{table} {change.key} was deleted"
            if table in {"event", "request"} and change.old is not None:
                yield f"{table} {change.key} was rewritten"


def each_change_has_its_event(commit: Commit) -> Iterator[str]:
    """Each change of a task has its event in the same transaction, numbered without a gap."""
    told: dict[int, list[int]] = {}
    for row in commit.made("event"):
        told.setdefault(row["task_id"], []).append(row["n"])
    for change in commit.of("task"):
        task, old = change.new, change.old
        if task is None:
            continue
        numbers = sorted(told.pop(task["id"], []))
        before = 0 if old is None else old["events"]
        if numbers != list(range(before + 1, task["events"] + 1)):
            yield f"task {task['id']} counts {before}..{task['events']} events, and got {numbers}"
        moved = old is None or any(old[c] != task[c] for c in ("status", "epoch", "charged"))
        if moved and not numbers:
            yield f"task {task['id']} changed without an event"
    if told:
        yield f"events of tasks that don't count them: {told}"


def attempts_are_bounded(commit: Commit) -> Iterator[str]:
    """Each grant counts one attempt, and no more is charged than was begun, nor than may be.

    A person who unblocks a task whose attempts are spent lets it be tried once more, until one
    requeues it: then all of them are to be spent again.
    """
    _count_tries_again(commit)
    granted: dict[int, int] = {}
    for row in commit.made("lease"):
        if row["kind"] == "lease":
            granted[row["task_id"]] = granted.get(row["task_id"], 0) + 1
    for change in commit.of("task"):
        task, old = change.new, change.old
        if task is None:
            continue
        begun = task["attempts"] - (0 if old is None else old["attempts"])
        if begun != granted.get(task["id"], 0):
            yield f"task {task['id']} counts {begun} more attempts"
        most = task["max_attempts"] + commit.memory.unblocked.get(task["id"], 0)
        if task["charged"] > min(task["attempts"], most):
            yield f"task {task['id']} is charged {task['charged']} of {task['max_attempts']}"
        spent = old is not None and old["charged"] >= most
        if begun and spent and old is not None and old["status"] == "queued":
            yield f"task {task['id']} was granted with all its attempts spent"
        if old is not None and task["charged"] > old["charged"] + 1:
            yield f"task {task['id']} was charged {task['charged'] - old['charged']} at once"


def a_lapse_is_charged_and_a_stop_isnt(commit: Commit) -> Iterator[str]:
    """A lapse and a failure spend an attempt; a person's stop, a question, a release and a proof don't."""
    tasks = {new["id"]: (old, new) for old, new in commit.rows("task")}
    for old, new in commit.rows("lease"):
        if old["ended_ms"] is not None or new["ended_ms"] is None or new["kind"] != "lease":
            continue
        if new["task_id"] not in tasks:
            continue
        before, after = tasks[new["task_id"]]
        charged = after["charged"] - before["charged"]
        wanted = {"lapsed": 1, "failed": 1, "completed": None, "cancelled": 0}.get(
            new["end_reason"], 0
        )
        if wanted is not None and charged != wanted:
            yield f"lease {new['id']} {new['end_reason']}: {charged} was charged"


WRITE_RULES = (
    only_the_live_holder_renews,
    only_the_live_holder_ends_it_as_done,
    only_time_lapses_and_only_people_force,
    only_the_live_holder_widens,
    only_the_live_holder_announces,
    a_push_is_settled_once_and_by_the_right_one,
    a_deadline_never_comes_nearer,
    what_ended_stays_ended,
    a_task_is_finished_once,
    nothing_goes_back,
    nothing_is_deleted,
    each_change_has_its_event,
    attempts_are_bounded,
    a_lapse_is_charged_and_a_stop_isnt,
)


def _count_tries_again(commit: Commit) -> None:
    """Remember for each task how often a person let it be tried beyond its attempts."""
    again = commit.memory.unblocked
    for event in commit.made("event"):
        task = commit.tables.task(event["task_id"])
        if task is None:
            continue
        most = task["max_attempts"] + again.get(task["id"], 0)
        if event["kind"] == "unblocked" and task["charged"] >= most:
            again[task["id"]] = again.get(task["id"], 0) + 1
        elif event["kind"] == "requeued" and task["charged"] == 0:
            again.pop(task["id"], None)  # counted from the beginning, as is what may be charged


def _lease(row: Row, commit: Commit) -> str:
    left = row["expires_ms"] + commit.slept - commit.now
    over = "" if row["ended_ms"] is None else f", ended ({row['end_reason']})"
    return (
        f"lease {row['id']} (epoch {row['epoch']}, version {row['version']}, {left} ms left{over})"
    )


def _who(commit: Commit) -> str:
    shown = [f"epoch {h.epoch} version {h.version}" for h in commit.doing.holders]
    return f"{commit.doing.kind} with {', '.join(shown) or 'no proof'}"
