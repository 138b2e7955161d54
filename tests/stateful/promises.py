"""The invariants, judged from the rows alone: what was true before a step, what is after it."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

from ledger import Ledger, Row
from world import clash

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
KEPT = ("task", "lease", "event", "submission", "request", "repository", "counter")
COUNTED = {"queue": ("queue",), "key": ("limit_key",), "agent": ("agent", "agent_kind")}
GROWS = {
    "task": ("epoch", "attempts", "events"),
    "repository": ("term",),
    "counter": ("turn", "fence", "floor_ms"),
}


def check_promises(before: Ledger, after: Ledger, granted: dict[tuple[int, int], Row]) -> None:
    """Fail with the first promise that the step broke.

    Args:
        granted: every row that ever blocked a path, by lease and place; kept up to date here.
    """
    _check_growth(before, after)
    _check_leases(after)
    _check_limits(before, after)
    _check_paths(after)
    _check_fences(after, granted)
    _check_events(before, after)
    _check_waiting(after)


def _check_growth(before: Ledger, after: Ledger) -> None:
    for table in KEPT:
        lost = before.tables[table].keys() - after.tables[table].keys()
        assert not lost, f"rows of {table} vanished: {lost}"
    for table, columns in GROWS.items():
        for key, row in before.tables[table].items():
            now = after.tables[table][key]
            for column in columns:
                assert now[column] >= row[column], f"{column} of {table} {key} went back"
    for key, row in before.tables["task"].items():
        if row["status"] in TERMINAL:
            assert after.tables["task"][key]["status"] == row["status"], f"task {key} came back"
    for key, row in before.tables["lease"].items():
        now = after.tables["lease"][key]
        assert now["version"] >= row["version"]
        if row["ended_ms"] is not None:
            same = ("ended_ms", "end_reason", "expires_ms", "version")
            assert [now[c] for c in same] == [row[c] for c in same], (
                f"lease {key} didn't stay ended"
            )
    for key, row in before.tables["event"].items():
        assert after.tables["event"][key] == row, f"event {key} was rewritten"
    for key, row in before.tables["request"].items():
        assert after.tables["request"][key] == row, f"the answer of {key} was rewritten"


def _check_leases(after: Ledger) -> None:
    tasks = after.by_id("task")
    leases = [row for row in after.rows("lease") if row["kind"] == "lease"]
    live = Counter(row["task_id"] for row in leases if row["ended_ms"] is None)
    assert all(held == 1 for held in live.values()), f"two live leases of one task: {live}"
    for number, task in tasks.items():
        assert (task["status"] == "running") == (number in live), f"{task} and its lease disagree"
    epochs = [(row["task_id"], row["epoch"]) for row in leases]
    assert len(epochs) == len(set(epochs)), "an epoch was used twice"
    for row in leases:
        assert row["epoch"] <= tasks[row["task_id"]]["epoch"]
        assert row["ended_ms"] is not None or row["epoch"] == tasks[row["task_id"]]["epoch"]
    fences = [(row["repository_id"], row["fence"]) for row in leases if row["repository_id"]]
    assert len(fences) == len(set(fences)), "a fence was given twice"


def _check_limits(before: Ledger, after: Ledger) -> None:
    """A grant is never one too many; a limit that was set later ends nothing."""
    live = [r for r in after.rows("lease") if r["kind"] == "lease" and r["ended_ms"] is None]
    for limit in after.rows("usage_limit"):
        columns = COUNTED[limit["kind"]]
        counted = [row for row in live if limit["key"] in {row[column] for column in columns}]
        new = [row for row in counted if (row["id"],) not in before.tables["lease"]]
        assert not new or len(counted) <= limit["maximum"], f"{limit} was overstepped by {new}"


def _check_paths(after: Ledger) -> None:
    """No two live scopes of which one writes overlap."""
    leases = after.by_id("lease")
    here: dict[int, list[Row]] = defaultdict(list)
    for row in after.rows("scope"):
        assert not leases[row["lease_id"]]["drained"], f"{row} outlived its lease's drain"
        if row["reserved_rank"] is None:
            here[row["repository_id"]].append(row)
    for rows in here.values():
        for one, other in combinations(rows, 2):
            if one["task_id"] != other["task_id"]:
                assert not clash(_paths(one), _paths(other)), f"{one} and {other} overlap"


def _check_fences(after: Ledger, granted: dict[tuple[int, int], Row]) -> None:
    """Of two overlapping grants of which one writes, the later has the larger fence."""
    fresh = {
        key: row
        for key, row in after.tables["scope"].items()
        if key not in granted and row["reserved_rank"] is None
    }
    for row in fresh.values():
        for old in granted.values():
            apart = (old["repository_id"], old["task_id"]) != (row["repository_id"], row["task_id"])
            if (
                apart
                and old["repository_id"] == row["repository_id"]
                and old["fence"] >= row["fence"]
            ):
                assert not clash(_paths(row), _paths(old)), f"{row} has an older fence than {old}"
    granted.update({(key[0], key[1]): row for key, row in fresh.items()})


def _paths(row: Row) -> list[tuple[str, str]]:
    return [(row["text"], row["mode"])]


def _check_events(before: Ledger, after: Ledger) -> None:
    counted = Counter(row["task_id"] for row in after.rows("event"))
    for number, task in after.by_id("task").items():
        assert counted[number] == task["events"], f"{task} has {counted[number]} events"
        assert (number, task["events"]) in after.tables["event"], f"{task} has a gap in its events"
        old = before.tables["task"].get((number,))
        moved = old is None or any(old[c] != task[c] for c in ("status", "epoch", "charged"))
        assert not moved or old is None or task["events"] > old["events"], f"{task} moved unseen"


def _check_waiting(after: Ledger) -> None:
    tasks, leases = after.by_id("task"), after.by_id("lease")
    unmet: Counter[int] = Counter()
    for row in after.rows("dependency"):
        unmet[row["task_id"]] += tasks[row["needs_id"]]["status"] != "succeeded"
    for number, task in tasks.items():
        assert task["needs_left"] == unmet[number], f"{task} needs {unmet[number]} tasks"
        if task["waiting_on"] is not None:
            assert task["status"] == "queued"
            assert not leases[task["waiting_on"]]["drained"], f"{task} would wait for ever"
