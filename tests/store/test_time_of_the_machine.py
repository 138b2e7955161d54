"""Suspend, reboot, clocks that step: an outage of the store extends leases, and time never goes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import TTL, MakeStore, StoreUnderTest, Yard
from lessor.clock import ManualClock
from lessor.model.grant import Reach
from lessor.model.worker import NewWorker

MINUTE = 60_000


@pytest.fixture
def sqlite(make_store: MakeStore) -> StoreUnderTest:
    """The store whose clock is this machine's."""
    return make_store("sqlite")


@pytest.fixture
def yard(sqlite: StoreUnderTest) -> Yard:
    """A repository and workers on it."""
    return Yard(sqlite, sqlite.connect())


def clock_of(store: StoreUnderTest) -> ManualClock:
    assert isinstance(store.clock, ManualClock)
    return store.clock


def test_a_suspend_extends_every_live_lease_once(yard: Yard, sqlite: StoreUnderTest) -> None:
    first, second = yard.running("a"), yard.running("b")
    clock_of(sqlite).suspend(10 * TTL)
    renewed = yard.lessor.leases.renew_one(first.holder)
    assert renewed.expires_ms == first.expires_ms + 10 * TTL
    lease = yard.lessor.leases.lease(second.lease)
    assert lease.expires_ms == second.expires_ms + 10 * TTL
    assert lease.max_until_ms == second.max_until_ms + 10 * TTL
    for grant in (first, second):
        entry = yard.lessor.tasks.history(grant.task)[-1]
        assert (entry.kind, entry.facts) == ("extended", {"reason": "suspend", "by_ms": 10 * TTL})
    yard.complete(second)
    assert yard.kinds(second.task).count("extended") == 1


def test_a_suspend_extends_once_whoever_notices_it(yard: Yard, sqlite: StoreUnderTest) -> None:
    grant = yard.running("a")
    others = [sqlite.connect() for _ in range(3)]
    clock_of(sqlite).suspend(5 * TTL)
    for lessor in (*others, yard.lessor, sqlite.connect()):
        lessor.registry.add_repository("x")
    assert yard.lessor.leases.lease(grant.lease).expires_ms == grant.expires_ms + 5 * TTL
    assert yard.kinds(grant.task).count("extended") == 1


