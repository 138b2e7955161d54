"""One SQLite file, opened by one connection in a process.

WAL, `BEGIN IMMEDIATE`, `synchronous=FULL`: an acknowledged grant survives a power cut. A deferred
transaction that upgrades from reading to writing fails at once whatever the busy timeout says, so
there is none here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from lessor.clock import Clock, SystemClock
from lessor.errors import BusyError, InvalidError, StoreCorruptError, StoreUnavailableError
from lessor.store import TRIES, Call, RetryRule, Row, T
from lessor.store.sqlite.errors import FAULTS, translate
from lessor.store.sqlite.high_water import HighWater
from lessor.store.sqlite.opening import open_connection, read_key
from lessor.store.sqlite.place import MOUNTS, WriterLock, check_place, file_id, moved
from lessor.store.sqlite.suspend import Suspension
from lessor.store.statements import load_statements

POLL_MS = 50
_GRANTS = frozenset(
    {"claim_write", "claim_first", "claim_first_free", "reserve", "widen_write", "put_hold"}
)


class SqliteStore:
    """A store in `path`; `:memory:` for simulation."""

    dialect = "sqlite"
    concurrent = False

    def __init__(
        self,
        path: str,
        *,
        clock: Clock | None = None,
        host_id: str = "",
        mounts: Path = MOUNTS,
    ) -> None:
        self.path = path
        self._place = Path(path)
        self.clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._statements = load_statements("sqlite")
        self._writers: WriterLock | None = None
        self._high_water: HighWater | None = None
        self._changes = 0
        self._seen = threading.local()
        in_memory = path == ":memory:"
        if not in_memory:
            check_place(Path(path), mounts=mounts)
        try:
            self._db, self._writers = open_connection(path, now=self._now())
            self._file = None if in_memory else file_id(path)
            self.key = read_key(self._db)
            self._suspension = Suspension(self.clock)
            if not in_memory:
                self._high_water = HighWater(Path(path))
            self._enter(host_id)
        except FAULTS as error:
            self._give_up()
            raise translate(error, path=path) from error
        except BaseException:
            self._give_up()
            raise

    def write(self, rule: Callable[[SqliteTransaction], T]) -> T:
        """Run `rule` in one BEGIN IMMEDIATE transaction; commit when it returns."""
        with self._lock:
            for _ in range(TRIES):
                try:
                    return self._write(rule)
                except RetryRule:
                    continue
        raise BusyError(
            "The store kept changing under a guarded write.", next_step="Try again.", retry_ms=100
        )

    def read(self, name: str, /, **values: Any) -> list[Row]:
        """Run one statement that only reads; a sleep of the machine is accounted for before."""
        with self._lock:
            try:
                self._refuse_moved()
                if not self._db.in_transaction and self._suspension.was_unseen(self._db):
                    with suppress(BusyError, StoreUnavailableError):  # better stale than none
                        self._write(lambda _: None)
                values.setdefault("now", self._now())
                return list(self._db.execute(self._statements[name], values))
            except FAULTS as error:
                raise translate(error, path=self.path) from error

    def once(self, name: str, /, **values: Any) -> list[Row]:
        """One statement that writes, in a transaction of its own."""
        return self.write(lambda tx: tx.rows(name, **values))

    def together(self, *calls: Call) -> list[list[Row]]:
        """Statements that write, in one transaction of their own."""
        return self.write(lambda tx: tx.batch(*calls))

    @contextmanager
    def join(self, connection: Any) -> Iterator[SqliteTransaction]:
        """The caller's own transaction on an apsw connection to this file, in a savepoint.

        Raises:
            InvalidError: it isn't an apsw connection to this store in a transaction.
        """
        if not _in_transaction(connection):
            raise InvalidError(
                "The connection has to be an apsw connection with an open transaction.",
                next_step="Begin with BEGIN IMMEDIATE; another SQLite library in one process loses writes.",
            )
        try:
            with connection:
                self._refuse_moved()
                self._refuse_other(connection)
                tx = SqliteTransaction(self, connection)
                tx.begin(self._now())
                yield tx
        except RetryRule:
            raise BusyError(
                "What was read has changed meanwhile.",
                next_step="Roll back and begin again.",
                retry_ms=100,
            ) from None
        except FAULTS as error:
            raise translate(error, path=self.path) from error

    def notify(self) -> None:
        """Wake the waiters of this process; those of others see the file's data version move."""
        self._changes += 1

    def wait(self, milliseconds: int) -> None:
        """Return when somebody has committed or notified, or after `milliseconds`."""
        until = self.clock.boottime_ms() + milliseconds
        while (left := until - self.clock.boottime_ms()) > 0:
            with self._lock:
                state = (self._version(), self._changes)
            known = getattr(self._seen, "state", state)
            self._seen.state = state
            if state != known:
                return
            self.clock.wait(min(POLL_MS, left))

    def backup(self, target: Path) -> None:
        """Copy the whole store into the new file `target`, while others go on writing."""
        with self._lock:
            try:
                self._db.execute("VACUUM INTO ?", (str(target),))
            except FAULTS as error:
                raise translate(error, path=str(target)) from error

    def check(self) -> list[str]:
        """SQLite's own full integrity check; empty when it found nothing."""
        with self._lock:
            try:
                found = [str(row[0]) for row in self._db.execute("PRAGMA integrity_check")]
            except FAULTS as error:
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
            self._refuse_moved()
            tx.begin(self._now())
            slept = self._suspension.extend_leases(tx)
            answer = rule(tx)
            # Read before the commit: a grant that is made isn't answered with a read's failure.
            granted = self._last_lease() if tx.granted else 0
            self._db.execute("COMMIT")
        except FAULTS as error:
            self._roll_back()
            raise translate(error, path=self.path) from error
        except BaseException:
            self._roll_back()
            raise
        self._suspension.accounted(slept)
        if self._high_water is not None:
            self._high_water.raise_to(granted)
        return answer

    def _roll_back(self) -> None:
        if _in_transaction(self._db):
            self._db.execute("ROLLBACK")

    def _now(self) -> int:
        """The wall clock, as every process of this machine reads it.

        In a repository its floor keeps time from going back. Elsewhere a step back makes leases last
        longer; a process that kept the later time for itself would end them too early.
        """
        return self.clock.wall_ms()

    def _enter(self, host_id: str) -> None:
        """What a store needs before its first grant: a new term when rewound, the dead of a reboot."""

        def rule(tx: SqliteTransaction) -> None:
            # Under the lock: of two processes that open a rewound store, one makes the new term.
            high = self._rewound_from()
            if high:
                tx.rows("new_term", high=high)
            self._suspension.note_boot(tx, host_id=host_id)

        if self._rewound_from() or self._suspension.needs_mark(self._db):
            self._write(rule)

    def _rewound_from(self) -> int:
        """The highest lease on record outside of the store when the store is behind it, else 0."""
        high = self._high_water.read() if self._high_water is not None else 0
        return high if high > self._last_lease() else 0

    def _refuse_moved(self) -> None:
        """Grant nothing in a file that others don't find: they grant the same in another one."""
        if self._file is not None and file_id(self.path) != self._file:
            raise moved(self._place)

    def _refuse_other(self, connection: apsw.Connection) -> None:
        try:
            key = read_key(_plain(connection))
        except (apsw.SQLError, StoreCorruptError):
            key = -1
        if key != self.key:
            raise InvalidError(
                "The connection is on another database than this store's.",
                next_step=f"Open it on {self.path}.",
            )

    def _last_lease(self) -> int:
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'lease'").fetchone()
        return int(row[0]) if row else 0

    def _version(self) -> int:
        try:
            row = self._db.execute("PRAGMA data_version").fetchone()
        except FAULTS as error:
            raise translate(error, path=self.path) from error
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
        own = store._db  # noqa: SLF001 - the store's own transaction
        self._execute = own.execute if connection is None else _plain(connection).execute
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


def _in_transaction(connection: object) -> bool:
    try:
        return isinstance(connection, apsw.Connection) and connection.in_transaction
    except apsw.ConnectionClosedError:
        return False


def _plain(connection: apsw.Connection) -> apsw.Cursor:
    """A cursor that gives rows as they are, whatever the caller's connection makes of them."""
    cursor = connection.cursor()
    cursor.row_trace = lambda _, row: row
    return cursor
