"""What tests are built from: a store under test with told time and raw SQL, and short ways to act."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import apsw
import psycopg

from lessor.clock import Clock, ManualClock
from lessor.connect import connect
from lessor.errors import LessorError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Ended, Failure, Grant, Reach, Result
from lessor.model.lease import Holder
from lessor.model.repository import Repository
from lessor.model.retry import RetryPolicy
from lessor.model.task import NewTask, Submitted
from lessor.model.worker import NewWorker, Worker
from lessor.service.lessor import Lessor

TTL = 60_000
TABLES = (
    "meta",
    "repository",
    "counter",
    "checkout",
    "worker",
    "queue",
    "usage_limit",
    "task",
    "submission",
    "dependency",
    "task_scope",
    "lease",
    "scope",
    "widening",
    "unlanded",
    "shadow_scope",
    "stand",
    "workspace",
    "salvage",
    "fence_ref",
    "intent",
    "event",
    "late_result",
    "request",
)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


class StoreUnderTest:
    """One fresh store: opened as often as a test likes, read and written by raw SQL beside it.

    Args:
        clock: moves both stores when it is a ManualClock; a real one leaves them alone.
    """

    def __init__(self, kind: str, url: str, clock: Clock) -> None:
        self.kind = kind
        self.url = url
        self.clock = clock
        self._opened: list[Lessor] = []
        self._raw: Any = None

    def connect(self, **settings: Any) -> Lessor:
        """Lessor over this store, closed with the test."""
        policy = settings.pop("policy", RetryPolicy())
        lessor = connect(self.url, clock=self.clock, policy=policy, **settings)
        self._opened.append(lessor)
        return lessor

    def advance(self, milliseconds: int) -> None:
        """Let time pass for the store and for everybody."""
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(milliseconds)
        if self.kind == "postgres":
            self.sql("UPDATE test_clock SET now_ms = now_ms + :by", by=milliseconds)

    def sql(self, text: str, **values: Any) -> list[tuple[Any, ...]]:
        """Raw SQL on a connection of its own, committed; tables by their bare names."""
        if self._raw is None:
            self._raw = self.raw()
        if self.kind == "sqlite":
            return list(self._raw.execute(text, values))
        cursor = self._raw.execute(_PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")), values)
        return list(cursor) if cursor.description else []

    def raw(self) -> Any:
        """A new connection to the database: apsw or psycopg, committing by itself."""
        if self.kind == "sqlite":
            db = apsw.Connection(str(self.path))
            db.set_busy_timeout(10_000)
            db.execute("PRAGMA foreign_keys=ON")
            return db
        return psycopg.connect(self.url, autocommit=True, options="-c search_path=lessor")

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return Path(self.url.removeprefix("sqlite://"))

    def contents(self, *, without: Sequence[str] = ()) -> dict[str, str]:
        """A digest of every table's rows, to tell that nothing changed."""
        found = {}
        for table in TABLES:
            if table not in without:
                rows = sorted(
                    json.dumps(row, default=str) for row in self.sql(f"SELECT * FROM {table}")
                )
                found[table] = f"{len(rows)} {hashlib.sha256(''.join(rows).encode()).hexdigest()}"
        return found

    def close(self) -> None:
        """Close everything that was opened here."""
        for lessor in self._opened:
            lessor.close()
        self._opened.clear()
        if self._raw is not None:
            self._raw.close()
            self._raw = None


MakeStore = Callable[..., StoreUnderTest]


class Yard:
    """A repository, workers and short verbs over one Lessor; what most tests need."""

    def __init__(self, store: StoreUnderTest, lessor: Lessor) -> None:
        self.store = store
        self.lessor = lessor
        self.repository: Repository = lessor.registry.add_repository("github.com/acme/shop")
        self.worker: Worker = self.add_worker("claude-1")
        self.other: Worker = self.add_worker("codex-1")

    def add_worker(self, agent: str, **more: Any) -> Worker:
        """A registered worker."""
        return self.lessor.registry.add_worker(NewWorker(agent=agent, **more))

    def add(self, title: str = "work", *, free: bool = False, **more: Any) -> Submitted:
        """One submitted task, in the repository unless it is free."""
        if not free:
            more.setdefault("repository", self.repository.id)
        return self.lessor.tasks.submit([NewTask(title=title, **more)])[0]

    def asked(self, title: str = "work", **more: Any) -> NewTask:
        """A wish for a task in the repository, not submitted."""
        return NewTask(**{"title": title, "repository": self.repository.id, **more})

    def request(self, **more: Any) -> ClaimRequest:
        """A claim in the repository with a lease of a minute."""
        values: dict[str, Any] = {
            "worker": self.worker.id,
            "request_id": new_request_id(),
            "secret": new_token(),
            "repository": self.repository.id,
            "ttl_ms": TTL,
        }
        return ClaimRequest(**{**values, **more})

    def claim(self, **more: Any) -> list[Grant]:
        """What a claim in the repository gets."""
        return self.lessor.leases.claim(self.request(**more))

    def claim_one(self, **more: Any) -> Grant:
        """The only grant of a claim."""
        (grant,) = self.claim(**more)
        return grant

    def claim_free(self, **more: Any) -> list[Grant]:
        """What a claim of tasks without a repository gets."""
        return self.claim(**{"repository": Reach.NO_REPOSITORY, **more})

    def running(self, *scopes: str, **more: Any) -> Grant:
        """A task with these scopes, added and claimed."""
        task = self.add(f"holds {' '.join(scopes) or 'nothing'}"[:80], scopes=scopes, **more)
        return self.claim_one(task=task.task)

    def complete(self, grant: Grant, **result: Any) -> Ended:
        """Complete a grant."""
        return self.lessor.leases.complete_one(grant.holder, self.result(**result))

    def fail(self, grant: Grant, error: str = "boom", **failure: Any) -> Ended:
        """Report a grant's attempt failed."""
        return self.lessor.leases.fail(grant.holder, Failure(error=error, **failure))

    def result(self, **values: Any) -> Result:
        """What a run has to show."""
        return Result(**{"said": "done", **values})

    def refused(self, action: Callable[[], object]) -> LessorError:
        """The refusal of `action`; that nothing was refused fails the test."""
        try:
            answer = action()
        except LessorError as error:
            return error
        raise AssertionError(f"not refused: {answer}")

    def in_background(self, action: Callable[[Yard], object]) -> Thread:
        """Run `action` in a thread of its own; what it raises fails the test at the join."""
        thread = Thread(target=action, args=(self,), daemon=True)
        thread.start()
        return thread

    def state(self, task: str) -> str:
        """The task's state."""
        return str(self.lessor.tasks.task(task).state)

    def kinds(self, task: str) -> list[str]:
        """The kinds of the task's events, in order."""
        return [entry.kind for entry in self.lessor.tasks.history(task)]

    def titles(self, grants: Sequence[Grant]) -> list[str]:
        """What was granted, in order."""
        return [grant.title for grant in grants]


def zombie(holder: Holder, **changed: Any) -> Holder:
    """The holder with something of its proof changed."""
    return replace(holder, **changed)
