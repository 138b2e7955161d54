"""Faults of the store itself: a statement that fails, a process that ends in it, a disk that is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import apsw

from lessor.store.sqlite import SqliteStore
from simulation.plan import Plan
from simulation.scheduler import CrashedError, Scheduler

MOST_STATEMENTS = 12
UNLIMITED = 1_073_741_823
_ERRORS = (
    apsw.FullError("database or disk is full"),
    apsw.IOError("disk I/O error"),
    apsw.BusyError("database is locked"),
)


class Surroundings(Protocol):
    """What is needed of the world around it."""

    plan: Plan
    scheduler: Scheduler

    @property
    def stores(self) -> list[SqliteStore]: ...
    def hit(self, fault: str) -> bool: ...
    def record(self, text: str) -> None: ...


class Breaking:
    """Breaks transactions, some statements after they began."""

    def __init__(self, world: Surroundings) -> None:
        self._world = world
        self._chance = world.plan.chance("breaking")

    @contextmanager
    def armed(self, store: SqliteStore, *, writes: bool) -> Iterator[None]:
        """Maybe let one of the statements to come fail."""
        error = self._drawn() if writes else None
        if error is None:
            yield
            return
        left = self._chance.randrange(MOST_STATEMENTS)

        def trace(_cursor: object, statement: str, _bindings: object) -> bool:
            nonlocal left
            left -= 1
            if left < 0 and not statement.startswith("ROLLBACK"):
                store._db.exec_trace = None
                raise error
            return True

        store._db.exec_trace = trace
        try:
            yield
        finally:
            store._db.exec_trace = None

    def fill(self) -> None:
        """Let the store grow no more."""
        for store in self._world.stores:
            pages = store._db.pragma("page_count")
            store._db.execute(f"PRAGMA max_page_count={pages}")

    def make_room(self) -> None:
        """Let it grow again."""
        for store in self._world.stores:
            store._db.execute(f"PRAGMA max_page_count={UNLIMITED}")

    def _drawn(self) -> BaseException | None:
        world = self._world
        if world.scheduler.running.mortal and world.hit("crash_within"):
            return CrashedError()
        if world.hit("broken_statement"):
            return self._chance.choice(_ERRORS)
        return None
