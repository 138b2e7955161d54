"""Migrations: forward only, once, under a lock; a schema by other text or of tomorrow is refused."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pooler import Pooler

from builders import MakeStore, StoreUnderTest
from lessor.clock import SystemClock
from lessor.connect import connect
from lessor.errors import BusyError, StoreCorruptError, StoreNewerError, StoreUnsupportedError
from lessor.store.migrations import Migration, load_migrations, pending
from lessor.store.postgres import opening as postgres_opening
from lessor.store.sqlite import place
from servers import Server

OPEN = """
import sys
from lessor.connect import connect
sys.stdin.readline()
lessor = connect(sys.argv[1])
lessor.registry.add_repository("github.com/acme/shop")
print(lessor.store.key)
lessor.close()
"""


def open_together(url: str, processes: int) -> list[str]:
    """Open the store in so many processes at the same moment; what each printed."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    done = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * processes, done
    return [out.strip() for out, _ in done]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_versions_are_numbered_without_gaps(dialect: str) -> None:
    assert [m.version for m in load_migrations(dialect)] == list(
        range(1, len(load_migrations(dialect)) + 1)
    )


def test_both_dialects_have_the_same_versions() -> None:
    assert [m.version for m in load_migrations("sqlite")] == [
        m.version for m in load_migrations("postgres")
    ]


def test_what_is_pending_comes_in_order() -> None:
    three = [Migration(version=n, name=f"m{n}", text=f"text {n}") for n in (1, 2, 3)]
    applied = {1: three[0].digest}
    assert [m.version for m in pending(three, applied)] == [2, 3]
    assert pending(three, {m.version: m.digest for m in three}) == []
    with pytest.raises(StoreNewerError):
        pending(three[:2], {m.version: m.digest for m in three})
    with pytest.raises(StoreCorruptError):
        pending(three, {1: three[1].digest})


def test_an_opened_store_says_what_was_applied(store: StoreUnderTest) -> None:
    store.connect()
    store.connect()
    assert [row[0] for row in store.sql("SELECT version FROM schema_migration")] == [1]


def test_a_newer_schema_is_refused_and_left_alone(store: StoreUnderTest) -> None:
    store.sql("INSERT INTO schema_migration (version, digest, applied_ms) VALUES (99, 'x', 1)")
    before = store.contents()
    with pytest.raises(StoreNewerError) as refused:
        store.connect()
    assert refused.value.facts["store_version"] == 99
    assert "Upgrade" in refused.value.next_step
    assert store.contents() == before


def test_a_schema_made_by_other_text_is_refused(store: StoreUnderTest) -> None:
    store.sql("UPDATE schema_migration SET digest = 'of other text'")
    before = store.contents()
    with pytest.raises(StoreCorruptError, match="other text"):
        store.connect()
    assert store.contents() == before


def test_processes_that_make_a_sqlite_store_at_once_make_one(tmp_path: Path) -> None:
    for turn in range(3):
        url = f"sqlite://{tmp_path}/{turn}.db"
        assert len(set(open_together(url, 4))) == 1


def test_processes_that_make_a_postgres_store_at_once_make_one(server: Server) -> None:
    url = server.create("")
    assert len(set(open_together(url, 4))) == 1
    server.drop(url)


def test_a_migration_that_fails_leaves_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.create("")
    good = load_migrations("postgres")
    bad = [
        *good,
        Migration(version=2, name="bad", text="CREATE TABLE lessor.x (a int); SELECT 1/0;"),
    ]
    monkeypatch.setattr(postgres_opening, "load_migrations", lambda _: bad)
    with pytest.raises(Exception, match="division by zero"):
        connect(url)
    with psycopg.connect(url) as db:
        row = db.execute("SELECT to_regnamespace('lessor')").fetchone()
    assert row == (None,)
    monkeypatch.setattr(postgres_opening, "load_migrations", lambda _: good)
    connect(url).close()
    server.drop(url)


