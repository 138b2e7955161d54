"""A store that was restored or promoted never gives out an old fence as new: a new term comes first."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builders import MakeStore, StoreUnderTest, Yard
from lessor.store.postgres.lineage import Lineage


def backup(store: StoreUnderTest, yard: Yard, name: str = "backup.db") -> Path:
    """A copy of the store as it is now."""
    target = store.path.with_name(name)
    yard.lessor.store.backup(target)
    return target


def restore(store: StoreUnderTest, copy: Path) -> None:
    """Put an old copy in the store's place, as a person does."""
    store.close()
    for companion in ("-wal", "-shm"):
        store.path.with_name(store.path.name + companion).unlink(missing_ok=True)
    shutil.copy(copy, store.path)


@pytest.fixture
def sqlite(make_store: MakeStore) -> StoreUnderTest:
    return make_store("sqlite")


@pytest.fixture
def yard(sqlite: StoreUnderTest) -> Yard:
    return Yard(sqlite, sqlite.connect())


def again(store: StoreUnderTest, yard: Yard) -> Yard:
    """The same names over the store as it is opened now."""
    yard.lessor = store.connect()
    return yard


def test_a_restored_store_has_a_new_term_before_its_first_grant(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    before = yard.running("a")
    copy = backup(sqlite, yard)
    lost = yard.running("b")
    restore(sqlite, copy)
    again(sqlite, yard)
    after = yard.running("b")
    assert (before.term, lost.term, after.term) == (0, 0, 1)
    assert (after.term, after.fence) > (lost.term, lost.fence)
    assert after.lease != lost.lease


def test_every_grant_of_before_is_over_and_epochs_jump(yard: Yard, sqlite: StoreUnderTest) -> None:
    kept, queued = yard.running("a", max_attempts=1), yard.add("queued", scopes=("q",))
    copy = backup(sqlite, yard)
    yard.running("b")
    restore(sqlite, copy)
    again(sqlite, yard)
    assert yard.refused(lambda: yard.lessor.leases.renew_one(kept.holder)).code == "lease_lost"
    assert yard.refused(lambda: yard.complete(kept)).code == "lease_lost"
    grants = yard.claim(wanted=9)
    epochs = {grant.task: grant.epoch for grant in grants}
    assert epochs[kept.task] > kept.epoch + 900
    assert epochs[queued.task] > 900
    assert yard.lessor.tasks.task(kept.task).charged == 0
    lease = next(lease for lease in yard.lessor.leases.leases(task=kept.task))
    assert (lease.end, lease.proof) == ("rewound", None)
    ended = [event for event in yard.lessor.tasks.history(kept.task) if event.kind == "rewound"]
    assert [event.facts["proof"] for event in ended] == [None]
    assert "restored" in yard.refused(lambda: yard.complete(kept)).message


def test_one_restore_makes_one_term_however_often_it_is_opened(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    copy = backup(sqlite, yard)
    for n in range(5):
        yard.running(f"lost{n}")
    restore(sqlite, copy)
    again(sqlite, yard)
    grant = yard.running("a")
    for _ in range(3):
        again(sqlite, yard)
    assert yard.lessor.registry.repository(yard.repository.id).term == 1
    assert yard.lessor.leases.watch(grant.holder).live


def test_processes_that_open_a_restored_store_at_once_make_one_term(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    copy = backup(sqlite, yard)
    for n in range(3):
        yard.running(f"lost{n}")
    restore(sqlite, copy)
    script = "import sys; from lessor.connect import connect; sys.stdin.readline(); connect(sys.argv[1]).close()"
    running = [
        subprocess.Popen([sys.executable, "-c", script, sqlite.url], stdin=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in running:
        process.communicate(b"go\n", timeout=60)
    assert [process.returncode for process in running] == [0] * 4
    assert sqlite.sql("SELECT term FROM repository WHERE id = 1") == [(1,)]


def test_a_rewind_over_a_widening_alone_is_noticed(yard: Yard, sqlite: StoreUnderTest) -> None:
    grant = yard.running("a")
    copy = backup(sqlite, yard)
    fence = yard.lessor.leases.widen(grant.holder, ["b"])
    restore(sqlite, copy)
    again(sqlite, yard)
    after = yard.running("c")
    assert (after.term, after.fence) > (0, fence)
    assert after.term == 1


def test_a_rewind_of_tasks_without_a_repository_is_noticed(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    task = yard.add("free", free=True).task
    copy = backup(sqlite, yard)
    (lost,) = yard.claim_free()
    restore(sqlite, copy)
    again(sqlite, yard)
    (after,) = yard.claim_free()
    assert (after.task, lost.epoch) == (task, 1)
    assert after.epoch > 900
    assert after.lease != lost.lease
    assert yard.refused(lambda: yard.complete(lost)).code == "lease_lost"


def test_a_copy_that_lost_nothing_is_no_rewind(yard: Yard, sqlite: StoreUnderTest) -> None:
    grant = yard.running("a")
    copy = backup(sqlite, yard)
    restore(sqlite, copy)
    again(sqlite, yard)
    assert yard.lessor.leases.watch(grant.holder).live
    assert yard.running("b").term == 0


def test_a_lost_or_odd_high_water_file_harms_nothing(yard: Yard, sqlite: StoreUnderTest) -> None:
    grant = yard.running("a")
    mark = sqlite.path.with_name("lessor.db.high-water")
    assert int(mark.read_text()) >= 1
    for content in (None, b"", b"nonsense", b"\xff\xfe", b"-5", b"0"):
        yard.lessor.close()
        if content is None:
            mark.unlink()
        else:
            mark.write_bytes(content)
        again(sqlite, yard)
        assert yard.lessor.leases.watch(grant.holder).live
    yard.running("b")
    assert int(mark.read_text()) >= 2


@pytest.fixture
def postgres(make_store: MakeStore) -> Yard:
    store = make_store("postgres")
    return Yard(store, store.connect())


def promote(store: StoreUnderTest) -> None:
    """What a failover or a restore looks like: the record says another cluster or timeline."""
    store.sql("UPDATE meta SET value = 'another cluster/00000001' WHERE key = 'lineage'")


def test_another_timeline_has_a_new_term_before_its_first_grant(postgres: Yard) -> None:
    yard, store = postgres, postgres.store
    kept, queued = yard.running("a", max_attempts=1), yard.add("queued", scopes=("q",))
    promote(store)
    yard.lessor = store.connect()
    assert yard.refused(lambda: yard.complete(kept)).code == "lease_lost"
    grants = {grant.task: grant for grant in yard.claim(wanted=9)}
    assert {grant.term for grant in grants.values()} == {1}
    assert grants[kept.task].epoch > 900
    assert grants[queued.task].epoch > 900
    assert yard.lessor.tasks.task(kept.task).charged == 0
    ended = yard.lessor.leases.lease(kept.lease)
    assert (ended.end, ended.proof) == ("rewound", None)
    yard.lessor = store.connect()
    assert yard.lessor.registry.repository(yard.repository.id).term == 1


def test_a_failover_behind_an_open_store_is_noticed_with_the_next_connection(
    postgres: Yard,
) -> None:
    """The same address leads to a promoted standby: the process that goes on has to see it."""
    yard, store = postgres, postgres.store
    kept = yard.running("a")
    promote(store)
    yard.lessor.store.lineage = Lineage("of the server before")
    store.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert yard.lessor.registry.repository(yard.repository.id).term == 1
    assert not yard.lessor.leases.watch(kept.holder).live


def test_the_same_timeline_is_no_failover(postgres: Yard) -> None:
    yard = postgres
    grant = yard.running("a")
    for _ in range(3):
        yard.lessor = yard.store.connect()
    assert yard.lessor.leases.watch(grant.holder).live
    assert yard.running("b").term == 0
