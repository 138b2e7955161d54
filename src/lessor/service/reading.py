"""Tasks, leases and their history as records; nothing here writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lessor.errors import NotFoundError
from lessor.model.grant import Result
from lessor.model.lease import LeaseEnd, LeaseKind
from lessor.model.lifecycle import TaskState
from lessor.model.repository import Repository
from lessor.model.shadow import Unlanded
from lessor.model.task import Effects, Stage, Task
from lessor.model.worker import Worker
from lessor.service.naming import Naming
from lessor.service.results import read_result
from lessor.service.rows import LeaseRow, TaskRow, WorkerRow, pack, unpack
from lessor.store import Row, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """A lease as the store has it; instants are milliseconds of the store's clock.

    Attributes:
        late: how many results named it that weren't its live holder's, kept as evidence or not.
    """

    id: str
    kind: LeaseKind
    repository: str | None
    task: str
    number: int
    title: str
    epoch: int
    worker: str | None
    agent: str
    version: int
    fence: int
    term: int
    granted_ms: int
    renewed_ms: int
    expires_ms: int
    max_until_ms: int
    branch: str | None
    label: str
    workspace: int | None
    ended_ms: int | None
    end: LeaseEnd | None
    proof: str | None
    result: Result | None
    late: int
    now_ms: int
    paths: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """Not ended and before its deadline, when it was read."""
        return self.ended_ms is None and self.now_ms < self.expires_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One change of a task, written in the same transaction as the change."""

    n: int
    at_ms: int
    kind: str
    epoch: int
    facts: Mapping[str, Any]


def read_tasks(store: Store, naming: Naming, rows: Sequence[int]) -> list[Task]:
    """The tasks of these rows, in the rows' order.

    Raises:
        NotFoundError: one of them isn't there.
    """
    found = {
        row[0]: _task(naming, TaskRow._make(row))
        for row in store.read("tasks", tasks=pack(list(rows)))
    }
    for row in rows:
        if row not in found:
            raise NotFoundError(
                f"{naming.task(row)} isn't there.", next_step="List the tasks: lessor list."
            )
    return [found[row] for row in rows]


def read_leases(
    store: Store,
    naming: Naming,
    *,
    task: int = 0,
    repository: int = -1,
    live: bool = False,
    most: int = 1000,
) -> list[LeaseRecord]:
    """Leases of a task, of a repository (-1: of all), live or all, oldest first."""
    rows = [
        LeaseRow._make(row)
        for row in _lease_rows(store, task=task, repository=repository, live=live, most=most)
    ]
    scopes: dict[int, list[tuple[str, str]]] = {}
    for lease, _, text, _, mode, _, _ in store.read(
        "lease_scopes", leases=pack([row.id for row in rows])
    ):
        scopes.setdefault(lease, []).append((text, mode))
    return [lease_record(naming, row, scopes.get(row.id, [])) for row in rows]


def read_lease(store: Store, naming: Naming, lease: str) -> LeaseRecord:
    """The lease with this id; NotFoundError otherwise."""
    row = naming.lease_row(lease)
    found = store.read("lease", lease_id=row)
    if not found:
        raise NotFoundError(
            f"{lease} isn't there.", next_step="List the leases: lessor list --leases."
        )
    scopes = store.read("lease_scopes", leases=pack([row]))
    return lease_record(naming, LeaseRow._make(found[0]), [(str(s[2]), str(s[4])) for s in scopes])


def lease_record(naming: Naming, row: LeaseRow, scopes: Sequence[tuple[str, str]]) -> LeaseRecord:
    """A lease's row as a record."""
    return LeaseRecord(
        id=naming.lease(row.id),
        kind=LeaseKind(row.kind),
        repository=naming.repository(row.repository_id),
        task=naming.task(row.task_id),
        number=row.number,
        title=row.title,
        epoch=row.epoch,
        worker=naming.worker(row.worker_id) if row.worker_id else None,
        agent=row.agent,
        version=row.version,
        fence=row.fence,
        term=row.term,
        granted_ms=row.granted_ms,
        renewed_ms=row.renewed_ms,
        expires_ms=row.expires_ms,
        max_until_ms=row.max_until_ms,
        branch=row.branch,
        label=row.label,
        workspace=row.workspace_id,
        ended_ms=row.ended_ms,
        end=LeaseEnd(row.end_reason) if row.end_reason else None,
        proof=row.proof,
        result=read_result(row.result) if row.result else None,
        late=row.late,
        now_ms=row.now,
        paths=tuple(text for text, mode in scopes if mode == "w"),
        reads=tuple(text for text, mode in scopes if mode == "r"),
    )


