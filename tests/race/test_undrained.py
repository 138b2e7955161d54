"""Paths of ended leases that no claim has freed yet: their own tasks wait for that, like all others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from builders import MakeStore, Yard
from held import until_waiting
from lessor.model.grant import Reach

DRAINED_AT_ONCE = 100


def test_a_task_whose_last_lease_isnt_drained_yet_waits_for_the_next_claim(yard: Yard) -> None:
    """A claim drains a bounded number of leases; more than that had ended before."""
    for n in range(DRAINED_AT_ONCE):
        yard.add("done", scopes=(f"done/{n}",))
    done = yard.claim(wanted=DRAINED_AT_ONCE)
    again = yard.running("again", priority=1)
    yard.lessor.leases.complete([(grant.holder, yard.result()) for grant in done])
    yard.lessor.leases.release(again.holder)
    yard.add("other", scopes=("other",))
    assert yard.claim_one().title == "other"
    assert yard.claim_one().task == again.task


def test_a_late_write_to_its_last_lease_keeps_no_task_from_the_next_claim(
    make_store: MakeStore,
) -> None:
    """A lease's row that somebody has locked is passed over by the drain: that isn't nothing to claim."""
    store = make_store("postgres")
    yard = Yard(store, store.connect())
    grant = yard.running("src")
    waits = yard.add("waits", scopes=("src/a",))
    yard.complete(grant)
    with ThreadPoolExecutor(4) as aside, store.raw() as late:
        late.autocommit = False
        late.execute("SELECT 1 FROM lease FOR UPDATE")
        claims = [aside.submit(yard.claim), aside.submit(yard.claim, repository=Reach.ANYWHERE)]
        until_waiting(yard, len(claims))
        # Nobody else of the repository is kept waiting for the late writer.
        free = yard.add("beside", scopes=("docs",), priority=1)
        assert yard.claim_one().task == free.task
        late.rollback()
        got = [one.task for claim in claims for one in claim.result(timeout=30)]
    assert got == [waits.task]
