"""Whether a store holds what the specification says, row by row."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ledger import Ledger
from reference import Reference
from world import Lease, Task


def differences(ref: Reference, ledger: Ledger) -> list[str]:
    """What the store has otherwise, in words; empty when they agree."""
    tasks, leases = ledger.by_id("task"), ledger.by_id("lease")
    found = _missing("task", ref.tasks, tasks) + _missing("lease", ref.leases, leases)
    if found:
        return found
    for number, task in ref.tasks.items():
        found += _compare(f"task {number}", _task(ref, task), tasks[number])
    for number, lease in ref.leases.items():
        found += _compare(f"lease {number}", _lease(lease), leases[number])
        said = leases[number]["label"].rpartition(";epoch=")[2]
        if lease.kind == "lease" and said != str(lease.epoch):
            found.append(f"lease {number}: its label says epoch {said}, not {lease.epoch}")
    for number, place in ref.places.items():
        if number:
            row = ledger.by_id("counter")[number]
            mine = {"fence": place.fence, "floor_ms": place.floor}
            found += _compare(f"repository {number}", mine, row)
    found += _histories(ref, ledger)
    blocked = {
        (row["lease_id"], row["text"], row["mode"], row["fence"]) for row in ledger.rows("scope")
    }
    mine_blocked = {(lease.id, *row) for lease in ref.leases.values() for row in lease.rows}
    found += [f"blocked: {row}" for row in sorted(blocked - mine_blocked)]
    found += [f"not blocked: {row}" for row in sorted(mine_blocked - blocked)]
    asked = {key for key in ledger.tables["request"] if key[0] != ""}
    found += [f"answered: {key}" for key in sorted(asked ^ ref.requests.keys())]
    return found


def _missing(what: str, mine: dict[int, Any], theirs: dict[int, Any]) -> list[str]:
    return [
        f"{what} {number} is only on one side" for number in sorted(mine.keys() ^ theirs.keys())
    ]


def _compare(name: str, mine: dict[str, Any], row: Any) -> list[str]:
    return [
        f"{name}: {column} is {row[column]!r}, not {value!r}"
        for column, value in mine.items()
        if row[column] != value
    ]


def _task(ref: Reference, task: Task) -> dict[str, Any]:
    fence, since = task.parked or (None, None)
    return {
        "status": task.state,
        "epoch": task.epoch,
        "attempts": task.attempts,
        "charged": task.charged,
        "same_errors": task.same_errors,
        "stage": task.stage,
        "run_at_ms": task.run_at,
        "due": int(task.due),
        "waiting_on": task.waiting_on,
        "parked_fence": fence,
        "parked_ms": since,
        "needs_left": ref.needs_left(task),
    }


def _lease(lease: Lease) -> dict[str, Any]:
    return {
        "kind": lease.kind,
        "task_id": lease.task,
        "repository_id": lease.place,
        "epoch": lease.epoch,
        "worker_id": lease.worker,
        "version": lease.version,
        "fence": lease.fence,
        "granted_ms": lease.granted,
        "expires_ms": lease.expires,
        "max_until_ms": lease.until,
        "ended_ms": lease.ended,
        "end_reason": lease.end,
        "drained": int(lease.drained),
    }


def _histories(ref: Reference, ledger: Ledger) -> list[str]:
    """Late evidence is written after the call's own transaction, so only its number counts."""
    theirs: dict[int, list[str]] = defaultdict(list)
    for row in ledger.rows("event"):
        theirs[row["task_id"]].append(row["kind"])
    return [
        f"task {number}: its history is {theirs[number]}, not {task.history}"
        for number, task in ref.tasks.items()
        if _in_order(theirs[number]) != _in_order(task.history)
    ]


def _in_order(history: list[str]) -> tuple[list[str], int]:
    return [kind for kind in history if kind != "late"], history.count("late")
