"""Fence references and publish intents as the store keeps them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import TTL, Yard, zombie
from lessor.errors import (
    ConstraintError,
    InvalidError,
    LeaseLostError,
    NotFoundError,
    TransitionRefusedError,
)
from lessor.model.grant import Failure, Grant
from lessor.model.intent import UNDER_WAY_MS, Outcome, Publish
from lessor.model.task import Effects
from lessor.service.fences import FenceState

A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)
PUSH = Publish(remote="origin", ref="refs/heads/ai/1-x", old=None, new=A)
FENCED = replace(PUSH, fence=B, next_fence=C)


def fenced(yard: Yard, **more: bool) -> None:
    yard.lessor.registry.set_fence_remote(yard.repository.id, "origin", **more)


def ready(yard: Yard, grant: Grant) -> None:
    yard.lessor.fences.announce(grant.holder, remote="origin", oid=B)
    yard.lessor.fences.opened(grant.holder, remote="origin", oid=B)


def announce(yard: Yard, grant: Grant, publish: Publish = PUSH) -> int:
    return yard.lessor.intents.announce(grant.holder, publish, secret="sesame")


def unsettled(yard: Yard) -> list[int]:
    return [intent.id for intent in yard.lessor.intents.unsettled(yard.repository.id)]


def stale(yard: Yard, grant: Grant) -> list[Grant]:
    """The grant with something of its proof changed, each in another way."""
    changes = [{"token": "another"}, {"epoch": 7}, {"worker": yard.other.id}]
    return [replace(grant, holder=zombie(grant.holder, **change)) for change in changes]


def test_nothing_is_pushed_of_a_task_without_a_repository(yard: Yard) -> None:
    yard.add(free=True)
    (grant,) = yard.claim_free()
    before = yard.store.contents()
    with pytest.raises(InvalidError, match="no repository"):
        announce(yard, grant)
    with pytest.raises(InvalidError, match="no repository"):
        yard.lessor.fences.announce(grant.holder, remote="origin", oid=B)
    assert yard.store.contents() == before


def test_a_repository_is_fenced_at_one_remote_or_at_none(yard: Yard) -> None:
    registry = yard.lessor.registry
    assert yard.repository.fence_remote is None
    registry.set_fence_remote(yard.repository.id, "origin", unfenced=True)
    known = registry.repository(yard.repository.id)
    assert (known.fence_remote, known.unfenced) == ("origin", True)
    assert registry.repositories() == [known]
    registry.set_fence_remote(yard.repository.id, None)
    known = registry.repository(yard.repository.id)
    assert (known.fence_remote, known.unfenced) == (None, False)


@pytest.mark.parametrize(
    ("remote", "kept"),
    [
        ("https://dana:hunter2@host/a.git", False),
        ("https://token@host/a.git", False),
        ("ssh://git:pw@host/a.git", False),
        ("ssh://git@host/a.git", True),
        ("git@host:a.git", True),
        ("https://host/a@b.git", True),
    ],
)
def test_a_remotes_credentials_never_get_into_the_store(
    yard: Yard, remote: str, *, kept: bool
) -> None:
    registry = yard.lessor.registry
    if kept:
        assert registry.set_fence_remote(yard.repository.id, remote).fence_remote == remote
        return
    refusal = yard.refused(lambda: registry.set_fence_remote(yard.repository.id, remote))
    assert isinstance(refusal, InvalidError)
    assert registry.repository(yard.repository.id).fence_remote is None


def test_a_fence_reference_is_on_record_before_it_is_made(yard: Yard) -> None:
    grant = yard.running("src")
    fences = yard.lessor.fences
    assert fences.at(grant.lease, "origin") is None
    made = fences.announce(grant.holder, remote="origin", oid=B)
    assert (made.lease, made.oid, made.state) == (grant.lease, B, FenceState.OPENING)
    assert fences.unclosed(yard.repository.id) == []
    yard.lessor.leases.release(grant.holder)
    assert fences.unclosed(yard.repository.id) == [made]


def test_announcing_again_keeps_what_is_open(yard: Yard) -> None:
    grant = yard.running("src")
    ready(yard, grant)
    again = yard.lessor.fences.announce(grant.holder, remote="origin", oid=D)
    assert (again.oid, again.state) == (B, FenceState.OPEN)
    elsewhere = yard.lessor.fences.announce(grant.holder, remote="mirror", oid=D)
    assert (elsewhere.oid, elsewhere.state) == (D, FenceState.OPENING)


def test_only_the_last_try_to_make_a_reference_opens_it(yard: Yard) -> None:
    """What an earlier one has sent may arrive at any time: no push may expect it."""
    grant = yard.running("src")
    fences = yard.lessor.fences
    fences.announce(grant.holder, remote="origin", oid=B)
    made = fences.announce(grant.holder, remote="origin", oid=D)
    assert (made.oid, made.state) == (D, FenceState.OPENING)
    with pytest.raises(TransitionRefusedError, match="Another process"):
        fences.opened(grant.holder, remote="origin", oid=B)
    assert fences.at(grant.lease, "origin") == made
    with pytest.raises(TransitionRefusedError):
        fences.opened(grant.holder, remote="mirror", oid=D)
    opened = fences.opened(grant.holder, remote="origin", oid=D)
    assert (opened.oid, opened.state) == (D, FenceState.OPEN)
    assert fences.opened(grant.holder, remote="origin", oid=B) == opened


def test_only_a_live_holder_is_made_ready(yard: Yard) -> None:
    grant = yard.running("src")
    fences = yard.lessor.fences
    fences.announce(grant.holder, remote="origin", oid=B)
    for other in stale(yard, grant):
        with pytest.raises(LeaseLostError):
            fences.announce(other.holder, remote="origin", oid=D)
        with pytest.raises(LeaseLostError):
            fences.opened(other.holder, remote="origin", oid=D)
    yard.store.advance(TTL)
    with pytest.raises(LeaseLostError):
        fences.opened(grant.holder, remote="origin", oid=B)
    found = fences.at(grant.lease, "origin")
    assert found is not None
    assert (found.oid, found.state) == (B, FenceState.OPENING)


def test_a_live_leases_reference_is_never_recorded_as_closed(yard: Yard) -> None:
    grant = yard.running("src")
    fences = yard.lessor.fences
    ready(yard, grant)
    fences.closed([grant.lease], remote="origin")
    found = fences.at(grant.lease, "origin")
    assert found is not None
    assert found.state is FenceState.OPEN
    yard.complete(grant)
    fences.closed([grant.lease], remote="mirror")
    assert len(fences.unclosed(yard.repository.id)) == 1
    fences.closed([grant.lease], remote="origin")
    assert fences.unclosed(yard.repository.id) == []


@pytest.mark.breaks_rules
def test_a_closed_reference_stays_closed(yard: Yard) -> None:
    grant = yard.running("src")
    ready(yard, grant)
    yard.complete(grant)
    yard.lessor.fences.closed([grant.lease], remote="origin")
    with pytest.raises(Exception, match="fence_ref_stays_closed"):
        yard.store.sql("UPDATE fence_ref SET state = 'open'")


def test_a_publish_is_announced_and_settled_by_its_holder(yard: Yard) -> None:
    grant = yard.running("src")
    intents = yard.lessor.intents
    number = announce(yard, grant)
    (found,) = intents.of_task(grant.task)
    assert (found.id, found.publish, found.outcome, found.over) == (number, PUSH, None, False)
    intents.settle(grant.holder, number, Outcome.DONE, response="taken")
    (found,) = intents.of_task(grant.task)
    assert (found.outcome, found.response) == (Outcome.DONE, "taken")
    assert yard.kinds(grant.task)[-2:] == ["publishing", "published"]
    assert announce(yard, grant) > number


def test_a_publish_is_shown_by_its_secret_alone(yard: Yard) -> None:
    grant = yard.running("src")
    number = announce(yard, grant)
    shown = yard.lessor.intents.shown(number, "sesame")
    assert shown is not None
    assert shown.lease == grant.lease
    assert yard.lessor.intents.shown(number, "another") is None
    assert yard.lessor.intents.shown(number + 1, "sesame") is None
    assert "sesame" not in str(yard.store.sql("SELECT * FROM intent"))


def test_only_the_live_holder_announces_and_settles(yard: Yard) -> None:
    grant = yard.running("src")
    for other in stale(yard, grant):
        with pytest.raises(LeaseLostError):
            announce(yard, other)
    number = announce(yard, grant)
    for other in stale(yard, grant):
        with pytest.raises(LeaseLostError):
            yard.lessor.intents.settle(other.holder, number, Outcome.FAILED)
    yard.store.advance(TTL)
    with pytest.raises(LeaseLostError):
        yard.lessor.intents.settle(grant.holder, number, Outcome.DONE)
    assert yard.lessor.intents.of_task(grant.task)[0].outcome is None


def test_nobody_settles_anothers_publish(yard: Yard) -> None:
    grant, other = yard.running("src"), yard.running("docs")
    number = announce(yard, grant)
    with pytest.raises(NotFoundError):
        yard.lessor.intents.settle(other.holder, number, Outcome.DONE)
    with pytest.raises(TransitionRefusedError):
        yard.lessor.intents.recover(number, Outcome.DONE, response="guessed")
    assert yard.lessor.intents.of_task(grant.task)[0].outcome is None


def test_a_lease_has_one_unsettled_publish(yard: Yard) -> None:
    grant = yard.running("src")
    announce(yard, grant)
    with pytest.raises(TransitionRefusedError, match="last push"):
        announce(yard, grant)
    assert len(yard.lessor.intents.of_task(grant.task)) == 1


def test_a_lease_that_isnt_ready_announces_no_publish(yard: Yard) -> None:
    fenced(yard)
    grant = yard.running("src")
    for publish in (PUSH, FENCED):
        with pytest.raises(TransitionRefusedError, match="isn't ready"):
            announce(yard, grant, publish)
    yard.lessor.fences.announce(grant.holder, remote="origin", oid=B)
    with pytest.raises(TransitionRefusedError, match="isn't ready"):
        announce(yard, grant, FENCED)
    ready(yard, grant)
    announce(yard, grant, FENCED)


@pytest.mark.parametrize(
    "publish",
    [
        PUSH,
        replace(FENCED, next_fence=B),
        replace(FENCED, next_fence=None),
        replace(FENCED, remote="fork"),
    ],
    ids=["no fence", "a fence that stays", "a fence that goes", "another remote"],
)
def test_a_push_that_its_fence_wouldnt_compare_is_refused(yard: Yard, publish: Publish) -> None:
    fenced(yard)
    grant = yard.running("src")
    ready(yard, grant)
    with pytest.raises(TransitionRefusedError, match="isn't ready"):
        announce(yard, grant, publish)


def test_the_next_push_goes_on_from_where_the_fence_is(yard: Yard) -> None:
    fenced(yard)
    grant = yard.running("src")
    ready(yard, grant)
    number = announce(yard, grant, FENCED)
    yard.lessor.intents.settle(grant.holder, number, Outcome.DONE, fence=C)
    with pytest.raises(TransitionRefusedError, match=r"pushed to origin .* meanwhile"):
        announce(yard, grant, FENCED)
    number = announce(yard, grant, replace(FENCED, fence=C, next_fence=D))
    yard.lessor.intents.settle(grant.holder, number, Outcome.FAILED, response="refused")
    announce(yard, grant, replace(FENCED, fence=C, next_fence=A))


def test_a_slower_process_of_the_holder_never_takes_the_fence_back(yard: Yard) -> None:
    fenced(yard)
    grant = yard.running("src")
    ready(yard, grant)
    number = announce(yard, grant, FENCED)
    intents, fences = yard.lessor.intents, yard.lessor.fences
    intents.settle(grant.holder, number, Outcome.DONE, fence=D)
    intents.settle(grant.holder, number, Outcome.DONE, fence=C)
    assert fences.opened(grant.holder, remote="origin", oid=B).oid == D
    known = fences.at(grant.lease, "origin")
    assert known is not None
    assert known.oid == D


def test_paths_stay_taken_while_nobody_knows_what_became_of_a_push(yard: Yard) -> None:
    grant = yard.running("src")
    number = announce(yard, grant)
    waiting, free = yard.add("overlaps", scopes=["src/app"]), yard.add("free", scopes=["docs"])
    yard.store.advance(TTL)
    assert yard.titles(yard.claim(worker=yard.other.id, wanted=5)) == ["free"]
    assert yard.state(grant.task) == "reconciling"
    assert unsettled(yard) == [number]
    assert yard.claim() == []
    yard.lessor.intents.recover(number, Outcome.FAILED, response="asked")
    assert unsettled(yard) == []
    assert yard.titles(yard.claim()) == ["holds src"]
    assert yard.state(waiting.task) == "queued"
    assert yard.state(free.task) == "running"


@pytest.mark.parametrize("end", ["complete", "cancel", "release", "fail", "force"])
def test_whatever_ends_a_lease_its_unsettled_push_keeps_the_paths(yard: Yard, end: str) -> None:
    grant = yard.running("src")
    number = announce(yard, grant)
    other = yard.add("overlaps", scopes=["src"])
    leases = yard.lessor.leases
    {
        "complete": lambda: yard.complete(grant),
        "cancel": lambda: yard.lessor.tasks.cancel([grant.task]),
        "release": lambda: leases.release(grant.holder),
        "fail": lambda: yard.fail(grant),
        "force": lambda: leases.force_release(grant.task, actor="d", reason="r", checked="c"),
    }[end]()
    yard.store.advance(TTL)
    assert yard.claim(wanted=5) == []
    yard.lessor.intents.recover(number, Outcome.DONE, response="asked")
    granted = yard.claim(wanted=5)
    assert len(granted) == 1
    assert granted[0].task in {other.task, grant.task}


def test_a_task_without_a_scope_isnt_claimed_before_its_push_is_settled(yard: Yard) -> None:
    grant = yard.running()
    number = announce(yard, grant)
    yard.lessor.tasks.block([grant.task])
    yard.lessor.tasks.unblock([grant.task])
    assert yard.claim() == []
    yard.lessor.intents.recover(number, Outcome.DONE, response="asked")
    assert yard.claim_one().task == grant.task


def test_a_recovered_task_goes_where_the_rules_say(yard: Yard) -> None:
    grant = yard.running("src")
    number = announce(yard, grant)
    yard.store.advance(TTL)
    yard.lessor.leases.sweep()
    yard.lessor.intents.recover(number, Outcome.DONE, response="asked")
    assert yard.state(grant.task) == "queued"
    assert yard.kinds(grant.task)[-2:] == ["published", "recovered"]
    again = yard.claim_one()
    assert (again.task, again.epoch) == (grant.task, 2)
    yard.lessor.intents.recover(number, Outcome.FAILED, response="asked twice")
    assert yard.lessor.intents.of_task(grant.task)[0].outcome is Outcome.DONE


def test_a_recovered_task_that_is_spent_is_taken_out(yard: Yard) -> None:
    grant = yard.running("src", max_attempts=1)
    number = announce(yard, grant)
    yard.store.advance(TTL)
    yard.lessor.leases.sweep()
    yard.lessor.intents.recover(number, Outcome.FAILED, response="asked")
    assert yard.state(grant.task) == "quarantined"


@pytest.mark.parametrize(
    ("outcome", "effects"),
    [(Outcome.CONFLICT, Effects.WORKSPACE), (Outcome.DONE, Effects.UNDECLARED)],
)
def test_what_a_person_has_to_look_at_waits_for_one(
    yard: Yard, outcome: Outcome, effects: Effects
) -> None:
    grant = yard.running("src", effects=effects)
    number = announce(yard, grant)
    yard.store.advance(TTL)
    yard.lessor.leases.sweep()
    yard.lessor.intents.recover(number, outcome, response="asked")
    assert yard.state(grant.task) == "reconciling"
    assert yard.add("overlaps", scopes=["src"]).task == yard.claim_one().task


def test_a_push_that_failed_for_want_of_a_credential_blocks_its_task_once_it_is_known(
    yard: Yard,
) -> None:
    grant = yard.running("src")
    number = announce(yard, grant)
    yard.lessor.leases.fail(grant.holder, Failure(error="denied", credential=True))
    assert yard.state(grant.task) == "reconciling"
    yard.lessor.intents.recover(number, Outcome.FAILED, response="asked")
    assert yard.state(grant.task) == "blocked"


def test_failing_the_same_way_with_a_push_in_doubt_each_time_is_counted(yard: Yard) -> None:
    task = yard.add("a", scopes=["src"], max_attempts=10).task
    states = []
    for _ in range(3):
        grant = yard.claim_one(task=task)
        number = announce(yard, grant)
        yard.lessor.leases.fail(grant.holder, Failure(error="the remote hung up"))
        yard.lessor.intents.recover(number, Outcome.FAILED, response="asked")
        states.append(yard.state(task))
    assert states == ["queued", "queued", "quarantined"]


def test_a_cancelled_task_stays_cancelled_when_its_push_is_recovered(yard: Yard) -> None:
    grant = yard.running("src")
    number = announce(yard, grant)
    yard.lessor.tasks.cancel([grant.task])
    yard.lessor.intents.recover(number, Outcome.DONE, response="asked")
    assert yard.state(grant.task) == "cancelled"


@pytest.mark.breaks_rules
def test_what_is_settled_stays_settled(yard: Yard) -> None:
    grant = yard.running("src")
    number = announce(yard, grant)
    yard.lessor.intents.settle(grant.holder, number, Outcome.DONE)
    for change in ("outcome = 'failed'", "settled_ms = NULL, outcome = NULL"):
        with pytest.raises(Exception, match="intent_settles_once"):
            yard.store.sql(f"UPDATE intent SET {change}")
    announce(yard, grant)
    with pytest.raises(Exception, match="intent_deleted_only_when_terminal"):
        yard.store.sql("DELETE FROM intent")


def test_a_publish_that_cant_be_meant_is_refused(yard: Yard) -> None:
    grant = yard.running("src")
    for publish in (
        "main",
        replace(PUSH, ref=""),
        replace(PUSH, new="a\0b"),
        replace(PUSH, old=""),
    ):
        refusal = yard.refused(lambda publish=publish: announce(yard, grant, publish))
        assert isinstance(refusal, InvalidError)
    assert not isinstance(refusal, ConstraintError)
    assert yard.lessor.intents.of_task(grant.task) == []


def test_why_says_that_a_push_is_waited_for(yard: Yard) -> None:
    grant = yard.running("src")
    number = announce(yard, grant)
    behind = yard.add("overlaps", scopes=["src/app"])
    yard.store.advance(TTL)
    yard.claim(wanted=5)
    for words in ("for 14 m more it may still be under way", "waits until the remote was asked"):
        for task in (grant.task, behind.task):
            why = yard.lessor.tasks.why(task)
            assert words in why.sentence
            assert why.next_step == "lessor sweep-stale"
        yard.store.advance(UNDER_WAY_MS)
    yard.lessor.intents.recover(number, Outcome.CONFLICT, response="asked")
    assert "somebody has to look" in yard.lessor.tasks.why(grant.task).sentence
    assert "is about to be looked at" in yard.lessor.tasks.why(behind.task).sentence
