"""What happened in a race: the journals, and the store's own rows by raw SQL."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from journal import Call, read_calls

from builders import StoreUnderTest

GRANTING = frozenset({"claim", "acquire", "complete_and_claim"})
ENDING = {"complete": "completed", "complete_and_claim": "completed"} | {
    "fail": "failed",
    "release": "released",
    "ask": "asked",
}
"""A holder's ways to end a lease, and the reason that the store then has for it."""

Known = tuple[int, int]
"""A lease by task and epoch."""


class Lease(NamedTuple):
    """A row of `lease`."""

    id: int
    kind: str
    repository: int
    task: int
    epoch: int
    worker: int | None
    version: int
    fence: int
    granted_ms: int
    expires_ms: int
    ended_ms: int | None
    end_reason: str | None
    queue: str
    agent: str
    limit_key: str | None
    drained: int


class Task(NamedTuple):
    """A row of `task`."""

    id: int
    repository: int
    rank: int
    status: str
    epoch: int
    events: int
    finished_ms: int | None
    waiting_on: int | None


class Event(NamedTuple):
    """A row of `event`."""

    task: int
    n: int
    at_ms: int
    kind: str
    epoch: int
    facts: dict[str, Any]


class Widening(NamedTuple):
    """A row of `widening`: a path, and the lease and the fence that brought it."""

    lease: int
    task: int
    fence: int
    text: str
    mode: str


@dataclass(slots=True, kw_only=True)
class History:
    """Everything that the rules judge by."""

    calls: list[Call]
    leases: list[Lease]
    tasks: dict[int, Task]
    events: dict[int, list[Event]]
    needs: list[tuple[int, int]]
    began_with: dict[int, list[tuple[str, str]]]
    widened: dict[int, list[Widening]]
    limits: list[tuple[str, str, int]]
    folds: dict[int, bool]
    scope_rows: int
    terms: dict[int, int]
    of: dict[Known, Lease] = field(init=False)

    def __post_init__(self) -> None:
        self.of = {(lease.task, lease.epoch): lease for lease in self.grants()}

    def grants(self) -> list[Lease]:
        """The leases that are somebody's authority, not reservations or holds."""
        return [lease for lease in self.leases if lease.kind == "lease"]

    def granted(self) -> Iterator[tuple[Call, dict[str, Any]]]:
        """Each grant that somebody was told of."""
        for call in self.calls:
            if call.op in GRANTING and call.ok is not None:
                for grant in call.ok["grants"]:
                    yield call, grant

    def writes(self) -> Iterator[tuple[Call, Known, dict[str, Any] | None]]:
        """Each holder's write with its answer; None where it was refused as a whole, or none came."""
        for call in self.calls:
            for place, (task, epoch) in enumerate(call.asked.get("leases", ())):
                answer = None if call.ok is None else call.ok["leases"][place]
                yield call, (task, epoch), answer

    def acknowledged(self, *ops: str) -> Iterator[tuple[Call, Known, dict[str, Any]]]:
        """The writes that were taken."""
        for call, known, answer in self.writes():
            if call.op in ops and answer is not None and "ok" in answer:
                yield call, known, answer


def load_history(store: StoreUnderTest, journals: Path) -> History:
    """Read it all."""
    events: dict[int, list[Event]] = defaultdict(list)
    for row in store.sql("SELECT task_id, n, at_ms, kind, epoch, facts FROM event ORDER BY 1, 2"):
        events[row[0]].append(Event._make((*row[:5], json.loads(row[5]))))
    began_with: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for task, text, mode in store.sql(
        "SELECT task_id, text, mode FROM task_scope WHERE widened = 0"
    ):
        began_with[task].append((text, mode))
    widened: dict[int, list[Widening]] = defaultdict(list)
    for row in store.sql("SELECT lease_id, task_id, fence, text, mode FROM widening"):
        widened[row[1]].append(Widening(*row))
    return History(
        calls=[call for file in sorted(journals.iterdir()) for call in read_calls(file)],
        leases=[
            Lease(*row)
            for row in store.sql(
                "SELECT id, kind, repository_id, task_id, epoch, worker_id, version, fence, granted_ms, "
                "expires_ms, ended_ms, end_reason, queue, agent, limit_key, drained FROM lease ORDER BY id"
            )
        ],
        tasks={
            row[0]: Task(*row)
            for row in store.sql(
                "SELECT id, repository_id, rank, status, epoch, events, finished_ms, waiting_on FROM task"
            )
        },
        events=events,
        needs=[
            (task, needs) for task, needs in store.sql("SELECT task_id, needs_id FROM dependency")
        ],
        began_with=began_with,
        widened=widened,
        limits=[
            (k, key, most)
            for k, key, most in store.sql("SELECT kind, key, maximum FROM usage_limit")
        ],
        folds={row: bool(fold) for row, fold in store.sql("SELECT id, fold_case FROM repository")},
        scope_rows=len(store.sql("SELECT 1 FROM scope")),
        terms=dict(store.sql("SELECT id, term FROM repository")),
    )
