"""Opening a SQLite store: settings, the integrity gate, migrations, the store's own key."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from lessor.clock import SystemClock
from lessor.errors import StoreCorruptError, StoreNewerError, StoreUnsupportedError
from lessor.ids import new_store_key
from lessor.store.migrations import load_migrations, pending
from lessor.store.sqlite.errors import translate
from lessor.store.sqlite.place import WriterLock, unavailable

APPLICATION_ID = 0x4C65736F  # "Leso"
BUSY_MS = 10_000
LONGEST_NAP_MS = 5
WAL_TRIES = 200
SMALL_ENOUGH_TO_CHECK = 4 * 1024 * 1024
OLDEST_SQLITE = (3, 51, 3)  # older ones can corrupt a WAL file with two connections (WAL reset)

# The write-path's working set; on the connection, so never in another process's way. `asked` is the
# caller's own row: joining its list again for every row would cost the square of a batch. The planner
# is told that it is small: in a store that somebody analysed, it read every lease for each write.
_SCRATCH = """
CREATE TEMP TABLE picked (
  lease_id INTEGER PRIMARY KEY, task_id INTEGER, epoch INTEGER, at_ms INTEGER, ord INTEGER, asked TEXT
);
ANALYZE temp;
INSERT INTO temp.sqlite_stat1 (tbl, idx, stat) VALUES ('picked', NULL, '8');
ANALYZE temp.sqlite_schema;
"""


def open_connection(path: str, *, now: int) -> tuple[apsw.Connection, WriterLock | None]:
    """A connection with every promise switched on, its schema up to date, and the writers' lock.

    What is refused is left as it was: another program's database isn't even switched to WAL.

    Raises:
        StoreCorruptError: the file is damaged, or belongs to another program.
        StoreNewerError: a newer Lessor wrote it, or has it open.
        StoreUnsupportedError: this machine's SQLite is too old.
        StoreUnavailableError: it can't be read or written.
        BusyError: a process that has it alone doesn't let go.
    """
    if tuple(int(n) for n in apsw.sqlite_lib_version().split(".")) < OLDEST_SQLITE:
        raise StoreUnsupportedError(
            f"SQLite {apsw.sqlite_lib_version()} has a fault that can damage the store.",
            next_step="Install apsw 3.51.3 or newer.",
            version=apsw.sqlite_lib_version(),
        )
    in_memory = path == ":memory:"
    fresh = in_memory or _make(Path(path))
    writers: WriterLock | None = None
    db = apsw.Connection(path)
    try:
        _wait_for_others(db)
        _refuse_foreign(db, path=path)
        _configure(db)
        if not fresh:
            _refuse_damaged(db, path=path)
        writers = None if in_memory else WriterLock(Path(path))
        _migrate(db, writers=writers, now=now)
        db.execute(_SCRATCH)
    except BaseException as error:
        db.close()
        if writers is not None:
            writers.close()
        if isinstance(error, apsw.Error):
            raise translate(error, path=path) from error
        raise
    return db, writers


def read_key(db: apsw.Connection | apsw.Cursor) -> int:
    """The store's own random key, made with the store."""
    row = db.execute("SELECT value FROM meta WHERE key = 'store_key'").fetchone()
    if row is None or not str(row[0]).isdecimal():
        raise StoreCorruptError("The store has no key.", next_step="Restore a backup.")
    return int(row[0])


def _make(path: Path) -> bool:
    """Make the file where there is none; SQLite gives its companions the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError as error:
        raise unavailable(path, error) from error
    return True


def _wait_for_others(db: apsw.Connection) -> None:
    """Wait up to BUSY_MS for another's lock, looking every few milliseconds all the time.

    SQLite's own waits grow to 100 ms, so that who has waited longest looks least often: beside seven
    busy writers one got a single transaction in eight seconds.
    """
    clock, began = SystemClock(), 0

    def wait(times: int) -> bool:
        nonlocal began
        now = clock.boottime_ms()
        if times == 0:
            began = now
        if now - began >= BUSY_MS:
            return False
        clock.wait(min(times + 1, LONGEST_NAP_MS))
        return True

    db.set_busy_handler(wait)


def _configure(db: apsw.Connection) -> None:
    _switch_to_wal(db)
    # NORMAL may roll acknowledged commits back on a power cut; fullfsync is macOS's real fsync.
    for pragma in (
        "synchronous=FULL",
        "fullfsync=ON",
        "checkpoint_fullfsync=ON",
        "foreign_keys=ON",
        "temp_store=MEMORY",
        "cell_size_check=ON",
        "trusted_schema=OFF",
    ):
        db.execute(f"PRAGMA {pragma}")
    # Else SQLite (3.54, built with STAT4) plans a statement anew at each change of what is bound to an
    # indexed column's side: it took half of a claim's time. The plans want to be the same anyway.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def _switch_to_wal(db: apsw.Connection) -> None:
    """Write-ahead logging; two processes that open a new file at once may refuse each other."""
    for attempt in range(WAL_TRIES):
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except apsw.BusyError:
            if attempt == WAL_TRIES - 1:
                raise
            SystemClock().wait(BUSY_MS // WAL_TRIES)
        else:
            return


def _refuse_foreign(db: apsw.Connection, *, path: str) -> None:
    db.execute("BEGIN")  # one snapshot: another process may be making the store right now
    application = db.pragma("application_id")
    tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    db.execute("ROLLBACK")
    if application not in {0, APPLICATION_ID} or (application == 0 and tables and tables[0]):
        raise StoreCorruptError(
            f"{path} is another program's database.",
            next_step="Name another file with --store.",
            store=path,
        )


def _refuse_damaged(db: apsw.Connection, *, path: str) -> None:
    if os.stat(path).st_size > SMALL_ENOUGH_TO_CHECK:  # noqa: PTH116
        return
    found = [str(row[0]) for row in db.execute("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise StoreCorruptError(
            f"{path} is damaged: {'; '.join(found)}.",
            next_step="Restore a backup: lessor restore FILE.",
            store=path,
        )


def _migrate(db: apsw.Connection, *, writers: WriterLock | None, now: int) -> None:
    migrations = load_migrations("sqlite")
    newest = migrations[-1].version
    if pending(migrations, _applied(db)):
        # Looked at again when it isn't alone: the other process may just have made the store.
        others = writers is not None and not writers.alone() and _applied(db)
        if others and pending(migrations, _applied(db)):
            raise StoreNewerError(
                "The store's schema has to be brought up to date, and another process has it open.",
                next_step="Stop other Lessors on this store and try again.",
                known_version=newest,
            )
        db.execute("BEGIN IMMEDIATE")
        try:
            # Read again under the lock: another process may have been first.
            for migration in pending(migrations, _applied(db)):
                db.execute(migration.text)
                db.execute(
                    "INSERT INTO schema_migration (version, digest, applied_ms) VALUES (?, ?, ?)",
                    (migration.version, migration.digest, now),
                )
                if migration.version == 1:
                    db.execute(
                        "INSERT INTO meta (key, value) VALUES ('store_key', ?)",
                        (str(new_store_key()),),
                    )
            db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    if writers is not None:
        writers.hold(newest)


def _applied(db: apsw.Connection) -> dict[int, str]:
    there = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migration'").fetchone()
    if there is None:
        return {}
    return {int(v): str(d) for v, d in db.execute("SELECT version, digest FROM schema_migration")}
