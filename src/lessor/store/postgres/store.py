"""A PostgreSQL database, one connection a thread, no session state.

READ COMMITTED with explicit row locks: the repository's row is the lock, a holder's write locks
its lease rows. Statements of one transaction travel in pipelines, as round trips are what a claim
costs. Nothing here needs LISTEN for correctness: it only shortens a wait, on a direct connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from lessor.clock import Clock, SystemClock
from lessor.errors import BusyError, InvalidError, LessorError, StoreUnavailableError
from lessor.store import TRIES, Call, LongWay, RetryRule, Row, T
from lessor.store.postgres.errors import GUARD_FAILED, LONG_WAY, REPEATABLE, translate
from lessor.store.postgres.line import Line
from lessor.store.postgres.lineage import Lineage, lineage
from lessor.store.postgres.opening import is_pooled, migrate, patience, settle
from lessor.store.postgres.transaction import (
    JoinedTransaction,
    PostgresTransaction,
    own_statements,
    through_pooler,
)

CHANNEL = "lessor"


class PostgresStore:
    """A store in the database that `dsn` names.

    Args:
        listen_dsn: a direct connection for LISTEN where `dsn` goes through a pooler.

    Attributes:
        lineage: by which a failover or a restore is told; what the server doesn't tell is empty.
    """

    dialect = "postgres"
    concurrent = True

    def __init__(
        self, dsn: str, *, listen_dsn: str | None = None, clock: Clock | None = None
    ) -> None:
        self._dsn = _readable(dsn)
        self._listen_dsn = None if listen_dsn is None else _readable(listen_dsn)
        self._clock = clock or SystemClock()
        self._local = threading.local()
        self._open: list[tuple[threading.Thread, psycopg.Connection[tuple[Any, ...]]]] = []
        self._keeps = threading.Lock()
        self._listens = threading.Lock()
        self._heard = threading.Condition()
        self._listener: psycopg.Connection[tuple[Any, ...]] | None = None
        self.lineage = Lineage()
        self._closed = False
        try:
            self._open_one(self._begin)
        except psycopg.Error as error:
            self.close()
            raise translate(error) from error
        except BaseException:
            self.close()
            raise

    def write(self, rule: Callable[[PostgresTransaction], T]) -> T:
        """Run `rule` in one transaction; again after a serialization failure or a failed guard."""
        for _ in range(TRIES):
            line = self._line()
            tx = PostgresTransaction(line, first=self._first())
            try:
                answer = rule(tx)
                if not tx.over:
                    tx.finish()
            except (RetryRule, *REPEATABLE):
                tx.roll_back()
            except psycopg.Error as error:
                tx.roll_back()
                if error.sqlstate != GUARD_FAILED:
                    raise _signal(error) from error
                self._look_again(line)
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
        line = self._line()
        try:
            try:
                return line.send([(name, values)])[0]
            except psycopg.OperationalError:
                if not line.connection.closed:
                    raise
            return self._line().send([(name, values)])[0]
        except psycopg.Error as error:
            raise translate(error) from error

    def once(self, name: str, /, **values: Any) -> list[Row]:
        """One statement that writes, in a transaction of its own: one round trip."""
        return self.together((name, values))[0]

    def together(self, *calls: Call) -> list[list[Row]]:
        """Statements that write, in one transaction of their own: one round trip."""
        if self._pooled:  # its settings have to be made within the transaction
            return self.write(lambda tx: tx.finish(*calls))
        last: psycopg.Error | None = None
        for _ in range(TRIES):
            try:
                return self._line().send(calls)
            except REPEATABLE as error:
                last = error
            except psycopg.Error as error:
                if error.sqlstate != GUARD_FAILED:
                    raise _signal(error) from error
                last = error
        raise BusyError(
            "The store kept changing under a guarded write.", next_step="Try again.", retry_ms=100
        ) from last

    @contextmanager
    def join(self, connection: Any) -> Iterator[JoinedTransaction]:
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
                yield JoinedTransaction(connection)
                # The server tells those who LISTEN when the caller commits, and never if it doesn't.
                psycopg.Cursor(connection).execute("SELECT pg_notify(%s, '')", (CHANNEL,))
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
            self._line().connection.execute("SELECT pg_notify(%s, '')", (CHANNEL,))

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

    def _line(self) -> Line:
        line: Line | None = getattr(self._local, "line", None)
        if line is None or line.connection.closed:
            line = None
        try:
            if line is None:
                line = self._open_one(self._note_lineage)
            elif self.lineage.standby:
                self._note_lineage(line)
        except psycopg.Error as error:
            raise translate(error) from error
        with suppress(psycopg.Error):  # a lost connection is met, and told of, by what follows
            line.replan(self._clock.boottime_ms())
        return line

    def _begin(self, line: Line) -> None:
        migrate(line.connection)
        self._note_lineage(line)
        self.key = _key(line.connection)

    def _open_one(self, prepare: Callable[[Line], None]) -> Line:
        """Connect this thread; nothing is sent on a connection for which `prepare` failed."""
        if self._closed:
            raise StoreUnavailableError("The store was closed.", next_step="Open it again.")
        # psycopg's own prepared statements are off: on a rollback it would drop the line's with them.
        db: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
            self._dsn,
            autocommit=True,
            connect_timeout=10,
            prepare_threshold=None,
            **patience(self._dsn),  # type: ignore[arg-type]
        )
        try:
            self._pooled = is_pooled(db)
            if not self._pooled:
                settle(db)
            line = Line(db, own_statements(), prepared=not self._pooled)
            prepare(line)
        except BaseException:
            db.close()
            raise
        self._local.line = line
        self._keep(db)
        return line

    def _keep(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Remember a connection to close, and close those of threads that are gone."""
        with self._keeps:
            kept = []
            for thread, known in self._open:
                if thread.is_alive() and not known.closed:
                    kept.append((thread, known))
                else:
                    known.close()
            self._open = [*kept, (threading.current_thread(), db)]

    def _note_lineage(self, line: Line) -> None:
        """A new term where another server or timeline answers than before.

        At every new connection: after a failover the same address leads to a promoted standby,
        which may have lost grants that were acknowledged. A pooler keeps connections beyond that:
        there each transaction compares. A standby can't note anything: it is asked again, as it
        may be promoted under an open connection.
        """
        found = lineage(line.connection)
        if found != self.lineage and not found.standby:
            asked = {"cluster": found.cluster, "timeline": found.timeline}
            line.send([("note_lineage", asked)])
        self.lineage = found

    def _first(self) -> list[Call]:
        return through_pooler(self.lineage) if self._pooled else []

    def _look_again(self, line: Line) -> None:
        """After a failed guard: behind a pooler it may be that another server answers."""
        if self._pooled and not line.connection.closed:
            try:
                self._note_lineage(line)
            except psycopg.Error as error:
                raise translate(error) from error

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
        listener: psycopg.Connection[tuple[Any, ...]] | None = None
        try:
            listener = psycopg.connect(
                dsn,
                autocommit=True,
                connect_timeout=10,
                **patience(dsn),  # type: ignore[arg-type]
            )
            listener.execute(f"LISTEN {CHANNEL}")
        except psycopg.Error as error:
            if listener is not None:
                listener.close()
            raise StoreUnavailableError(
                "The direct connection for LISTEN can't be opened.",
                next_step="Check LESSOR_LISTEN_DSN, or unset it to poll.",
            ) from error
        self._listener = listener
        return listener


def _signal(error: psycopg.Error) -> LongWay | LessorError:
    return LongWay() if error.sqlstate == LONG_WAY else translate(error)


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