def read_history(
    store: Store, task: int, *, after: int = 0, most: int = 1000
) -> list[HistoryEntry]:
    """A task's changes, oldest first, from the one after number `after`."""
    return [
        HistoryEntry(n=n, at_ms=at_ms, kind=kind, epoch=epoch, facts=unpack(facts))
        for _, n, at_ms, kind, epoch, facts in store.read(
            "history", task_id=task, after=after, most=most
        )
    ]


def worker_record(naming: Naming, row: WorkerRow) -> Worker:
    """A worker's row as a record."""
    return Worker(
        id=naming.worker(row.id),
        agent=row.agent,
        kind=row.kind,
        host_id=row.host_id,
        boot_id=row.boot_id,
        pid=row.pid,
        pid_namespace=row.pid_namespace,
        start_ticks=row.start_ticks,
        capabilities=tuple(unpack(row.capabilities)),
        heartbeat=bool(row.heartbeat),
        registered_ms=row.registered_ms,
        retired_ms=row.retired_ms,
    )


def repository_record(naming: Naming, row: Row) -> Repository:
    """A repository's row as a record."""
    number, canonical, name, fold_case, normalize, fence, term, unlanded, fence_remote, unfenced = (
        row
    )
    known = naming.repository(number)
    if known is None:
        raise NotFoundError("There is no such repository.", next_step="Register it first.")
    return Repository(
        id=known,
        key=canonical,
        name=name,
        fold_case=bool(fold_case),
        normalize=bool(normalize),
        fence=fence,
        term=term,
        unlanded=Unlanded(unlanded),
        fence_remote=fence_remote,
        unfenced=bool(unfenced),
    )


def _task(naming: Naming, row: TaskRow) -> Task:
    result = read_result(row.result) if row.result else None
    scopes = unpack(row.scopes)
    return Task(
        id=naming.task(row.id),
        number=row.number,
        title=row.title,
        prompt=row.prompt,
        queue=row.queue,
        repository=naming.repository(row.repository_id),
        priority=-row.rank,
        state=TaskState(row.status),
        stage=Stage(row.stage),
        effects=Effects(row.effects),
        agent=row.agent,
        check=row.check_command,
        branch=row.branch,
        strict=bool(row.strict),
        progress=bool(row.progress),
        unique_key=row.unique_key,
        idempotency_key=row.idempotency_key,
        limit_key=row.limit_key,
        capabilities=tuple(unpack(row.capabilities)),
        epoch=row.epoch,
        attempts=row.attempts,
        charged=row.charged,
        max_attempts=row.max_attempts,
        run_at_ms=row.run_at_ms,
        queued_ms=row.queued_ms,
        created_ms=row.created_ms,
        finished_ms=row.finished_ms,
        needs_left=row.needs_left,
        waiting_on=naming.lease(row.waiting_on) if row.waiting_on else None,
        last_error=result.error if result else None,
        base=result.base if result else None,
        commit=result.commit if result else None,
        said=result.said if result else None,
        scopes=tuple(text for text, mode in scopes if mode == "w"),
        reads=tuple(text for text, mode in scopes if mode == "r"),
    )


def _lease_rows(store: Store, *, task: int, repository: int, live: bool, most: int) -> list[Row]:
    """By the index that serves: a statement for all three would read every lease there ever was."""
    if task:
        return store.read("task_leases", task_id=task, live=int(live), most=most)
    return store.read("live_leases" if live else "leases", repository_id=repository, most=most)
