"""Failures: what is retried, when, and what a person has to look at."""

from __future__ import annotations

import pytest

from builders import TTL, StoreUnderTest, Yard
from lessor.model.grant import Result
from lessor.model.retry import RetryPolicy


def test_a_failure_is_retried_after_a_delay(yard: Yard) -> None:
    grant = yard.running("a")
    ended = yard.fail(grant)
    assert (ended.end, ended.state, ended.rule) == ("failed", "queued", "workspace")
    delay = ended.run_at_ms - yard.lessor.now_ms()
    assert 5_000 <= delay <= 10_000
    assert yard.claim() == []
    yard.store.advance(delay - 1)
    assert yard.claim() == []
    yard.store.advance(1)
    again = yard.claim_one()
    assert (again.task, again.epoch, again.attempts) == (grant.task, 2, 2)


def test_delays_grow_with_each_failure_up_to_the_ceiling(store: StoreUnderTest) -> None:
    policy = RetryPolicy(first_ms=1_000, factor=10, ceiling_ms=50_000, same_error_limit=99)
    yard = Yard(store, store.connect(policy=policy))
    yard.add("work", max_attempts=9)
    for low, high in ((500, 1_000), (5_000, 10_000), (25_000, 50_000), (25_000, 50_000)):
        ended = yard.fail(yard.claim_one(), error=f"error {low}")
        delay = ended.run_at_ms - yard.lessor.now_ms()
        assert low <= delay <= high
        yard.store.advance(delay)


def test_a_failed_task_frees_its_paths_at_once(yard: Yard) -> None:
    grant = yard.running("src")
    yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    yard.fail(grant)
    assert yard.claim_one().title == "waits"


def test_the_same_error_again_and_again_ends_in_quarantine(yard: Yard) -> None:
    task = yard.add("work", max_attempts=99)
    for n in range(3):
        ended = yard.fail(yard.claim_one(), error=f"line {n}: no such file", fingerprint="ENOENT")
        yard.store.advance(3_600_000)
    assert (ended.state, ended.rule) == ("quarantined", "spent")
    assert yard.claim() == []
    assert yard.lessor.tasks.task(task.task).last_error == "line 2: no such file"


def test_another_error_in_between_begins_the_count_anew(yard: Yard) -> None:
    yard.add("work", max_attempts=99)
    for error in ("a", "a", "b", "a", "a"):
        assert yard.fail(yard.claim_one(), error=error).state == "queued"
        yard.store.advance(3_600_000)
    assert yard.fail(yard.claim_one(), error="a").state == "quarantined"


@pytest.mark.parametrize("between", ["release", "lapse"])
def test_an_end_that_is_no_failure_doesnt_forget_the_errors_before(
    yard: Yard, between: str
) -> None:
    yard.add("work", max_attempts=99)
    for _ in range(2):
        yard.fail(yard.claim_one(), error="same")
        yard.store.advance(3_600_000)
    grant = yard.claim_one()
    if between == "release":
        yard.lessor.leases.release(grant.holder)
    else:
        yard.store.advance(TTL)
    assert yard.fail(yard.claim_one(), error="same").state == "quarantined"


def test_spent_attempts_end_in_quarantine(yard: Yard) -> None:
    yard.add("work", max_attempts=2)
    assert yard.fail(yard.claim_one(), error="one").state == "queued"
    yard.store.advance(3_600_000)
    assert yard.fail(yard.claim_one(), error="two").state == "quarantined"


def test_a_failure_for_good_ends_the_task(yard: Yard) -> None:
    grant = yard.running("a")
    ended = yard.fail(grant, retry=False, result=Result(said="can't be done"))
    assert (ended.state, ended.rule, ended.run_at_ms) == ("failed", "failed for good", None)
    task = yard.lessor.tasks.task(grant.task)
    assert (task.last_error, task.said) == ("boom", "can't be done")
    assert task.finished_ms is not None


def test_a_missing_credential_blocks_until_it_is_repaired(yard: Yard) -> None:
    grant = yard.running("a", max_attempts=1)
    ended = yard.fail(grant, credential=True)
    assert (ended.state, ended.rule) == ("blocked", "credential missing")
    yard.store.advance(24 * 3_600_000)
    assert yard.claim() == []
    yard.lessor.tasks.unblock([grant.task], actor="ada", reason="new key")
    assert yard.claim_one().task == grant.task


def test_a_repeated_failure_gets_the_same_answer(yard: Yard) -> None:
    grant = yard.running("a")
    first = yard.fail(grant)
    again = yard.fail(grant)
    assert again.repeated
    assert (again.lease, again.end, again.state) == (first.lease, first.end, first.state)
    assert yard.kinds(grant.task) == ["submitted", "claimed", "failed"]
    assert yard.lessor.tasks.task(grant.task).charged == 1
    other = yard.refused(lambda: yard.fail(grant, error="another"))
    assert other.code == "lease_lost"
    assert yard.kinds(grant.task)[-1] == "late"


def test_a_release_spends_no_attempt_and_is_ready_at_once(yard: Yard) -> None:
    grant = yard.running("a", max_attempts=1)
    ended = yard.lessor.leases.release(grant.holder, reason="the provider's limit")
    assert (ended.end, ended.state) == ("released", "queued")
    assert yard.lessor.leases.release(grant.holder, reason="the provider's limit").repeated
    again = yard.claim_one()
    assert (again.epoch, again.attempts) == (2, 2)
    assert yard.lessor.tasks.task(grant.task).charged == 0


def test_a_late_failure_is_kept_as_evidence(yard: Yard) -> None:
    grant = yard.running("a")
    yard.store.advance(TTL)
    new = yard.claim_one()
    assert yard.refused(lambda: yard.fail(grant, error="too late")).code == "lease_lost"
    assert yard.lessor.leases.watch(new.holder).live
    late = yard.lessor.tasks.history(grant.task)[-1]
    assert (late.kind, late.facts["verb"]) == ("late", "failed")
    assert "too late" in late.facts["body"]
