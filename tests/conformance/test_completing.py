"""Completion: taken once from the live holder; everything later is evidence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import TTL, Yard, zombie
from lessor.errors import LeaseLostError
from lessor.model.grant import Failure, Reach, Result
from lessor.model.task import Stage


def test_a_completion_keeps_the_result_and_ends_the_task(yard: Yard) -> None:
    grant = yard.running("a")
    result = Result(
        stage=Stage.VERIFIED,
        said="fixed it",
        base="b" * 40,
        commit="c" * 40,
        facts={"cost": 1.5, "n": 3},
    )
    ended = yard.lessor.leases.complete_one(grant.holder, result)
    assert (ended.end, ended.state, ended.repeated) == ("completed", "succeeded", False)
    task = yard.lessor.tasks.task(grant.task)
    assert (task.state, task.stage) == ("succeeded", "verified")
    assert (task.said, task.base, task.commit) == ("fixed it", "b" * 40, "c" * 40)
    assert task.finished_ms == yard.lessor.now_ms()
    lease = yard.lessor.leases.lease(grant.lease)
    assert lease.result == result
    assert not lease.live


def test_a_repeated_completion_gets_the_same_answer(yard: Yard) -> None:
    grant = yard.running("a")
    first = yard.complete(grant)
    yard.store.advance(10 * TTL)
    again = yard.complete(grant)
    assert again.repeated
    assert (again.lease, again.task, again.end, again.state) == (
        first.lease,
        first.task,
        first.end,
        first.state,
    )
    assert yard.kinds(grant.task).count("completed") == 1
    assert "late" not in yard.kinds(grant.task)


def test_of_two_clones_of_a_holder_only_the_one_that_renewed_last_can_end_the_lease(
    yard: Yard,
) -> None:
    grant = yard.running("a")
    renewed = yard.lessor.leases.renew_one(grant.holder)
    for late in (
        lambda: yard.complete(grant),
        lambda: yard.lessor.leases.fail(grant.holder, Failure(error="stale")),
        lambda: yard.lessor.leases.release(grant.holder),
        lambda: yard.lessor.leases.ask(grant.holder, "stale?"),
    ):
        error = yard.refused(late)
        assert (error.code, "changed meanwhile" in str(error)) == ("lease_lost", True)
    newest = replace(grant.holder, version=renewed.version)
    yard.lessor.leases.complete_one(newest, Result(said="the newest"))
    assert yard.lessor.tasks.task(grant.task).said == "the newest"


def test_a_second_completion_with_another_result_is_evidence(yard: Yard) -> None:
    grant = yard.running("a")
    yard.complete(grant, said="the first")
    error = yard.refused(lambda: yard.complete(grant, said="another"))
    assert error.code == "lease_lost"
    assert "it was completed" in str(error)
    assert error.facts["kept"] is True
    assert yard.lessor.tasks.task(grant.task).said == "the first"
    late = yard.lessor.tasks.history(grant.task)[-1]
    assert (late.kind, late.epoch) == ("late", 1)
    assert "another" in late.facts["body"]


def test_a_complete_with_a_stale_epoch_is_refused(yard: Yard) -> None:
    old = yard.running("a")
    yard.store.advance(TTL)
    new = yard.claim_one(worker=yard.other.id)
    error = yard.refused(lambda: yard.complete(old, said="from the grave"))
    assert error.code == "lease_lost"
    assert error.facts["current_epoch"] == 2
    assert yard.state(old.task) == "running"
    late = yard.lessor.tasks.history(old.task)[-1]
    assert (late.kind, late.epoch, late.facts["current_epoch"]) == ("late", 1, 2)
    assert yard.complete(new).state == "succeeded"
    assert "from the grave" in yard.lessor.tasks.history(old.task)[-2].facts["body"]


@pytest.mark.parametrize("part", ["token", "worker", "epoch"])
def test_only_the_holder_completes(yard: Yard, part: str) -> None:
    grant = yard.running("a")
    wrong = {"token": "f" * 64, "worker": yard.other.id, "epoch": grant.epoch + 1}[part]
    error = yard.refused(
        lambda: yard.lessor.leases.complete_one(zombie(grant.holder, **{part: wrong}), Result())
    )
    assert error.code == "lease_lost"
    assert yard.state(grant.task) == "running"


def test_a_lease_id_alone_is_no_authority(yard: Yard) -> None:
    grant = yard.running("a")
    forged = zombie(grant.holder, token=grant.lease, lease=grant.lease)
    assert (
        yard.refused(lambda: yard.lessor.leases.complete_one(forged, Result())).code == "lease_lost"
    )


def test_a_list_is_answered_item_by_item(yard: Yard) -> None:
    good, bad, other = (yard.running(name) for name in "abc")
    answers = yard.lessor.leases.complete(
        [
            (good.holder, yard.result()),
            (zombie(bad.holder, token="0" * 64), yard.result(said="lost")),
            (other.holder, yard.result()),
        ]
    )
    assert [getattr(answer, "state", None) for answer in answers] == [
        "succeeded",
        None,
        "succeeded",
    ]
    assert isinstance(answers[1], LeaseLostError)
    assert [yard.state(g.task) for g in (good, bad, other)] == ["succeeded", "running", "succeeded"]
    assert yard.kinds(bad.task)[-1] == "late"
    assert yard.lessor.leases.complete([]) == []


def test_a_list_that_names_a_lease_twice_is_answered_in_turn(yard: Yard) -> None:
    grant = yard.running("a")
    first, again, other = yard.lessor.leases.complete(
        [
            (grant.holder, yard.result()),
            (grant.holder, yard.result()),
            (grant.holder, yard.result(said="no")),
        ]
    )
    assert (first.repeated, again.repeated) == (False, True)
    assert isinstance(other, LeaseLostError)
    assert yard.kinds(grant.task) == ["submitted", "claimed", "completed", "late"]


def test_a_completion_frees_every_dependent_once(yard: Yard) -> None:
    first, second = yard.add("first"), yard.add("second")
    yard.add("either", needs=(first.task,))
    yard.add("both", needs=(first.task, second.task))
    grants = yard.claim(wanted=9)
    assert yard.titles(grants) == ["first", "second"]
    yard.lessor.leases.complete([(g.holder, yard.result()) for g in grants])
    yard.complete(grants[0])
    assert yard.titles(yard.claim(wanted=9)) == ["either", "both"]


def test_a_cancelled_holder_is_told_why(yard: Yard) -> None:
    grant = yard.running("a")
    yard.lessor.tasks.cancel([grant.task], actor="ada", reason="not needed")
    error = yard.refused(lambda: yard.complete(grant))
    assert "a person cancelled the task" in str(error)
    assert error.facts["end_reason"] == "cancelled"
    assert yard.state(grant.task) == "cancelled"
    assert yard.kinds(grant.task)[-1] == "late"


def test_completing_and_claiming_is_one_call(yard: Yard) -> None:
    first = yard.running("src")
    yard.add("next", scopes=("src/a",))
    (ended,), (grant,) = yard.lessor.leases.complete_and_claim(
        [(first.holder, yard.result())], yard.request()
    )
    assert (ended.state, grant.title, grant.fence) == ("succeeded", "next", 2)


def test_completing_and_claiming_works_without_a_repository(yard: Yard) -> None:
    yard.add("first", free=True)
    (first,) = yard.claim_free()
    yard.add("next", free=True)
    (ended,), (grant,) = yard.lessor.leases.complete_and_claim(
        [(first.holder, yard.result())], yard.request(repository=Reach.NO_REPOSITORY)
    )
    assert (ended.state, grant.title) == ("succeeded", "next")


def test_a_refused_completion_doesnt_keep_the_claim_from_being_made(yard: Yard) -> None:
    first = yard.running("src")
    yard.add("next", scopes=("docs",))
    (lost,), (grant,) = yard.lessor.leases.complete_and_claim(
        [(zombie(first.holder, token="0" * 64), yard.result())], yard.request()
    )
    assert isinstance(lost, LeaseLostError)
    assert grant.title == "next"
    assert yard.kinds(first.task)[-1] == "late"


def test_completing_and_claiming_again_gets_the_same_answers(yard: Yard) -> None:
    first = yard.running("src")
    for n in range(3):
        yard.add(f"next {n}", scopes=(f"src/{n}",))
    items, request = [(first.holder, yard.result())], yard.request()
    (_,), (grant,) = yard.lessor.leases.complete_and_claim(items, request)
    (ended,), (again,) = yard.lessor.leases.complete_and_claim(items, request)
    assert ended.repeated
    assert again == grant
    assert len(yard.lessor.leases.leases(live=True)) == 1


def test_completing_and_claiming_again_finds_the_grant_when_nothing_is_left(yard: Yard) -> None:
    first = yard.running("src")
    yard.add("the only one", scopes=("src/0",))
    items, request = [(first.holder, yard.result())], yard.request()
    _, (grant,) = yard.lessor.leases.complete_and_claim(items, request)
    _, (again,) = yard.lessor.leases.complete_and_claim(items, request)
    assert again.holder == grant.holder


def test_completing_and_claiming_needs_one_place_to_claim_in(yard: Yard) -> None:
    first = yard.running("src")
    before = yard.store.contents()
    request = yard.request(repository=Reach.ANYWHERE)
    error = yard.refused(
        lambda: yard.lessor.leases.complete_and_claim([(first.holder, yard.result())], request)
    )
    assert error.code == "invalid"
    assert yard.store.contents() == before


def test_completing_and_claiming_isnt_told_as_repeated_where_a_branch_was_taken(yard: Yard) -> None:
    """The completion is written in one transaction, and the claim that goes on in a later one."""
    first = yard.running("src")
    soon = timedelta(seconds=1)
    many = [yard.asked(f"n {n}", queue="other", delay=soon) for n in range(40)]
    yard.lessor.tasks.submit(many)
    following = yard.add("next", delay=2 * soon)
    taken = f"{str(first.branch).partition('/')[0]}/{following.number}-next"
    yard.add("takes its name", queue="other", branch=taken)
    yard.store.advance(3_000)
    (ended,), (grant,) = yard.lessor.leases.complete_and_claim(
        [(first.holder, yard.result())], yard.request()
    )
    assert grant.task == following.task
    assert grant.branch == f"{taken}-2"
    assert not ended.repeated
