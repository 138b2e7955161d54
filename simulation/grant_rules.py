"""Invariants of what is granted: one lease, apart from all others, ever later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from simulation.ground import clash, covers
from simulation.judging import Commit
from simulation.tables import Row

_TERMINAL = frozenset({"succeeded", "failed", "cancelled"})


def one_live_lease_a_task(commit: Commit) -> Iterator[str]:
    """At most one live lease for a task, and a task runs exactly while it has one."""
    for change in commit.of("task"):
        task = change.new
        if task is None:
            continue
        live = _live(commit, task["id"])
        if len(live) > 1:
            yield f"task {task['id']} has the live leases {[row['id'] for row in live]}"
        if (task["status"] == "running") != (len(live) == 1):
            yield f"task {task['id']} is {task['status']} and has {len(live)} live leases"
    for row in commit.made("lease"):
        if row["kind"] == "lease" and len(_live(commit, row["task_id"])) > 1:
            yield f"lease {row['id']} is a second one of task {row['task_id']}"


def epochs_only_grow(commit: Commit) -> Iterator[str]:
    """A task's epochs only grow, none is granted twice, and only the latest is live."""
    for old, new in commit.rows("task"):
        if new["epoch"] < old["epoch"]:
            yield f"task {new['id']} went from epoch {old['epoch']} to {new['epoch']}"
    for row in commit.made("lease"):
        if row["kind"] != "lease":
            continue
        last = commit.memory.epochs.get(row["task_id"], 0)
        if row["epoch"] <= last:
            yield f"lease {row['id']} is of epoch {row['epoch']}; {last} was granted before"
        commit.memory.epochs[row["task_id"]] = row["epoch"]
        task = commit.tables.task(row["task_id"])
        if task is None or task["epoch"] != row["epoch"]:
            yield f"lease {row['id']} is of epoch {row['epoch']}, and its task isn't"


def fences_only_grow(commit: Commit) -> Iterator[str]:
    """A repository's fences only grow, and none is given to two grants."""
    for old, new in commit.rows("counter"):
        if new["fence"] < old["fence"]:
            yield f"repository {new['repository_id']}: {old['fence']} became {new['fence']}"
    made = [r for r in commit.made("lease") if r["kind"] == "lease" and r["repository_id"]]
    for row in sorted(made, key=lambda row: int(row["fence"])):
        last = commit.memory.fences.get(row["repository_id"], 0)
        if row["fence"] <= last:
            yield f"lease {row['id']} got the fence {row['fence']}; {last} was given before"
        commit.memory.fences[row["repository_id"]] = row["fence"]
    for row in commit.made("widening"):
        here = row["repository_id"]
        commit.memory.fences[here] = max(commit.memory.fences.get(here, 0), row["fence"])


def no_overlap(commit: Commit) -> Iterator[str]:
    """No two scopes of a repository that are held side by side overlap where one writes."""
    for change in commit.of("scope"):
        row = change.new
        if row is None or row["reserved_rank"] is not None:
            continue
        for other in commit.tables.scopes[row["repository_id"]].values():
            if other["task_id"] == row["task_id"] or other["reserved_rank"] is not None:
                continue
            if clash(row["text"], row["mode"], other["text"], other["mode"]):
                yield f"{_scope(row)} beside {_scope(other)}"


def later_overlap_has_the_larger_fence(commit: Commit) -> Iterator[str]:
    """Of two overlapping grants of which one writes, the later has the larger fence."""
    fresh = [
        row
        for row in commit.made("scope")
        if row["reserved_rank"] is None and _kind(commit, row) == "lease"
    ]
    memory = commit.memory
    for row in fresh:
        for file in _files(row):
            tops = [memory.written.get(file)]
            if row["mode"] == "w":
                tops.append(memory.read.get(file))
            for top in tops:
                if top is not None and top[1] != row["task_id"] and top[0] >= row["fence"]:
                    yield f"{_scope(row)} has fence {row['fence']} after {top[0]} of task {top[1]}"
    for row in fresh:
        kept = memory.written if row["mode"] == "w" else memory.read
        for file in _files(row):
            kept[file] = max(kept.get(file, (0, 0)), (row["fence"], row["task_id"]))


def a_live_lease_holds_its_paths(commit: Commit) -> Iterator[str]:
    """A path is blocked while its lease lives: a live lease has a row for each path of its task."""
    tasks = {row["task_id"] for row in commit.made("lease")}
    tasks |= {change.key[0] for change in commit.of("task_scope")}
    for change in commit.of("scope"):
        row = change.old if change.new is None else change.new
        if row is not None:
            tasks.add(row["task_id"])
    for task in sorted(tasks):
        for lease in _live(commit, task):
            if not lease["repository_id"]:
                continue
            wanted = Counter(
                (r["text"], r["mode"])
                for r in commit.tables.rows["task_scope"].values()
                if r["task_id"] == task
            )
            blocked = Counter(
                (r["text"], r["mode"])
                for r in commit.tables.scopes[lease["repository_id"]].values()
                if r["lease_id"] == lease["id"]
            )
            if wanted != blocked:
                yield f"lease {lease['id']} of task {task} blocks {blocked}, not {wanted}"