def test_a_process_that_starts_after_the_suspend_notices_it(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    grant = yard.running("a")
    yard.lessor.close()
    clock_of(sqlite).suspend(5 * TTL)
    lessor = sqlite.connect()
    assert lessor.leases.watch(grant.holder).live
    assert lessor.leases.sweep() == []


def test_looking_doesnt_say_lost_before_the_sleep_is_accounted_for(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    grant = yard.running("a")
    clock_of(sqlite).suspend(5 * TTL)
    seen = yard.lessor.leases.watch(grant.holder)
    assert (seen.live, seen.ttl_ms) == (True, TTL)


def test_a_refused_write_after_a_suspend_doesnt_lose_the_extension(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    """The first write after waking is rolled back: the next one accounts for the sleep."""
    grant, done = yard.running("a"), yard.running("b")
    yard.complete(done)
    clock_of(sqlite).suspend(5 * TTL)
    assert yard.refused(lambda: yard.lessor.tasks.cancel([done.task])).code == "transition_refused"
    assert yard.complete(grant).state == "succeeded"


def test_short_sleeps_add_up(yard: Yard, sqlite: StoreUnderTest) -> None:
    grant = yard.running("a")
    for turn in range(5):
        clock_of(sqlite).suspend(600)
        lessor = sqlite.connect() if turn % 2 else yard.lessor  # another process, or this one
        lessor.registry.add_repository(f"x{turn}")
    extended = yard.lessor.leases.lease(grant.lease).expires_ms - grant.expires_ms
    assert 2_400 <= extended <= 3_000


def test_holds_and_reservations_sleep_too(yard: Yard, sqlite: StoreUnderTest) -> None:
    grant = yard.running("src")
    yard.lessor.leases.ask(grant.holder, "which?")
    clock_of(sqlite).suspend(5 * 60 * MINUTE)
    yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []


def test_what_ended_before_stays_ended(yard: Yard, sqlite: StoreUnderTest) -> None:
    grant = yard.running("a")
    sqlite.advance(TTL)
    yard.lessor.leases.sweep()
    clock_of(sqlite).suspend(TTL)
    yard.claim_one()
    assert [lease.end for lease in yard.lessor.leases.leases(task=grant.task)] == ["lapsed", None]


def test_a_running_machine_extends_nothing(yard: Yard, sqlite: StoreUnderTest) -> None:
    grant = yard.running("a")
    sqlite.advance(TTL - 1)
    sqlite.connect().registry.add_repository("x")
    assert yard.lessor.leases.lease(grant.lease).expires_ms == grant.expires_ms


def test_a_reboot_ends_the_leases_of_this_host_with_that_as_the_proof(
    sqlite: StoreUnderTest,
) -> None:
    clock = clock_of(sqlite)
    yard = Yard(sqlite, sqlite.connect(host_id="here"))
    here = yard.add_worker("here", host_id="here", boot_id=clock.boot_id())
    there = yard.add_worker("there", host_id="elsewhere", boot_id="boot-77")
    nameless = yard.add_worker("nameless", boot_id="boot-77")
    for name in "abc":
        yard.add(name, scopes=(name,), max_attempts=1)
    grants = [yard.claim_one(worker=w.id) for w in (here, there, nameless)]
    yard.lessor.close()
    clock.reboot()
    sqlite.advance(1_000)
    yard.lessor = sqlite.connect(host_id="here")
    assert [yard.lessor.leases.watch(g.holder).live for g in grants] == [False, True, True]
    (ended,) = yard.lessor.leases.sweep(repository=yard.repository.id)
    assert (ended.id, ended.end, ended.proof) == (grants[0].lease, "gone", "reboot")
    task = yard.lessor.tasks.task(grants[0].task)
    assert (task.state, task.charged) == ("queued", 0)
    # Workers of the new boot are left alone, at every later opening too.
    yard.lessor.registry.add_worker(NewWorker(agent="new", host_id="here", boot_id=clock.boot_id()))
    new = yard.add_worker("newer", host_id="here", boot_id=clock.boot_id())
    grant = yard.claim_one(worker=new.id)
    sqlite.connect(host_id="here")
    assert yard.lessor.leases.watch(grant.holder).live


def test_a_reboot_doesnt_count_as_sleep(sqlite: StoreUnderTest) -> None:
    clock = clock_of(sqlite)
    yard = Yard(sqlite, sqlite.connect())
    grant = yard.running("a")
    clock.suspend(2_000)
    yard.lessor.registry.add_repository("x")
    yard.lessor.close()
    clock.reboot()
    sqlite.connect()
    lease = sqlite.sql("SELECT expires_ms FROM lease")
    assert lease == [(grant.expires_ms + 2_000,)]


def test_a_store_without_a_host_ends_nobodys_lease(sqlite: StoreUnderTest) -> None:
    clock = clock_of(sqlite)
    yard = Yard(sqlite, sqlite.connect())
    worker = yard.add_worker("somebody", boot_id="boot-old")
    yard.add("work")
    grant = yard.claim_one(worker=worker.id)
    yard.lessor.close()
    clock.reboot()
    assert sqlite.connect().leases.watch(grant.holder).live


def test_a_clock_that_steps_back_takes_no_lease_and_no_turn_back(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    grant = yard.running("a")
    sqlite.advance(30_000)
    other = yard.running("b")
    clock_of(sqlite).step_wall(-3_600_000)
    assert yard.lessor.leases.renew_one(grant.holder).expires_ms >= grant.expires_ms
    later = yard.running("c")
    assert later.granted_ms >= other.granted_ms
    assert later.fence > other.fence
    yard.complete(other)
    assert yard.lessor.leases.lease(other.lease).end == "completed"


@pytest.mark.parametrize("free", [False, True])
def test_a_process_that_saw_a_later_time_takes_nothing_from_who_did_not(
    yard: Yard, sqlite: StoreUnderTest, free: bool
) -> None:
    """All processes read one clock: what one of them remembers of it isn't the time."""
    where = {"repository": Reach.NO_REPOSITORY} if free else {}
    sqlite.advance(3_600_000)
    assert yard.claim(**where) == []  # this process has seen the later time
    clock_of(sqlite).step_wall(-3_600_000)
    other = Yard.__new__(Yard)
    other.__dict__.update(yard.__dict__)
    other.lessor = sqlite.connect()
    other.add(free=free, scopes=() if free else ("a",))
    grant = other.claim_one(**where)
    sqlite.advance(TTL - 1)
    yard.add(free=free, scopes=() if free else ("a",))
    assert len(yard.claim(**where)) == int(free)
    assert yard.lessor.leases.sweep() == []
    assert other.lessor.leases.watch(grant.holder).live


def test_another_process_with_a_clock_behind_grants_no_earlier(
    yard: Yard, sqlite: StoreUnderTest
) -> None:
    """The repository's floor holds across processes."""
    first = yard.running("a")
    clock_of(sqlite).step_wall(-3_600_000)
    other = Yard.__new__(Yard)
    other.__dict__.update(yard.__dict__)
    other.lessor = sqlite.connect()
    second = other.running("b")
    assert second.granted_ms >= first.granted_ms
    assert second.fence == first.fence + 1


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_the_servers_clock_may_step_back_too(store: StoreUnderTest) -> None:
    yard = Yard(store, store.connect())
    first = yard.running("a")
    store.sql("UPDATE test_clock SET now_ms = now_ms - 3600000")
    second = yard.running("b")
    assert second.granted_ms >= first.granted_ms
    assert yard.lessor.leases.renew_one(first.holder).expires_ms >= first.expires_ms
    yard.lessor.leases.release(replace(first.holder, version=2))
    store.sql("UPDATE test_clock SET now_ms = now_ms + 7200000")
    assert yard.lessor.leases.sweep()
