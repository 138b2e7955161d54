"""A PostgreSQL database, one connection a thread, no session state.

READ COMMITTED with explicit row locks: the repository's row is the lock, a holder's write locks
its lease rows. Statements of one transaction travel in pipelines, as round trips are what a claim
costs. Nothing here needs LISTEN for correctness: it only shortens a wait, on a direct connection.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import psycopg.abc
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8Dumper

from lessor.clock import Clock, SystemClock
from lessor.errors import BusyError, InvalidError, StoreUnavailableError
from lessor.store import TRIES, Call, RetryRule, Row, T
from lessor.store.postgres.errors import GUARD_FAILED, REPEATABLE, translate
from lessor.store.postgres.opening import is_pooled, lineage, migrate, settle
from lessor.store.statements import load_statements

CHANNEL = "lessor"
_LOCK_TIMEOUT = b"SET LOCAL lock_timeout = 10000"
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_BEGIN = b"BEGIN"
_COMMIT = b"COMMIT"


class PostgresStore:
    """A store in the database that `dsn` names.

    Args:
        listen_dsn: a direct connection for LISTEN where `dsn` goes through a pooler.
    """

    dialect = "postgres"
    concurrent = True

    def __init__(
        self, dsn: str, *, listen_dsn: str | None = None, clock: Clock | None = None
    ) -> None:
        self._dsn = _readable(dsn)
        self._listen_dsn = None if listen_dsn is None else _readable(listen_dsn)
        self._clock = clock or SystemClock()
        self._statements = {
            name: _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")).encode()
            for name, text in load_statements("postgres").items()
        }
        self._local = threading.local()
        self._open: list[tuple[threading.Thread, psycopg.Connection[tuple[Any, ...]]]] = []
        self._listens = threading.Lock()
        self._heard = threading.Condition()
        self._listener: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lineage = ""
        self._closed = False
        try:
            db = self._open_one()
            migrate(db)
            self._note_lineage(db)
            self.key = _key(db)
        except psycopg.Error as error:
            self.close()
            raise translate(error) from error
        except BaseException:
            self.close()
            raise

    def write(self, rule: Callable[[PostgresTransaction], T]) -> T:
        """Run `rule` in one transaction; again after a serialization failure or a failed guard."""
        for _ in range(TRIES):
            tx = PostgresTransaction(self._connection(), self._statements, pooled=self._pooled)
            try:
                answer = rule(tx)
                if not tx.over:
                    tx.finish()
            except (RetryRule, *REPEATABLE):
                tx.roll_back()
            except psycopg.Error as error:
                tx.roll_back()
                if error.sqlstate != GUARD_FAILED:
                    raise translate(error) from error
            except BaseException:
                tx.roll_back()
                raise
            else:
                return answer
        raise BusyError(
            "The store kept changing under a guarded write.", next_step="Try again.", retry_ms=100
        )

    def read(self, name: str, /, **values: Any) -> list[Row]:
        """Run one statement that only reads; a lost connection is opened again, once."""
        try:
            try:
                return list(self._connection().execute(self._statements[name], values))
            except psycopg.OperationalError:
                if not self._connection_lost():
                    raise
            return list(self._connection().execute(self._statements[name], values))
        except psycopg.Error as error:
            raise translate(error) from error

    def once(self, name: str, /, **values: Any) -> list[Row]:
        """One statement that writes, in a transaction of its own: one round trip."""
        if self._pooled:  # the lock's timeout has to be set within the transaction
            return self.write(lambda tx: tx.finish((name, values))[0])
        last: psycopg.Error | None = None
        for _ in range(TRIES):
            try:
                return list(self._connection().execute(self._statements[name], values))
            except REPEATABLE as error:
                last = error
            except psycopg.Error as error:
                if error.sqlstate != GUARD_FAILED:
                    raise translate(error) from error
                last = error
        raise BusyError(
            "The store kept changing under a guarded write.", next_step="Try again.", retry_ms=100
        ) from last

    @contextmanager
    def join(self, connection: Any) -> Iterator[PostgresTransaction]:
        """The caller's own transaction on a psycopg connection to this database, in a savepoint.

        Raises:
            InvalidError: it isn't a psycopg connection to this store, or commits each statement.
        """
        if not isinstance(connection, psycopg.Connection) or _commits_alone(connection):
            raise InvalidError(
                "The connection has to be a psycopg connection with an open transaction.",
                next_step="Pass the one that your transaction is on, without autocommit.",
            )
        try:
            if connection.info.transaction_status is TransactionStatus.IDLE:
                connection.execute("SELECT 1")  # else the block below were the whole transaction
            with connection.transaction():
                self._refuse_other(connection)
                yield PostgresTransaction(
                    connection, self._statements, pooled=self._pooled, joined=True
                )
        except (RetryRule, *REPEATABLE):
            raise BusyError(
                "What was read has changed meanwhile.",
                next_step="Roll back and begin again.",
                retry_ms=100,
            ) from None
        except psycopg.Error as error:
            raise translate(error) from error

    def notify(self) -> None:
        """Wake those who LISTEN; a failure only costs them their polling interval."""
        with suppress(psycopg.Error):
            self._connection().execute("SELECT pg_notify(%s, '')", (CHANNEL,))

    def wait(self, milliseconds: int) -> None:
        """Return on a notification or after `milliseconds`; without LISTEN, after a second at most.

        One thread listens for all that wait: psycopg would let them listen one after the other.
        """
        if not self._listens.acquire(blocking=False):
            with self._heard:
                self._heard.wait(milliseconds / 1000)
            return
        try:
            self._listen(milliseconds)
        finally:
            self._listens.release()
        with self._heard:
            self._heard.notify_all()

    def _listen(self, milliseconds: int) -> None:
        listener = self._listening()
        if listener is None:
            self._clock.wait(min(milliseconds, 1_000))
            return
        try:
            for _ in listener.notifies(timeout=milliseconds / 1000, stop_after=1):
                return
        except psycopg.Error:
            listener.close()
            self._listener = None

    def close(self) -> None:
        """Close every connection; the store can't be used any more."""
        self._closed = True
        for _, db in self._open:
            db.close()
        self._open.clear()
        self._local = threading.local()
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        db: psycopg.Connection[tuple[Any, ...]] | None = getattr(self._local, "db", None)
        if db is None or db.closed:
            try:
                db = self._open_one()
                self._note_lineage(db)
            except psycopg.Error as error:
                raise translate(error) from error
        return db

    def _connection_lost(self) -> bool:
        db: psycopg.Connection[tuple[Any, ...]] | None = getattr(self._local, "db", None)
        return db is None or db.closed

    def _open_one(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._closed:
            raise StoreUnavailableError("The store was closed.", next_step="Open it again.")
        db: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
            self._dsn, autocommit=True, connect_timeout=10, prepare_threshold=1
        )
        self._pooled = is_pooled(db)
        _adapt(db)
        if self._pooled:
            db.prepare_threshold = None
        else:
            settle(db)
        self._local.db = db
        self._keep(db)
        return db

    def _keep(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Remember a connection to close, and close those of threads that are gone."""
        kept = []
        for thread, known in self._open:
            if thread.is_alive() and not known.closed:
                kept.append((thread, known))
            else:
                known.close()
        self._open = [*kept, (threading.current_thread(), db)]

    def _note_lineage(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        """A new term where another server or timeline answers than before.

        At every new connection: after a failover the same address leads to a promoted standby,
        which may have lost grants that were acknowledged.
        """
        found = lineage(db)
        if found != self._lineage:
            db.execute(self._statements["note_lineage"], {"lineage": found})
            self._lineage = found

    def _refuse_other(self, connection: psycopg.Connection[Any]) -> None:
        try:
            with connection.transaction():
                key = _key(connection)
        except psycopg.Error:
            key = -1
        if key != self.key:
            raise InvalidError(
                "The connection is on another database than this store's.",
                next_step="Open it on the database that --store names.",
            )

    def _listening(self) -> psycopg.Connection[tuple[Any, ...]] | None:
        if self._listener is not None and not self._listener.closed:
            return self._listener
        dsn = self._listen_dsn or (None if self._pooled else self._dsn)
        if dsn is None:
            return None
        try:
            self._listener = psycopg.connect(dsn, autocommit=True, connect_timeout=10)
            self._listener.execute(f"LISTEN {CHANNEL}")
        except psycopg.Error as error:
            raise StoreUnavailableError(
                "The direct connection for LISTEN can't be opened.",
                next_step="Check LESSOR_LISTEN_DSN, or unset it to poll.",
            ) from error
        return self._listener


class PostgresTransaction:
    """A transaction that begins with its first statement."""

    def __init__(
        self,
        db: psycopg.Connection[tuple[Any, ...]],
        statements: dict[str, bytes],
        *,
        pooled: bool,
        joined: bool = False,
    ) -> None:
        self._db = db
        self._statements = statements
        self._pooled = pooled
        self._begun = joined
        self._joined = joined
        self.over = False

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Run one named statement."""
        return self.batch((name, values))[0]

    def batch(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order, in one round trip."""
        return self._send(calls, commit=False)

    def finish(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order and commit, in one round trip."""
        answers = self._send(calls, commit=True)
        self.over = True
        return answers

    def now(self) -> int:
        """The server's clock, read now, in milliseconds."""
        return int(self.rows("clock")[0][0])

    def roll_back(self) -> None:
        """Give up; a connection that can't is closed."""
        if self._db.closed or not self._begun:
            return
        try:
            # Not execute(): this forgets what the driver takes for prepared, and a statement that was
            # sent behind a failed one in a pipeline never was (psycopg 3.3).
            self._db.rollback()
        except psycopg.Error:
            self._db.close()

    def _send(self, calls: tuple[Call, ...], *, commit: bool) -> list[list[Row]]:
        if not self._begun and not calls:
            return []
        db = self._db
        with db.pipeline():
            if not self._begun:
                self._begun = True
                db.execute(_BEGIN)
                if self._pooled:  # a session's setting would leak to the pooler's other clients
                    db.execute(_LOCK_TIMEOUT)
            cursors = [
                self._cursor().execute(self._statements[name], values) for name, values in calls
            ]
            if commit:
                db.execute(_COMMIT)
        return [list(cursor) if cursor.description else [] for cursor in cursors]

    def _cursor(self) -> psycopg.Cursor[tuple[Any, ...]]:
        cursor = psycopg.Cursor(self._db, row_factory=tuple_row)
        if self._joined:  # the caller's connection may make rows and send numbers in its own way
            _adapt(cursor)
        return cursor


def _adapt(context: psycopg.abc.AdaptContext) -> None:
    """One type for every number, so that there is one prepared plan a statement."""
    context.adapters.register_dumper(int, Int8Dumper)


def _commits_alone(connection: psycopg.Connection[Any]) -> bool:
    status = connection.info.transaction_status
    return connection.closed or (
        status is not TransactionStatus.INTRANS
        and (connection.autocommit or status is not TransactionStatus.IDLE)
    )


def _key(db: psycopg.Connection[Any]) -> int:
    cursor = psycopg.Cursor(db, row_factory=tuple_row)
    row = cursor.execute("SELECT value FROM lessor.meta WHERE key = 'store_key'").fetchone()
    return int(str(row[0])) if row else 0


def _readable(dsn: str) -> str:
    """`dsn` if libpq can read it; what it says of one that it can't quotes the password."""
    try:
        psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise InvalidError(
            "The store's URL can't be read as PostgreSQL's.",
            next_step="Write it as postgresql://user:password@host/database; encode special characters as %XX.",
        ) from None
    return dsn
