"""What people and witnesses decide: cancel, block, requeue, release by force, proof of death."""

from __future__ import annotations

import pytest

from builders import TTL, Yard, zombie
from lessor.model.grant import Reach


def test_a_cancel_revokes_the_lease_at_once(yard: Yard) -> None:
    grant = yard.running("src")
    yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    (decided,) = yard.lessor.tasks.cancel([grant.task], actor="ada", reason="not needed")
    assert (decided.task, decided.state) == (grant.task, "cancelled")
    error = yard.refused(lambda: yard.lessor.leases.renew_one(grant.holder))
    assert error.facts["end_reason"] == "cancelled"
    assert "a person cancelled the task" in str(error)
    assert yard.lessor.leases.watch(grant.holder).end == "cancelled"
    assert yard.claim_one().title == "waits"
    last = yard.lessor.tasks.history(grant.task)[-1]
    assert (last.kind, last.facts["actor"], last.facts["reason"]) == (
        "cancelled",
        "ada",
        "not needed",
    )
    assert yard.lessor.tasks.task(grant.task).charged == 0


def test_the_holder_acknowledges_the_end_once(yard: Yard) -> None:
    grant = yard.running("src")
    error = yard.refused(lambda: yard.lessor.leases.acknowledge(grant.holder))
    assert error.code == "transition_refused"
    yard.lessor.tasks.cancel([grant.task])
    for holder in (zombie(grant.holder, token="0" * 64), zombie(grant.holder, epoch=2)):
        error = yard.refused(lambda h=holder: yard.lessor.leases.acknowledge(h))
        assert error.code == "lease_lost"
    assert yard.lessor.leases.acknowledge(grant.holder) == "cancelled"
    yard.store.advance(1_000)
    assert yard.lessor.leases.acknowledge(grant.holder) == "cancelled"
    assert yard.kinds(grant.task).count("acknowledged") == 1
    (acknowledged,) = yard.store.sql("SELECT acknowledged_ms FROM lease")
    assert acknowledged == (yard.lessor.now_ms() - 1_000,)


@pytest.mark.parametrize("free", [False, True])
def test_a_queued_task_is_cancelled_and_never_claimed(yard: Yard, free: bool) -> None:
    task = yard.add("work", free=free)
    yard.lessor.tasks.cancel([task.task])
    assert yard.claim(repository=Reach.ANYWHERE) == []
    assert yard.state(task.task) == "cancelled"


def test_a_waiting_task_is_cancelled_and_waits_no_more(yard: Yard) -> None:
    yard.running("src")
    task = yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    yard.lessor.tasks.cancel([task.task])
    assert yard.lessor.tasks.task(task.task).waiting_on is None


def test_finished_tasks_stay_finished(yard: Yard) -> None:
    grant = yard.running("src")
    yard.complete(grant)
    before = yard.store.contents()
    for operation in (
        yard.lessor.tasks.cancel,
        yard.lessor.tasks.block,
        yard.lessor.tasks.unblock,
        yard.lessor.tasks.requeue,
    ):
        error = yard.refused(lambda o=operation: o([grant.task]))
        assert error.code == "transition_refused"
        assert error.next_step == "It is finished."
    assert (
        yard.refused(lambda: yard.lessor.tasks.answer(grant.task, "no")).code
        == "transition_refused"
    )
    assert yard.store.contents() == before


def test_a_list_is_decided_all_or_nothing(yard: Yard) -> None:
    running, done = yard.running("a"), yard.running("b")
    yard.complete(done)
    queued = yard.add("queued")
    before = yard.store.contents()
    tasks = [running.task, queued.task, done.task]
    assert yard.refused(lambda: yard.lessor.tasks.cancel(tasks)).code == "transition_refused"
    assert yard.store.contents() == before
    decided = yard.lessor.tasks.cancel([queued.task, running.task, queued.task])
    assert [d.task for d in decided] == [queued.task, running.task]
    assert [yard.state(t) for t in tasks] == ["cancelled", "cancelled", "succeeded"]
    assert yard.lessor.tasks.cancel([]) == []