def test_a_migration_that_stays_locked_is_told_with_its_keeper_also_through_a_pooler(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler's sessions have no limit of ours; a session's own setting would leak to others."""
    url = server.create("")
    monkeypatch.setattr(postgres_opening, "LOCK_PATIENCE_MS", 50)
    with closing(Pooler(url)) as pooler:
        for way in (url, pooler.url):
            with psycopg.connect(url, application_name="keeper") as keeper:
                keeper.execute("SELECT pg_advisory_xact_lock(%s)", (0x4C6573736F72,))
                with ThreadPoolExecutor(1) as aside:
                    opened = aside.submit(connect, way)
                    try:
                        refused = opened.exception(timeout=20)
                    finally:
                        keeper.rollback()
                assert isinstance(refused, BusyError)
                pid = keeper.info.backend_pid
                assert refused.facts["pid"] == pid
                assert f"session {pid}" in refused.message
                assert "(keeper)" in refused.message
                assert f"pg_terminate_backend({pid})" in refused.next_step
        with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as db:
            for _ in range(6):
                assert db.execute("SHOW lock_timeout").fetchone() == ("0",)
                row = db.execute("SELECT to_regnamespace('lessor')").fetchone()
                assert row == (None,)
        connect(pooler.url).close()
    server.drop(url)


def test_a_server_that_is_too_old_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_opening, "OLDEST_SERVER", 990000)
    url = server.create("")
    with pytest.raises(StoreUnsupportedError, match="PostgreSQL"):
        connect(url)
    server.drop(url)


def test_a_second_writer_of_another_schema_is_refused(make_store: MakeStore) -> None:
    store = make_store("sqlite")
    other = os.open(store.path.with_name("lessor.db.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(other, b"7           ", 0)
    fcntl.flock(other, fcntl.LOCK_SH)
    before = store.contents()
    with pytest.raises(StoreNewerError, match="schema version 7") as refused:
        store.connect()
    assert refused.value.facts == {"store_version": "7", "known_version": 1}
    assert store.contents() == before
    os.close(other)
    store.connect()


STOPPED = """
import fcntl, os, signal, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_stopped_process_that_has_a_sqlite_store_alone_is_named_and_not_waited_for_for_ever(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store("sqlite")
    lock = store.path.with_name("lessor.db.lock")
    before = store.contents()
    with subprocess.Popen([sys.executable, "-c", STOPPED, str(lock)]) as stopped:
        os.waitpid(stopped.pid, os.WUNTRACED)
        monkeypatch.setattr(place, "PATIENCE_MS", 50)
        with pytest.raises(
            BusyError, match=f"Process {stopped.pid} has the store alone"
        ) as refused:
            store.connect()
        stopped.kill()
    assert refused.value.facts["pid"] == stopped.pid
    assert str(stopped.pid) in refused.value.next_step
    assert store.contents() == before
    store.connect()


def test_a_process_that_lets_go_of_a_sqlite_store_is_waited_for(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store("sqlite")
    lock = os.open(store.path.with_name("lessor.db.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    monkeypatch.setattr(SystemClock, "wait", lambda *_: fcntl.flock(lock, fcntl.LOCK_UN))
    assert store.connect().registry.repositories() == []
    os.close(lock)


@pytest.mark.parametrize(
    "line",
    [
        "1: FLOCK  ADVISORY  WRITE 0 {where} 0 EOF",
        "1: FLOCK  ADVISORY  READ 12 {where} 0 EOF",
        "1: -> FLOCK  ADVISORY  WRITE 12 {where} 0 EOF",
        "1: POSIX  ADVISORY  WRITE 12 {where} 0 EOF",
        "1: FLOCK  ADVISORY  WRITE 12 00:00:1 0 EOF",
        "",
    ],
)
def test_nobody_is_named_who_doesnt_have_the_store_alone(tmp_path: Path, line: str) -> None:
    found = tmp_path.stat()
    where = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    (tmp_path / "locks").write_text(line.format(where=where))
    descriptor = os.open(tmp_path, os.O_RDONLY)
    assert place.holder_of(descriptor, locks=tmp_path / "locks") is None
    assert place.holder_of(descriptor, locks=tmp_path / "none") is None
    os.close(descriptor)


def test_writers_of_the_same_schema_work_side_by_side(make_store: MakeStore) -> None:
    store = make_store("sqlite")
    first, second = store.connect(), store.connect()
    first.registry.add_repository("a")
    second.registry.add_repository("b")
    assert [r.key for r in first.registry.repositories()] == ["a", "b"]


def test_a_migration_waits_for_nobody_and_is_refused_while_others_write(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lessor.store.sqlite import opening  # noqa: PLC0415

    store = make_store("sqlite")
    holder = store.connect()
    two: list[Any] = [
        *load_migrations("sqlite"),
        Migration(version=2, name="more", text="CREATE TABLE more (a INTEGER) STRICT;"),
    ]
    monkeypatch.setattr(opening, "load_migrations", lambda _: two)
    with pytest.raises(StoreNewerError, match="another process has it open"):
        store.connect()
    holder.close()
    store.connect().close()
    assert [row[0] for row in store.sql("SELECT version FROM schema_migration")] == [1, 2]
    monkeypatch.undo()
    with pytest.raises(StoreNewerError):
        store.connect()
