"""One SQLite file, opened by one connection in a process.

WAL, `BEGIN IMMEDIATE`, `synchronous=FULL`: an acknowledged grant survives a power cut. A deferred
transaction that upgrades from reading to writing fails at once whatever the busy timeout says, so
there is none here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from lessor.clock import Clock, SystemClock
from lessor.errors import BusyError, InvalidError
from lessor.store import TRIES, Call, RetryRule, Row, T
from lessor.store.sqlite.errors import translate
from lessor.store.sqlite.high_water import HighWater
from lessor.store.sqlite.opening import open_connection, read_key
from lessor.store.sqlite.place import WriterLock, check_place
from lessor.store.sqlite.suspend import Suspension
from lessor.store.statements import load_statements

POLL_MS = 50
_GRANTS = frozenset({"claim_write", "reserve"})


class SqliteStore:
    """A store in `path`; `:memory:` for simulation."""

    dialect = "sqlite"
    concurrent = False

    def __init__(self, path: str, *, clock: Clock | None = None, host_id: str = "") -> None:
        self.path = path
        self.clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._statements = load_statements("sqlite")
        self._writers: WriterLock | None = None
        self._high_water: HighWater | None = None
        in_memory = path == ":memory:"
        if not in_memory:
            check_place(Path(path))
            self._writers = WriterLock(Path(path))
        try:
            self._db = open_connection(path, writers=self._writers, now=self.clock.wall_ms())
            self.key = read_key(self._db)
            self._suspension = Suspension(self.clock)
            self._data_version = self._version()
            if not in_memory:
                self._high_water = HighWater(Path(path))
            self._enter(host_id)
        except apsw.Error as error:
            self._give_up()
            raise translate(error, path=path) from error
        except BaseException:
            self._give_up()
            raise

    def write(self, rule: Callable[[SqliteTransaction], T]) -> T:
        """Run `rule` in one BEGIN IMMEDIATE transaction; commit when it returns."""
        with self._lock:
            for _ in range(TRIES):
                with suppress(RetryRule):
                    return self._write(rule)
        raise BusyError(
            "The store kept changing under a guarded write.", next_step="Try again.", retry_ms=100
        )

    def read(self, name: str, /, **values: Any) -> list[Row]:
        """Run one statement that only reads; `now` is the wall clock's."""
        with self._lock:
            values.setdefault("now", self.clock.wall_ms())
            try:
                return list(self._db.execute(self._statements[name], values))
            except apsw.Error as error:
                raise translate(error, path=self.path) from error

    def once(self, name: str, /, **values: Any) -> list[Row]:
        """One statement that writes, in a transaction of its own."""
        return self.write(lambda tx: tx.rows(name, **values))

    def join(self, connection: Any) -> SqliteTransaction:
        """The caller's own transaction on an apsw connection to this file.

        Raises:
            InvalidError: it isn't an apsw connection in a transaction.
        """
        if not isinstance(connection, apsw.Connection) or not connection.in_transaction:
            raise InvalidError(
                "The connection has to be an apsw connection with an open transaction.",
                next_step="Begin with BEGIN IMMEDIATE; another SQLite library in one process loses writes.",
            )
        tx = SqliteTransaction(self, connection)
        tx.begin(self.clock.wall_ms())
        return tx

    def notify(self) -> None:
        """Nothing to do: waiters see the file's data version move."""

    def wait(self, milliseconds: int) -> None:
        """Return when another connection has committed, or after `milliseconds`."""
        until = self.clock.boottime_ms() + milliseconds
        while self.clock.boottime_ms() < until:
            with self._lock:
                version = self._version()
            if version != self._data_version:
                self._data_version = version
                return
            self.clock.wait(min(POLL_MS, max(1, until - self.clock.boottime_ms())))

    def backup(self, target: Path) -> None:
        """Copy the whole store into the new file `target`, while others go on writing."""
        with self._lock:
            try:
                self._db.execute("VACUUM INTO ?", (str(target),))
            except apsw.Error as error:
                raise translate(error, path=str(target)) from error

    def check(self) -> list[str]:
        """SQLite's own full integrity check; empty when it found nothing."""
        with self._lock:
            try:
                found = [str(row[0]) for row in self._db.execute("PRAGMA integrity_check")]
            except apsw.Error as error:
                return [str(error)]
            return [] if found == ["ok"] else found

    def close(self) -> None:
        """Close the file and leave the writers."""
        with self._lock:
            self._give_up()

    def _write(self, rule: Callable[[SqliteTransaction], T]) -> T:
        tx = SqliteTransaction(self)
        try:
            self._db.execute("BEGIN IMMEDIATE")
            tx.begin(self.clock.wall_ms())
            self._suspension.extend_leases(tx)
            answer = rule(tx)
            self._db.execute("COMMIT")
        except apsw.Error as error:
            self._roll_back()
            raise translate(error, path=self.path) from error
        except BaseException:
            self._roll_back()
            raise
        if tx.granted and self._high_water is not None:
            self._high_water.raise_to(self._last_lease())
        return answer

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _enter(self, host_id: str) -> None:
        """What a store needs before its first grant: a new term when rewound, the dead of a reboot."""
        behind = self._high_water is not None and self._high_water.read() > self._last_lease()

        def rule(tx: SqliteTransaction) -> None:
            if behind:
                tx.rows("new_term")
            self._suspension.note_boot(tx, host_id=host_id)

        if behind or self._suspension.needs_mark(self._db):
            self._write(rule)

    def _last_lease(self) -> int:
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'lease'").fetchone()
        return int(row[0]) if row else 0

    def _version(self) -> int:
        row = self._db.execute("PRAGMA data_version").fetchone()
        return int(row[0]) if row else 0

    def _give_up(self) -> None:
        if hasattr(self, "_db"):
            self._db.close()
        if self._high_water is not None:
            self._high_water.close()
        if self._writers is not None:
            self._writers.close()


class SqliteTransaction:
    """An open BEGIN IMMEDIATE: `now` was read once the file was locked, and stays."""

    def __init__(self, store: SqliteStore, connection: apsw.Connection | None = None) -> None:
        self._execute = (connection or store._db).execute  # noqa: SLF001 - the store's own transaction
        self._statements = store._statements  # noqa: SLF001
        self._now = 0
        self.granted = False

    def begin(self, now: int) -> None:
        """Fix the transaction's time."""
        self._now = now

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named statement; `now` is bound without being given."""
        if name in _GRANTS:
            self.granted = True
        values["now"] = self._now
        return list(self._execute(self._statements[name], values))

    def batch(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order."""
        return [self.rows(name, **values) for name, values in calls]

    def finish(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order; there is no round trip to save, so `_write` commits."""
        return self.batch(*calls)

    def now(self) -> int:
        """When the file was locked, in milliseconds."""
        return self._now
