"""Opening a PostgreSQL store: version, migrations under a lock, a session's settings."""

from __future__ import annotations

import psycopg

from lessor.errors import BusyError, StoreUnsupportedError
from lessor.ids import new_store_key
from lessor.store.migrations import load_migrations, pending

OLDEST_SERVER = 150000
# Held for the migration's transaction only, so a pooler in transaction mode keeps it right.
_MIGRATION_LOCK = 0x4C6573736F72
LOCK_PATIENCE_MS = 10_000
"""How long another's migration is waited for; one takes less than a second."""
_HOLDER = """SELECT pid, concat('session ', pid, ' of ', coalesce(usename, 'another role'),
    ' from ' || client_addr, ' (' || nullif(application_name, '') || ')')
  FROM pg_locks JOIN pg_stat_activity USING (pid)
 WHERE locktype = 'advisory' AND granted AND classid = %s AND objid = %s AND objsubid = 1
   AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
# Until the transaction's end, as the next one may be another client's.
LOCAL_SETTINGS = """set_config('idle_in_transaction_session_timeout', '5000', true),
  set_config('synchronous_commit',
    coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)"""


def migrate(db: psycopg.Connection[tuple[object, ...]]) -> None:
    """Bring the schema up to date; one process at a time, all files in one transaction.

    Raises:
        StoreUnsupportedError: the server is older than PostgreSQL 15.
        StoreNewerError: a newer Lessor made the schema.
        BusyError: another process that makes the schema doesn't come to its end.
    """
    if db.info.server_version < OLDEST_SERVER:
        raise StoreUnsupportedError(
            f"The server is PostgreSQL {db.info.server_version // 10000}.",
            next_step="Lessor needs PostgreSQL 15 or newer.",
            version=str(db.info.server_version),
        )
    migrations = load_migrations("postgres")
    if not pending(migrations, _applied(db)):
        return
    with db.transaction():
        _lock(db)
        db.execute("CREATE SCHEMA IF NOT EXISTS lessor")
        db.execute(
            "CREATE TABLE IF NOT EXISTS lessor.schema_migration "
            "(version bigint PRIMARY KEY, digest text NOT NULL, applied_ms bigint NOT NULL)"
        )
        for migration in pending(migrations, _applied(db)):
            db.execute(migration.text.encode())
            db.execute(
                "INSERT INTO lessor.schema_migration (version, digest, applied_ms) VALUES (%s, %s, lessor.ms())",
                (migration.version, migration.digest),
            )
            if migration.version == 1:
                db.execute(
                    "INSERT INTO lessor.meta (key, value) VALUES ('store_key', %s)",
                    (str(new_store_key()),),
                )


def _lock(db: psycopg.Connection[tuple[object, ...]]) -> None:
    """Keep other migrations out until the transaction's end, whatever stands between.

    Behind a pooler the session has no settings of ours: another's lock would be waited for for ever, and
    ours would stay with the server where this process is stopped.
    """
    db.execute(
        f"SELECT set_config('lock_timeout', '{LOCK_PATIENCE_MS}', true), {LOCAL_SETTINGS}".encode()
    )
    try:
        with db.transaction():  # the question who has it is asked after the failure
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
    except psycopg.errors.LockNotAvailable as late:
        raise _kept(db) from late


def _kept(db: psycopg.Connection[tuple[object, ...]]) -> BusyError:
    row = db.execute(_HOLDER, (_MIGRATION_LOCK >> 32, _MIGRATION_LOCK & 0xFFFFFFFF)).fetchone()
    pid, who = (None, "another process") if row is None else (int(str(row[0])), str(row[1]))
    return BusyError(
        f"The store's schema has to be made or brought up to date, and {who} keeps it locked.",
        next_step="Try again."
        if pid is None
        else f"If it doesn't end, end it at the server: SELECT pg_terminate_backend({pid}).",
        retry_ms=1_000,
        pid=pid,
    )


# Every statement finds its rows by index, and is planned once for many calls: planning took 0.55 ms of
# a claim's 0.85. A plan is kept while tables grow from nothing, so none may be right for small ones
# only: no scans of whole tables, no hash and merge joins, which need them, nothing kept to be scanned
# again, no bitmaps, which take in every dead entry of a key where its last one is wanted, and each row
# that is looked at costs as much as a page. A planner without one of these settings goes without it.
# A commit that the server answers before it is on the disk is none: a crash would take grants back.
_SETTINGS = b"""SELECT set_config(name, value, false) FROM (VALUES
  ('lock_timeout', '10000'), ('idle_in_transaction_session_timeout', '5000'), ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'),
  ('enable_seqscan', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'),
  ('enable_material', 'off'), ('enable_bitmapscan', 'off'), ('cpu_tuple_cost', '1'),
  ('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'))
) AS wanted (name, value) WHERE current_setting(name, true) IS NOT NULL"""


def settle(db: psycopg.Connection[tuple[object, ...]]) -> None:
    """Set what a session of Lessor's own, without a pooler, keeps: its timeouts, plans, durable commits.

    A client that is stopped or cut off in the middle of a transaction has the repository's lock: the
    server ends it before those who wait for the lock give up.
    """
    db.execute(_SETTINGS, prepare=False)


# Where packets are lost without a word, a kernel tries for a quarter of an hour, and an answer that
# never comes is awaited for two: longer than any lease.
_PATIENCE: dict[str, str | int] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


def patience(dsn: str) -> dict[str, str | int]:
    """For how long a server that says nothing is waited for, where `dsn` doesn't say it."""
    asked = psycopg.conninfo.conninfo_to_dict(dsn)
    return {name: value for name, value in _PATIENCE.items() if name not in asked}


def is_pooled(db: psycopg.Connection[tuple[object, ...]]) -> bool:
    """Whether a pooler stands between: it invents the backend pid that it tells a client.

    Behind one, prepared statements are off: the same name may be another client's statement.
    """
    row = db.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
    return row is None or row[0] != db.info.backend_pid


def _applied(db: psycopg.Connection[tuple[object, ...]]) -> dict[int, str]:
    row = db.execute("SELECT to_regclass('lessor.schema_migration')", prepare=False).fetchone()
    if row is None or row[0] is None:
        return {}
    found = db.execute("SELECT version, digest FROM lessor.schema_migration", prepare=False)
    return {int(str(version)): str(digest) for version, digest in found}
