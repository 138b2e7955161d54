"""What the store's own record has to say, whatever anybody was told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from history import ENDING, Event, History, Lease

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
SILENT = frozenset({"late", "acknowledged", "reserved", "widened", "extended", "freed"})
ENDS = frozenset({"lapsed", "gone", "rewound", "failed", "released", "asked", "forced"})
BY_PEOPLE = {
    "cancelled": (
        {"queued", "running", "needs_person", "reconciling", "blocked", "quarantined"},
        "cancelled",
    ),
    "blocked": ({"queued", "running"}, "blocked"),
    "unblocked": ({"blocked"}, "queued"),
    "requeued": ({"needs_person", "reconciling", "quarantined"}, "queued"),
    "answered": ({"needs_person"}, "queued"),
}


def ends_outside(history: History) -> Iterator[str]:
    """A holder's end lies inside its lease, and a lapse isn't before the deadline."""
    for lease in history.grants():
        ended, reason = lease.ended_ms, lease.end_reason
        if ended is None:
            continue
        if ended < lease.granted_ms:
            yield f"{lease} ended before it began"
        elif reason in ENDING.values() and ended >= lease.expires_ms:
            yield f"{lease} ended by its holder after its deadline"
        elif reason == "lapsed" and ended < lease.expires_ms:
            yield f"{lease} lapsed before its deadline"


def disordered_epochs(history: History) -> Iterator[str]:
    """Epochs of a task only grow, and one lease follows the other."""
    leases: dict[int, list[Lease]] = defaultdict(list)
    for lease in history.grants():
        leases[lease.task].append(lease)
    for task, several in leases.items():
        for earlier, later in pairwise(several):
            if earlier.epoch >= later.epoch or (earlier.ended_ms or 2**62) > later.granted_ms:
                yield f"{later} came after {earlier}"
        if several[-1].epoch != history.tasks[task].epoch:
            yield f"{several[-1]} is the last of {history.tasks[task]}"


def disordered_fences(history: History) -> Iterator[str]:
    """A repository's fences are given once each, and in the order of the grants and widenings."""
    at = {
        (event.task, event.facts["fence"]): event.at_ms
        for events in history.events.values()
        for event in events
        if event.kind == "widened"
    }
    given: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for lease in history.grants():
        if lease.repository:
            given[lease.repository].append((lease.fence, lease.granted_ms, f"lease {lease.id}"))
    for task, paths in history.widened.items():
        for fence in {path.fence for path in paths}:
            began = at.get((task, fence), -1)
            given[history.tasks[task].repository].append((fence, began, f"widening of task {task}"))
    for repository, several in given.items():
        for (fence, when, what), (next_fence, next_when, next_what) in pairwise(sorted(several)):
            if fence == next_fence or when > next_when:
                yield (
                    f"repository {repository}: {what} has fence {fence} at {when}, "
                    f"{next_what} has {next_fence} at {next_when}"
                )


def broken_events(history: History) -> Iterator[str]:
    """A task's events are numbered from one without a gap, each follows from the last, and end where it is."""
    for task in history.tasks.values():
        events = history.events[task.id]
        if [event.n for event in events] != list(range(1, task.events + 1)):
            yield f"{task} has events {[event.n for event in events]}"
        state, epoch = "", 0
        for event in events:
            after = _after(state, epoch, event)
            if after is None:
                yield f"{event} can't follow on {state} at epoch {epoch}"
                break
            state, epoch = after
        else:
            if (state, epoch) != (task.status, task.epoch):
                yield f"the events of {task} end with {state} at epoch {epoch}"


def _after(state: str, epoch: int, event: Event) -> tuple[str, int] | None:
    """State and epoch after the event; None where it can't happen."""
    kind, mine = event.kind, state == "running" and event.epoch == epoch
    after: tuple[str, int] | None = None
    if kind == "submitted":
        after = ("queued", 0) if state == "" else None
    elif kind == "claimed":
        after = ("running", event.epoch) if state == "queued" and event.epoch == epoch + 1 else None
    elif kind == "completed":
        after = ("succeeded", epoch) if mine else None
    elif kind in ENDS:
        after = (event.facts["state"], epoch) if mine else None
    elif kind in BY_PEOPLE:
        before, then = BY_PEOPLE[kind]
        after = (then, epoch) if state in before else None
    elif kind in SILENT:
        possible = {"widened": mine, "reserved": state == "queued"}.get(kind, True)
        after = (state, epoch) if possible else None
    return after


def new_terms(history: History) -> Iterator[str]:
    """A store that nobody restored or promoted keeps its term."""
    yield from (f"repository {row} has term {term}" for row, term in history.terms.items() if term)


def early_grants(history: History) -> Iterator[str]:
    """Nothing was granted before all that it needs had succeeded."""
    leases: dict[int, list[Lease]] = defaultdict(list)
    for lease in history.grants():
        leases[lease.task].append(lease)
    for task, needed in history.needs:
        need = history.tasks[needed]
        for lease in leases[task]:
            if need.status != "succeeded" or (need.finished_ms or 0) > lease.granted_ms:
                yield f"{lease} although it needs {need}"


def stuck_tasks(history: History) -> Iterator[str]:
    """After the drain everything is finished but what needs a task that will never succeed."""
    doomed = {task.id for task in history.tasks.values() if task.status in {"failed", "cancelled"}}
    needing: dict[int, list[int]] = defaultdict(list)
    for task, needed in history.needs:
        needing[needed].append(task)
    queue = list(doomed)
    while queue:
        following = [task for task in needing[queue.pop()] if task not in doomed]
        doomed.update(following)
        queue.extend(following)
    for left in history.tasks.values():
        if left.status not in TERMINAL and left.id not in doomed:
            yield f"{left} could be finished and isn't"


def leftovers(history: History) -> Iterator[str]:
    """After the drain no lease, reservation or hold is live, no path is held, and nobody waits for one."""
    yield from (f"{lease} is left" for lease in history.leases if lease.ended_ms is None)
    yield from (f"{lease} wasn't drained" for lease in history.leases if not lease.drained)
    yield from (f"{task} waits" for task in history.tasks.values() if task.waiting_on is not None)
    if history.scope_rows:
        yield f"{history.scope_rows} paths are held still"