def test_a_blocked_task_isnt_claimed_until_it_is_unblocked(yard: Yard) -> None:
    task = yard.add("work")
    yard.lessor.tasks.block([task.task], actor="ada", reason="wait for legal")
    assert yard.claim() == []
    yard.lessor.tasks.unblock([task.task])
    assert yard.claim_one().task == task.task
    assert yard.kinds(task.task) == ["submitted", "blocked", "unblocked", "claimed"]


def test_blocking_a_running_task_ends_its_lease_uncharged(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.tasks.block([grant.task])
    assert yard.refused(lambda: yard.complete(grant)).code == "lease_lost"
    task = yard.lessor.tasks.task(grant.task)
    assert (task.state, task.charged) == ("blocked", 0)
    yard.add("waits", scopes=("src/a",))
    assert yard.claim_one().title == "waits"


def test_a_requeue_forgets_the_attempts_and_adds_to_the_prompt(yard: Yard) -> None:
    task = yard.add("work", max_attempts=1, prompt="Do it.")
    yard.fail(yard.claim_one())
    assert yard.state(task.task) == "quarantined"
    yard.lessor.tasks.requeue([task.task], actor="ada", addition="Use the other API.")
    assert yard.lessor.tasks.task(task.task).charged == 0
    grant = yard.claim_one()
    assert (grant.epoch, grant.prompt) == (2, "Do it.\n\nUse the other API.")
    assert yard.fail(grant).state == "quarantined"


def test_a_forced_release_is_a_persons_with_what_they_checked(yard: Yard) -> None:
    grant = yard.running("src")
    for words in ({"reason": "", "checked": "ps"}, {"reason": "hung", "checked": " "}):
        error = yard.refused(
            lambda w=words: yard.lessor.leases.force_release(grant.task, actor="ada", **w)
        )
        assert error.code == "invalid"
    decided = yard.lessor.leases.force_release(
        grant.task, actor="ada", reason="hung", checked="no process on the host"
    )
    assert decided.state == "queued"
    assert yard.refused(lambda: yard.complete(grant)).facts["end_reason"] == "forced"
    entry = next(e for e in yard.lessor.tasks.history(grant.task) if e.kind == "forced")
    assert entry.facts["checked"] == "no process on the host"
    assert yard.claim_one().epoch == 2
    assert yard.lessor.tasks.task(grant.task).charged == 0


def test_nothing_is_released_by_force_where_nobody_holds(yard: Yard) -> None:
    task = yard.add("queued")
    error = yard.refused(
        lambda: yard.lessor.leases.force_release(task.task, actor="a", reason="b", checked="c")
    )
    assert error.code == "transition_refused"


def test_a_proof_of_death_ends_the_lease_at_once_and_costs_nothing(yard: Yard) -> None:
    grant = yard.running("src", max_attempts=1)
    decided = yard.lessor.leases.end_gone(grant.task, epoch=1, proof="pid 7 is gone")
    assert decided.state == "queued"
    (lease,) = yard.lessor.leases.leases(task=grant.task)
    assert (lease.end, lease.proof) == ("gone", "pid 7 is gone")
    assert yard.lessor.tasks.task(grant.task).charged == 0
    assert yard.refused(lambda: yard.complete(grant)).facts["end_reason"] == "gone"


def test_a_proof_is_about_one_epoch(yard: Yard) -> None:
    old = yard.running("src")
    yard.store.advance(TTL)
    new = yard.claim_one()
    error = yard.refused(lambda: yard.lessor.leases.end_gone(old.task, epoch=1, proof="gone"))
    assert error.code == "transition_refused"
    assert yard.lessor.leases.watch(new.holder).live


def test_a_proof_that_comes_before_the_lapse_is_recorded_costs_nothing(yard: Yard) -> None:
    grant = yard.running("src", max_attempts=1)
    yard.store.advance(TTL + 5)
    yard.lessor.leases.end_gone(grant.task, epoch=1, proof="gone before anybody claimed")
    assert yard.lessor.tasks.task(grant.task).charged == 0
    assert yard.claim_one().epoch == 2
