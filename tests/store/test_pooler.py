"""Through a pooler in transaction mode: no session state, so nothing is different."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import psycopg
import pytest
from pgbouncer import PgBouncer, is_installed
from pooler import Pooler

from builders import TTL, MakeStore, StoreUnderTest, Yard
from invariants import check_invariants
from lessor.store.postgres.opening import is_pooled
from lessor.store.postgres.store import PostgresStore


@pytest.fixture
def direct(make_store: MakeStore) -> StoreUnderTest:
    return make_store("postgres")


@pytest.fixture(params=[Pooler, PgBouncer])
def pooled(
    direct: StoreUnderTest, request: pytest.FixtureRequest
) -> Iterator[tuple[Pooler | PgBouncer, Yard]]:
    if request.param is PgBouncer and not is_installed():
        pytest.skip("there is no pgbouncer here")
    pooler = request.param(direct.url)
    through = StoreUnderTest("postgres", pooler.url, direct.clock)
    yard = Yard(direct, through.connect())
    yield pooler, yard
    through.close()
    pooler.close()
    check_invariants(direct)


def test_a_pooler_is_told_by_the_pid_that_it_invents(
    direct: StoreUnderTest, pooled: tuple[Pooler | PgBouncer, Yard]
) -> None:
    pooler, _ = pooled
    with psycopg.connect(direct.url, autocommit=True) as db:
        assert not is_pooled(db)
    with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as db:
        assert is_pooled(db)


@pytest.mark.parametrize("pooled", [Pooler], indirect=True)
def test_the_pooler_gives_each_transaction_another_backend(
    pooled: tuple[Pooler | PgBouncer, Yard],
) -> None:
    """Else the tests below would prove nothing; PgBouncer does so only when many are at work."""
    with psycopg.connect(pooled[0].url, autocommit=True, prepare_threshold=None) as db:
        found = {db.execute("SELECT pg_backend_pid()").fetchone() for _ in range(6)}
    assert len(found) > 1


def test_work_goes_on_as_without_it(pooled: tuple[Pooler | PgBouncer, Yard]) -> None:
    _, yard = pooled
    for turn in range(12):  # more often than a statement would be prepared after
        yard.add(f"task {turn}", scopes=(f"d{turn}",))
        yard.add(f"free {turn}", free=True)
        grant = yard.claim_one()
        renewed = yard.lessor.leases.renew_one(grant.holder)
        yard.lessor.leases.widen(grant.holder, [f"w{turn}"])
        assert renewed.version == 2
        (free,) = yard.claim_free()
        yard.complete(free)
        yard.lessor.leases.force_release(grant.task, actor="a", reason="b", checked="c")
        yard.lessor.tasks.cancel([grant.task])
    assert yard.lessor.tasks.counts(everywhere=True) == {"cancelled": 12, "succeeded": 12}


def test_what_waits_and_lapses_does_so_through_it(
    pooled: tuple[Pooler | PgBouncer, Yard], direct: StoreUnderTest
) -> None:
    _, yard = pooled
    holder = yard.running("src")
    waiting = yard.add("waits", scopes=("src/a",), priority=1)
    assert yard.claim() == []
    direct.advance(TTL)
    assert yard.claim_one().task == waiting.task
    assert yard.refused(lambda: yard.complete(holder)).code == "lease_lost"


def test_threads_share_its_backends(pooled: tuple[Pooler | PgBouncer, Yard]) -> None:
    _, yard = pooled
    for n in range(40):
        yard.add(f"task {n}", scopes=(f"d{n % 7}/{n}",))
    done: list[str] = []

    def work() -> None:
        while grants := yard.claim():
            yard.complete(grants[0])
            done.append(grants[0].title)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(done) == sorted(f"task {n}" for n in range(40))


def test_nothing_is_left_in_a_session_for_the_next_client(
    pooled: tuple[Pooler | PgBouncer, Yard], direct: StoreUnderTest
) -> None:
    pooler, yard = pooled
    with psycopg.connect(direct.url) as db:
        before = db.execute("SHOW synchronous_commit").fetchone()
    yard.complete(yard.running("src"))
    with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as db:
        for _ in range(6):
            assert db.execute("SHOW lock_timeout").fetchone() == ("0",)
            assert db.execute("SHOW synchronous_commit").fetchone() == before
            assert db.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_a_failover_that_a_pooler_hides_begins_a_new_term(
    pooled: tuple[Pooler | PgBouncer, Yard], direct: StoreUnderTest
) -> None:
    """Its clients' connections stay open, so that none of them is told of another server."""
    _, yard = pooled
    grant = yard.running("src")
    store = yard.lessor.store
    assert isinstance(store, PostgresStore)
    before = store.lineage._replace(timeline="00000009")
    direct.sql("UPDATE meta SET value = :v WHERE key = 'lineage'", v=f"{before.cluster}/00000009")
    store.lineage = before
    assert yard.refused(lambda: yard.complete(grant)).code == "lease_lost"
    assert yard.lessor.registry.repository(yard.repository.id).term == 1
    assert yard.claim_one().term == 1


def test_a_waiting_claim_polls_where_it_cant_listen(
    pooled: tuple[Pooler | PgBouncer, Yard],
) -> None:
    _, yard = pooled
    store = yard.lessor.store
    assert isinstance(store, PostgresStore)
    assert store._listening() is None


def test_a_direct_connection_listens_beside_the_pooler(
    pooled: tuple[Pooler | PgBouncer, Yard], direct: StoreUnderTest
) -> None:
    through = StoreUnderTest("postgres", pooled[0].url, direct.clock)
    lessor = through.connect(listen_dsn=direct.url)
    store = lessor.store
    assert isinstance(store, PostgresStore)
    assert store._listening() is not None
    waiter = Thread(target=store.wait, args=(30_000,))
    waiter.start()
    while waiter.is_alive():
        lessor.store.notify()
        waiter.join(timeout=0.05)
    through.close()
