"""By what a failover is told, where a host lets nobody ask, and where a standby is promoted."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from builders import MakeStore, StoreUnderTest, Yard
from lessor.clock import SystemClock
from lessor.store.postgres.lineage import Lineage
from lessor.store.postgres.store import PostgresStore
from servers import GIVEN, start_server, stop_server

CLUSTER = ("pg_control_system()",)
TIMELINE = ("pg_walfile_name(pg_lsn)", "pg_current_wal_lsn()")
KEPT = {"all": (), "cluster": CLUSTER, "timeline": TIMELINE, "nothing": (*CLUSTER, *TIMELINE)}


@pytest.fixture
def strong(make_store: MakeStore) -> Yard:
    """As the server's own role, whom nothing is kept from."""
    store = make_store("postgres")
    return Yard(store, store.connect())


@pytest.fixture
def weak(strong: Yard) -> Iterator[Callable[..., Yard]]:
    """As a role of no rank, of which functions are kept."""
    store = strong.store
    role = f"lessor_plain_{os.getpid()}"
    store.sql(f"CREATE ROLE {role} LOGIN")
    store.sql(f"GRANT ALL ON SCHEMA lessor TO {role}")
    for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
        store.sql(f"GRANT ALL ON ALL {kind} IN SCHEMA lessor TO {role}")
    parts = urlsplit(store.url)
    url = urlunsplit(parts._replace(netloc=f"{role}:@{parts.netloc.rpartition('@')[2]}"))
    through = StoreUnderTest("postgres", url, store.clock)

    def connect(kept: str) -> Yard:
        for function in KEPT[kept]:
            store.sql(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
        return Yard(store, through.connect())

    yield connect
    through.close()
    store.sql(f"DROP OWNED BY {role}")
    store.sql(f"DROP ROLE {role}")


def told(yard: Yard) -> Lineage:
    """What the server said of itself."""
    store = yard.lessor.store
    assert isinstance(store, PostgresStore)
    return store.lineage


def term(yard: Yard) -> int:
    """The repository's term."""
    return yard.lessor.registry.repository(yard.repository.id).term


@pytest.mark.parametrize("kept", KEPT)
def test_a_store_opens_whatever_is_kept_from_its_role(
    strong: Yard, weak: Callable[..., Yard], kept: str
) -> None:
    yard = weak(kept)
    assert (told(yard).cluster == "") == (kept in {"cluster", "nothing"})
    assert (told(yard).timeline == "") == (kept in {"timeline", "nothing"})
    grant = yard.running("src")
    assert yard.complete(grant).state == "succeeded"


def test_a_failover_that_cant_be_noted_is_noted_before_anything_else_is_sent(strong: Yard) -> None:
    """The connection by which it was noticed may live on: it is cancelled, or waits too long for a lock."""
    grant = strong.running("src")
    server, store = strong.lessor.store, strong.store
    assert isinstance(server, PostgresStore)
    store.sql("UPDATE meta SET value = 'the one before/00000001' WHERE key = 'lineage'")
    server.lineage = Lineage("the one before", "00000001")
    store.sql(
        "CREATE FUNCTION lessor.keep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION USING ERRCODE = 'lock_not_available'; END $$"
    )
    store.sql(
        "CREATE TRIGGER kept BEFORE UPDATE ON lessor.meta FOR EACH ROW EXECUTE FUNCTION lessor.keep()"
    )
    store.sql(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    for _ in range(3):
        strong.refused(lambda: strong.complete(grant))
    store.sql("DROP TRIGGER kept ON lessor.meta")
    assert strong.refused(lambda: strong.complete(grant)).code == "lease_lost"
    assert term(strong) == 1


@pytest.mark.parametrize("kept", KEPT)
def test_roles_that_may_ask_different_things_are_no_failover(
    strong: Yard, weak: Callable[..., Yard], kept: str
) -> None:
    grant = strong.running("src")
    for _ in range(2):
        yard = weak(kept)
        strong.lessor = strong.store.connect()
    assert (term(yard), term(strong)) == (0, 0)
    assert yard.lessor.leases.watch(grant.holder).live
    (kept_of_it,) = strong.store.sql("SELECT value FROM meta WHERE key = 'lineage'")
    assert kept_of_it == (f"{told(strong).cluster}/{told(strong).timeline}",)


@pytest.mark.parametrize(
    ("kept", "before", "terms"),
    [
        ("timeline", "another/00000001", 1),
        ("cluster", "{cluster}/00000009", 1),
        ("timeline", "{cluster}/00000009", 0),
        ("nothing", "another/00000009", 0),
    ],
)
def test_what_may_be_asked_tells_a_failover(
    strong: Yard, weak: Callable[..., Yard], kept: str, before: str, terms: int
) -> None:
    value = before.format(cluster=told(strong).cluster)
    strong.store.sql("UPDATE meta SET value = :v WHERE key = 'lineage'", v=value)
    assert term(weak(kept)) == terms
    assert term(weak(kept)) == terms


def test_another_clusters_timeline_isnt_kept_for_the_one_of_now(
    strong: Yard, weak: Callable[..., Yard]
) -> None:
    """Else the first role that may ask for the timeline took its own cluster for a failover."""
    strong.store.sql("UPDATE meta SET value = 'another/00000009' WHERE key = 'lineage'")
    assert term(weak("timeline")) == 1
    strong.lessor = strong.store.connect()
    assert term(strong) == 1


@pytest.fixture
def folders() -> Iterator[Path]:
    """Where servers of our own lie; the path of a socket is short."""
    if GIVEN in os.environ:
        pytest.skip("a given server isn't stopped and copied")
    with tempfile.TemporaryDirectory(prefix="lessor-failover-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101 - the server's own user has to reach it
        yield Path(folder)


def copy_as_standby(primary: Path, standby: Path) -> None:
    """What a host keeps beside its primary: the same data, replaying until it is promoted."""
    shutil.copytree(primary, standby, ignore=shutil.ignore_patterns(".handle_pids.json"))
    (standby / "standby.signal").touch()
    owner = primary.stat()
    for path in (standby, *standby.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


def test_a_standby_can_be_read_and_is_another_server_once_it_is_promoted(folders: Path) -> None:
    first = StoreUnderTest("postgres", start_server(folders / "a"), SystemClock())
    yard = Yard(first, first.connect())
    grant = yard.running("src")
    first.close()
    stop_server(folders / "a")
    copy_as_standby(folders / "a", folders / "b")
    second = StoreUnderTest("postgres", start_server(folders / "b"), SystemClock())
    try:
        yard.store, yard.lessor = second, second.connect()
        assert told(yard).standby
        assert yard.state(grant.task) == "running"
        assert yard.refused(lambda: yard.complete(grant)).code == "store_unavailable"
        second.sql("SELECT pg_promote()")
        assert yard.refused(lambda: yard.complete(grant)).code == "lease_lost"
        assert not told(yard).standby
        assert term(yard) == 1
        assert yard.claim_one().task == grant.task
    finally:
        second.close()
        stop_server(folders / "b")
