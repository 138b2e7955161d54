"""Ending what ran out without claiming, and where the time goes when nobody claims."""

from __future__ import annotations

from builders import TTL, Yard


def test_a_sweep_ends_what_ran_out_and_says_so(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    here = yard.running("src")
    yard.add("there", repository=docs.id)
    there = yard.claim_one(repository=docs.id)
    yard.add("free", free=True)
    (free,) = yard.claim_free()
    live = yard.running("docs", max_attempts=1)
    yard.store.advance(TTL)
    assert {lease.id for lease in yard.lessor.leases.sweep(repository=docs.id)} == {there.lease}
    yard.lessor.leases.end_gone(live.task, epoch=1, proof="seen")
    ended = yard.lessor.leases.sweep()
    assert {lease.id for lease in ended} == {here.lease, free.lease}
    assert {lease.end for lease in ended} == {"lapsed"}
    assert yard.lessor.leases.sweep() == []


def test_a_sweep_leaves_live_leases_alone(yard: Yard) -> None:
    grant = yard.running("src")
    yard.store.advance(TTL - 1)
    before = yard.store.contents()
    assert yard.lessor.leases.sweep() == []
    assert yard.store.contents() == before
    assert yard.lessor.leases.watch(grant.holder).live


def test_a_sweep_frees_paths_and_wakes_waiters(yard: Yard) -> None:
    yard.running("src", max_attempts=1)
    waiting = yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    yard.store.advance(TTL)
    yard.lessor.leases.sweep()
    assert yard.lessor.tasks.task(waiting.task).waiting_on is None
    assert [t.id for t in yard.lessor.tasks.ready(repository=yard.repository.id)] == [waiting.task]


def test_hundreds_of_leases_run_out_at_once(yard: Yard) -> None:
    for n in range(250):
        yard.add(f"task {n}", scopes=(f"d{n}",))
    assert len(yard.claim(wanted=250)) == 250
    yard.store.advance(TTL)
    got = []
    while grants := yard.claim(wanted=250):
        got += grants
    assert len(got) == 250
    assert {grant.epoch for grant in got} == {2}


def test_leases_are_listed(yard: Yard) -> None:
    done, live = yard.running("a"), yard.running("b")
    yard.complete(done)
    leases = yard.lessor.leases.leases
    assert [lease.id for lease in leases()] == [done.lease, live.lease]
    assert [lease.id for lease in leases(live=True)] == [live.lease]
    assert [lease.id for lease in leases(task=done.task)] == [done.lease]
    assert [lease.id for lease in leases(repository=yard.repository.id, most=1)] == [done.lease]
    record = yard.lessor.leases.lease(live.lease)
    assert (record.task, record.paths, record.live) == (live.task, ("b",), True)
    assert (record.fence, record.label, record.worker) == (live.fence, live.label, yard.worker.id)
