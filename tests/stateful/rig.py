"""Fresh stores by the hundred: a copied file, or one emptied database."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from builders import TABLES, StoreUnderTest
from lessor.clock import ManualClock
from lessor.connect import connect, open_store
from lessor.ids import Chance
from lessor.model.retry import RetryPolicy
from lessor.service.lessor import Lessor
from servers import Server

POLICY = RetryPolicy(first_ms=1_000, factor=2, ceiling_ms=5_000, same_error_limit=3)


class SqliteRig:
    """Each example gets a new file."""

    kind = "sqlite"

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        self._folder = Path(mkdtemp(dir=memory if memory.is_dir() else None))
        self._numbers = itertools.count()
        self._template = self._folder / "template.db"
        connect(f"sqlite://{self._template}", clock=ManualClock()).close()

    def fresh(self) -> StoreUnderTest:
        """An empty store at the usual time."""
        folder = self._folder / f"store-{next(self._numbers)}"
        folder.mkdir()
        shutil.copy(self._template, folder / "lessor.db")
        return StoreUnderTest(self.kind, f"sqlite://{folder / 'lessor.db'}", ManualClock())

    def uncover(self, tables: Sequence[str], indexes: Sequence[str]) -> None:
        """Take out of every store to come what would forbid a wrong write by itself."""
        template = StoreUnderTest(self.kind, f"sqlite://{self._template}", ManualClock())
        for table in tables:
            for (trigger,) in template.sql(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = :table",
                table=table,
            ):
                template.sql(f"DROP TRIGGER {trigger}")
        for index in indexes:
            template.sql(f"DROP INDEX {index}")
        template.close()

    def discard(self, store: StoreUnderTest) -> None:
        """Close the store and remove its file."""
        store.close()
        shutil.rmtree(store.path.parent)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder)


class PostgresRig:
    """Examples share a database, which is emptied for each; making one takes longer."""

    kind = "postgres"

    def __init__(self, server: Server) -> None:
        self._server = server
        self._url = server.create()

    def fresh(self) -> StoreUnderTest:
        """The empty store at the usual time."""
        store = StoreUnderTest(self.kind, self._url, ManualClock())
        tables = ", ".join(name for name in TABLES if name != "meta")
        store.sql(
            f"TRUNCATE {tables} RESTART IDENTITY;"
            "INSERT INTO repository (id, canonical, name) VALUES (0, '', '');"
            "UPDATE test_clock SET now_ms = 1800000000000"
        )
        return store

    def uncover(self, tables: Sequence[str], indexes: Sequence[str]) -> None:
        """Take out of the database what would forbid a wrong write by itself."""
        store = StoreUnderTest(self.kind, self._url, ManualClock())
        for table in tables:
            store.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for index in indexes:
            store.sql(f"DROP INDEX {index}")
        store.close()

    def discard(self, store: StoreUnderTest) -> None:
        """Close the connections."""
        store.close()

    def close(self) -> None:
        """Remove the database."""
        self._server.drop(self._url)


Rig = SqliteRig | PostgresRig


def open_lessor(store: StoreUnderTest) -> Lessor:
    """Lessor over the store, with chance that doesn't change from run to run."""
    opened: Any = open_store(store.url, clock=store.clock)
    if store.kind == "sqlite":  # what a power cut would lose is not what these tests are about
        opened._db.execute("PRAGMA synchronous=OFF")
    return Lessor(opened, clock=store.clock, policy=POLICY, chance=Chance(1))