def a_grant_is_of_a_ready_task(commit: Commit) -> Iterator[str]:
    """Only a queued task is granted: due, nothing left that it needs, not parked, in no paused queue."""
    before = {old["id"]: old for old, _ in commit.rows("task")}
    made = {change.key[0] for change in commit.of("task") if change.old is None}
    for lease in commit.made("lease"):
        if lease["kind"] != "lease":
            continue
        task = commit.tables.task(lease["task_id"])
        old = before.get(lease["task_id"], task)
        if task is None or old is None:
            yield f"lease {lease['id']} is of no task"
            continue
        if lease["task_id"] not in made and old["status"] in _TERMINAL:
            yield f"task {task['id']} was granted, and it was {old['status']}"
        if (
            task["run_at_ms"] > commit.memory.latest
        ):  # what was due stays due, wherever the clock goes
            yield f"task {task['id']} was granted {task['run_at_ms'] - commit.now} ms early"
        needs = [
            need
            for (number, need) in commit.tables.rows["dependency"]
            if number == task["id"] and _status(commit, need) != "succeeded"
        ]
        if needs:
            yield f"task {task['id']} was granted before {needs} had succeeded"
        queue = commit.tables.rows["queue"].get((task["queue"],))
        if queue is not None and queue["paused"]:
            yield f"task {task['id']} was granted out of the paused queue {task['queue']}"
        worker = commit.tables.rows["worker"].get((lease["worker_id"],))
        if worker is None or worker["retired_ms"] is not None:
            yield f"lease {lease['id']} was granted to a worker that isn't there"
        elif task["agent"] not in {None, worker["kind"]}:
            yield f"task {task['id']} is for {task['agent']}, and {worker['kind']} got it"


def limits_are_kept(commit: Commit) -> Iterator[str]:
    """A grant is never one more than a limit allows."""
    made = [row for row in commit.made("lease") if row["kind"] == "lease"]
    for limit in commit.tables.rows["usage_limit"].values() if made else ():
        counted = [
            row
            for row in commit.tables.live_leases()
            if row["kind"] == "lease" and _counts(limit, row)
        ]
        if len(counted) > limit["maximum"] and any(_counts(limit, row) for row in made):
            yield f"{limit['kind']} {limit['key']}: {len(counted)} of {limit['maximum']}"


def one_live_lease_a_branch(commit: Commit) -> Iterator[str]:
    """One unfinished task has a branch of a repository."""
    for row in commit.made("lease"):
        for other in commit.tables.live_leases():
            same = (other["repository_id"], other["branch"]) == (
                row["repository_id"],
                row["branch"],
            )
            apart = other["task_id"] != row["task_id"] and "lease" == row["kind"] == other["kind"]
            if apart and same and row["branch"] and row["repository_id"]:
                yield f"leases {row['id']} and {other['id']} have the branch {row['branch']}"


def one_reserved_turn_a_repository(commit: Commit) -> Iterator[str]:
    """One turn is reserved in a repository, for a task that waits for it."""
    for row in commit.made("lease"):
        if row["kind"] != "reservation":
            continue
        turns = [
            one["id"]
            for one in commit.tables.live_leases()
            if one["kind"] == "reservation" and one["repository_id"] == row["repository_id"]
        ]
        if len(turns) > 1:
            yield f"the turns {turns} are reserved in repository {row['repository_id']}"
        if _status(commit, row["task_id"]) != "queued":
            yield f"a turn is reserved for task {row['task_id']}, which isn't queued"


def a_reserved_turn_keeps_others_out(commit: Commit) -> Iterator[str]:
    """While a turn is reserved, no overlapping task of the same or a lower priority is granted."""
    fresh = {row["id"]: row for row in commit.made("lease") if row["kind"] == "lease"}
    for row in commit.made("scope"):
        task = commit.tables.task(row["task_id"])
        if row["lease_id"] not in fresh or task is None or _had_hold(commit, row["task_id"]):
            continue
        for turn in commit.tables.scopes[row["repository_id"]].values():
            rank = turn["reserved_rank"]
            if rank is None or rank > task["rank"] or turn["task_id"] == row["task_id"]:
                continue
            made = any(turn["lease_id"] == one["id"] for one in commit.made("lease"))
            if not made and clash(row["text"], row["mode"], turn["text"], turn["mode"]):
                yield f"{_scope(row)} overtook the turn of task {turn['task_id']}"


def a_question_keeps_its_paths(commit: Commit) -> Iterator[str]:
    """Who asks a person ends its lease, and its paths stay held for the task."""
    for old, new in commit.rows("lease"):
        asked = old["ended_ms"] is None and new["end_reason"] == "asked"
        if not asked or not new["repository_id"]:
            continue
        held = {
            (row["text"], row["mode"])
            for row in commit.tables.scopes[new["repository_id"]].values()
            if row["task_id"] == new["task_id"] and row["lease_id"] != new["id"]
        }
        wanted = {(row["text"], row["mode"]) for row in commit.tables.paths(new["task_id"])}
        if held != wanted:
            yield f"lease {new['id']} asked, and {held} of {wanted} stay held"


def nobody_waits_for_what_is_over(commit: Commit) -> Iterator[str]:
    """A parked task waits for a lease whose paths are still to be freed, and is queued."""
    for change in commit.of("task"):
        task = change.new
        if task is None or task["waiting_on"] is None:
            continue
        lease = commit.tables.lease(task["waiting_on"])
        if task["status"] != "queued":
            yield f"task {task['id']} is {task['status']} and parked"
        if lease is None or lease["drained"]:
            yield f"task {task['id']} waits for lease {task['waiting_on']}, which wakes nobody"
    for old, new in commit.rows("lease"):
        left = commit.tables.waiting.get(new["id"])
        if new["drained"] and not old["drained"] and left:
            yield f"lease {new['id']} is drained, and tasks {sorted(left)} wait for it"


def blocked_paths_belong_to_somebody(commit: Commit) -> Iterator[str]:
    """A path is blocked only for a lease whose paths haven't been freed."""
    for row in commit.made("scope"):
        lease = commit.tables.lease(row["lease_id"])
        if lease is None or lease["drained"]:
            yield f"{_scope(row)} belongs to no lease that blocks"
    for old, new in commit.rows("lease"):
        if new["drained"] and not old["drained"]:
            left = [
                _scope(row)
                for row in commit.tables.scopes[new["repository_id"]].values()
                if row["lease_id"] == new["id"]
            ]
            if left:
                yield f"lease {new['id']} is drained and still blocks {left}"


def an_unsettled_push_keeps_its_paths(commit: Commit) -> Iterator[str]:
    """While nobody knows what became of a push, its lease's paths aren't freed."""
    for old, new in commit.rows("lease"):
        if old["drained"] or not new["drained"]:
            continue
        for intent in commit.tables.rows["intent"].values():
            if intent["lease_id"] == new["id"] and intent["settled_ms"] is None:
                yield f"lease {new['id']} is drained, and its push {intent['id']} isn't settled"


def needs_are_counted(commit: Commit) -> Iterator[str]:
    """`needs_left` is the number of needs that haven't succeeded."""
    for change in commit.of("task"):
        task = change.new
        numbers = {change.key[0]}
        if change.old is None or task is None or task["status"] != change.old["status"]:
            numbers |= {n for n, need in commit.tables.rows["dependency"] if need == change.key[0]}
        for number in sorted(numbers):
            row = commit.tables.task(number)
            if row is None or row["status"] in _TERMINAL:
                continue
            left = sum(
                _status(commit, need) != "succeeded"
                for n, need in commit.tables.rows["dependency"]
                if n == number
            )
            if row["needs_left"] != left:
                yield f"task {number} needs {left} more, and counts {row['needs_left']}"


GRANT_RULES = (
    one_live_lease_a_task,
    epochs_only_grow,
    fences_only_grow,
    no_overlap,
    later_overlap_has_the_larger_fence,
    a_live_lease_holds_its_paths,
    a_grant_is_of_a_ready_task,
    limits_are_kept,
    one_live_lease_a_branch,
    one_reserved_turn_a_repository,
    a_reserved_turn_keeps_others_out,
    a_question_keeps_its_paths,
    nobody_waits_for_what_is_over,
    blocked_paths_belong_to_somebody,
    an_unsettled_push_keeps_its_paths,
    needs_are_counted,
)


def _live(commit: Commit, task: int) -> list[Row]:
    rows = (commit.tables.rows["lease"][n,] for n in sorted(commit.tables.live.get(task, ())))
    return [row for row in rows if row["kind"] == "lease"]


def _had_hold(commit: Commit, task: int) -> bool:
    """Whether the task held its paths for an answer until this very transaction."""
    return any(
        change.old is not None
        and (change.old["kind"], change.old["task_id"]) == ("hold", task)
        and change.old["ended_ms"] is None
        for change in commit.of("lease")
    )


def _kind(commit: Commit, scope: Row) -> str:
    lease = commit.tables.lease(scope["lease_id"])
    return "" if lease is None else str(lease["kind"])


def _status(commit: Commit, task: int) -> str:
    row = commit.tables.task(task)
    return "" if row is None else str(row["status"])


def _counts(limit: Mapping[str, object], lease: Row) -> bool:
    columns = {"queue": ("queue",), "key": ("limit_key",), "agent": ("agent", "agent_kind")}
    return limit["key"] in {lease[column] for column in columns[str(limit["kind"])]}


def _files(row: Row) -> list[tuple[int, int]]:
    bits = covers(row["text"])
    return [(row["repository_id"], n) for n in range(bits.bit_length()) if bits >> n & 1]


def _scope(row: Row) -> str:
    return f"{row['mode']}:{row['text']} of lease {row['lease_id']} (task {row['task_id']})"
