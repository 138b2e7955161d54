"""Every mutation can be sent again: the same request, the same answer, nothing written twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders import TTL, Yard
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Reach, Result
from lessor.model.lease import MANUAL_TERMS
from lessor.model.task import NewTask
from lessor.service.wish import Claim, token_of


def _over(
    operation: Callable[..., Any], yard: Yard, request: str, before: str = ""
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    task = yard.add("one", max_attempts=1).task
    if before == "block":
        yard.lessor.tasks.block([task])
    elif before == "quarantine":
        yard.fail(yard.claim_one())
    return (
        lambda: operation([task], actor="me", reason="because", request_id=request),
        lambda: operation([task], actor="me", reason="otherwise", request_id=request),
    )


def _answer(yard: Yard, request: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    grant = yard.running("src")
    yard.lessor.leases.ask(grant.holder, "which?")
    tasks = yard.lessor.tasks
    return (
        lambda: tasks.answer(grant.task, "left", actor="me", request_id=request),
        lambda: tasks.answer(grant.task, "right", actor="me", request_id=request),
    )


def _amend(yard: Yard, request: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    task, tasks = yard.add("before").task, yard.lessor.tasks
    return (
        lambda: tasks.amend(task, yard.asked("after"), actor="me", request_id=request),
        lambda: tasks.amend(task, yard.asked("other"), actor="me", request_id=request),
    )


def _force(yard: Yard, request: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    task, release = yard.running("src").task, yard.lessor.leases.force_release
    return (
        lambda: release(task, actor="me", reason="a", checked="b", request_id=request),
        lambda: release(task, actor="me", reason="a", checked="c", request_id=request),
    )


def _gone(yard: Yard, request: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    task, end = yard.running("src").task, yard.lessor.leases.end_gone
    return (
        lambda: end(task, epoch=1, proof="gone", actor="me", request_id=request),
        lambda: end(task, epoch=1, proof="other", actor="me", request_id=request),
    )


def _widen(yard: Yard, request: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    holder, widen = yard.running("src").holder, yard.lessor.leases.widen
    return (
        lambda: widen(holder, ["docs"], request_id=request),
        lambda: widen(holder, ["web"], request_id=request),
    )


REPEATED: dict[str, Callable[[Yard, str], tuple[Callable[[], Any], Callable[[], Any]]]] = {
    "submit": lambda y, r: (
        lambda: y.lessor.tasks.submit([NewTask(title="a")], submitter="me", request_id=r),
        lambda: y.lessor.tasks.submit([NewTask(title="b")], submitter="me", request_id=r),
    ),
    "cancel": lambda y, r: _over(y.lessor.tasks.cancel, y, r),
    "block": lambda y, r: _over(y.lessor.tasks.block, y, r),
    "unblock": lambda y, r: _over(y.lessor.tasks.unblock, y, r, "block"),
    "requeue": lambda y, r: _over(y.lessor.tasks.requeue, y, r, "quarantine"),
    "answer": _answer,
    "amend": _amend,
    "force_release": _force,
    "end_gone": _gone,
    "widen": _widen,
}


@pytest.mark.parametrize("operation", REPEATED)
def test_a_repeat_gets_the_same_answer_and_writes_nothing(yard: Yard, operation: str) -> None:
    once, other = REPEATED[operation](yard, new_request_id())
    first = once()
    yard.store.advance(5 * TTL)
    before = yard.store.contents()
    assert once() == first
    assert yard.store.contents() == before
    error = yard.refused(other)
    assert error.code == "request_reused"
    assert yard.store.contents() == before


@pytest.mark.breaks_rules
@pytest.mark.parametrize("operation", sorted(REPEATED.keys() - {"submit", "widen"}))
def test_a_refusal_isnt_kept_as_an_answer(yard: Yard, operation: str) -> None:
    """The same request can succeed later."""
    request = new_request_id()
    once, _ = REPEATED[operation](yard, request)
    yard.store.sql("UPDATE lease SET ended_ms = 1, end_reason = 'forced' WHERE ended_ms IS NULL")
    yard.store.sql(
        "UPDATE task SET status = 'succeeded', finished_ms = 1 WHERE status NOT IN ('failed', 'cancelled')"
    )
    assert yard.refused(once).code == "transition_refused"
    assert yard.store.sql("SELECT count(*) FROM request WHERE request_id = :r", r=request) == [(0,)]


def test_a_force_release_that_is_sent_again_spares_the_next_holder(yard: Yard) -> None:
    once, _ = REPEATED["force_release"](yard, new_request_id())
    once()
    following = yard.claim_one()
    once()
    assert yard.lessor.leases.watch(following.holder).live


@pytest.mark.parametrize("place", ["here", Reach.NO_REPOSITORY, Reach.ANYWHERE])
def test_a_repeated_claim_gets_the_same_grant_with_what_is_left(yard: Yard, place: str) -> None:
    free = place is Reach.NO_REPOSITORY
    for n in range(3):
        yard.add(f"task {n}", free=free, **({} if free else {"scopes": (f"d{n}",)}))
    request = yard.request(**({} if place == "here" else {"repository": place}))
    (first,) = yard.lessor.leases.claim(request)
    yard.store.advance(10_000)
    before = yard.store.contents()
    (again,) = yard.lessor.leases.claim(request)
    assert again == replace(first, ttl_ms=first.ttl_ms - 10_000)
    assert again.holder.token == first.holder.token
    assert yard.store.contents() == before
    # Its token is good, from whichever process it comes.
    elsewhere = yard.store.connect().leases.claim(request)
    assert elsewhere[0].holder == first.holder
    yard.lessor.leases.complete_one(elsewhere[0].holder, yard.result())


def test_a_repeated_claim_finds_its_grant_when_nothing_else_is_left(yard: Yard) -> None:
    yard.add("only")
    request = yard.request()
    (first,) = yard.lessor.leases.claim(request)
    (again,) = yard.lessor.leases.claim(request)
    assert again.holder == first.holder


def test_a_repeat_after_a_renewal_has_the_current_version(yard: Yard) -> None:
    yard.add("only")
    request = yard.request()
    (first,) = yard.lessor.leases.claim(request)
    yard.lessor.leases.renew_one(first.holder)
    (again,) = yard.lessor.leases.claim(request)
    assert again.holder.version == 2
    yard.lessor.leases.renew_one(again.holder)


def test_an_empty_answer_isnt_kept(yard: Yard) -> None:
    request = yard.request()
    assert yard.lessor.leases.claim(request) == []
    yard.add("now")
    assert len(yard.lessor.leases.claim(request)) == 1


@pytest.mark.parametrize("end", ["complete", "lapse", "cancel"])
@pytest.mark.parametrize("more", [False, True])
def test_a_repeat_of_a_claim_whose_grant_is_over_never_grants_again(
    yard: Yard, end: str, more: bool
) -> None:
    yard.add("work", max_attempts=1)
    request = yard.request()
    (grant,) = yard.lessor.leases.claim(request)
    match end:
        case "complete":
            yard.complete(grant)
        case "cancel":
            yard.lessor.tasks.cancel([grant.task])
        case _:
            yard.store.advance(TTL)
    if more:
        yard.add("more", scopes=("elsewhere",))
    error = yard.refused(lambda: yard.lessor.leases.claim(request))
    assert error.code == "grant_over"
    assert yard.store.sql("SELECT count(*) FROM lease") == [(1,)]


def test_a_repeated_batch_leaves_out_what_has_ended_and_keeps_the_tokens(yard: Yard) -> None:
    for n in range(3):
        yard.add(f"task {n}", scopes=(f"d{n}",))
    request = yard.request(wanted=3)
    first = yard.lessor.leases.claim(request)
    yard.complete(first[0])
    again = yard.lessor.leases.claim(request)
    assert [g.holder for g in again] == [g.holder for g in first[1:]]
    for grant in again:
        yard.complete(grant)
    assert yard.refused(lambda: yard.lessor.leases.claim(request)).code == "grant_over"


@pytest.mark.parametrize(
    "changed",
    [
        {"wanted": 2},
        {"ttl_ms": TTL + 1},
        {"max_hold_ms": 2 * TTL},
        {"queue": "other"},
        {"repository": Reach.ANYWHERE},
        {"secret": "another secret of some length"},
    ],
)
def test_a_request_id_of_another_claim_is_refused(yard: Yard, changed: dict[str, Any]) -> None:
    yard.add("one", scopes=("a",))
    yard.add("two", scopes=("b",))
    yard.add("three", scopes=("c",), queue="other")
    request = yard.request()
    yard.lessor.leases.claim(request)
    before = yard.store.contents()
    error = yard.refused(lambda: yard.lessor.leases.claim(replace(request, **changed)))
    assert error.code == "request_reused"
    assert yard.store.contents() == before


def test_names_with_the_same_letters_in_another_place_are_another_request(yard: Yard) -> None:
    """What is compared can't be shifted from one field into the next."""
    yard.add("one", queue="a|b")
    yard.add("two", queue="a")
    request = yard.request(queue="a|b")
    assert len(yard.lessor.leases.claim(request)) == 1
    assert (
        yard.refused(lambda: yard.lessor.leases.claim(replace(request, queue="a"))).code
        == "request_reused"
    )
    once = lambda reason, addition: yard.lessor.tasks.requeue(  # noqa: E731
        ["task_x"], reason=reason, addition=addition, request_id="r"
    )
    assert yard.refused(lambda: once("ab", "c")).code == "not_found"


def test_two_workers_may_use_the_same_request_id(yard: Yard) -> None:
    yard.add("one", scopes=("a",))
    yard.add("two", scopes=("b",))
    request = yard.request()
    (one,) = yard.lessor.leases.claim(request)
    (two,) = yard.lessor.leases.claim(replace(request, worker=yard.other.id))
    assert one.task != two.task


def test_an_acquired_lease_can_be_asked_for_again(yard: Yard) -> None:
    values = {"worker": yard.worker.id, "request_id": new_request_id(), "secret": new_token()}
    task = yard.asked("hold", scopes=("src",))
    grant = yard.lessor.leases.acquire(task, **values)
    again = yard.lessor.leases.acquire(task, **values)
    assert again.holder == grant.holder
    renewed = yard.lessor.leases.renew_one(again.holder)
    other = yard.asked("hold", scopes=("docs",))
    assert (
        yard.refused(lambda: yard.lessor.leases.acquire(other, **values)).code == "request_reused"
    )
    without = {**values, "secret": ""}
    assert (
        yard.refused(lambda: yard.lessor.leases.acquire(task, **without)).code == "request_reused"
    )
    yard.lessor.leases.complete_one(replace(grant.holder, version=renewed.version), Result())
    assert yard.refused(lambda: yard.lessor.leases.acquire(task, **values)).code == "grant_over"
    assert yard.store.sql("SELECT count(*) FROM task") == [(1,)]


def test_a_secret_is_nowhere_in_the_store(yard: Yard) -> None:
    yard.add("one")
    request = yard.request()
    (grant,) = yard.lessor.leases.claim(request)
    text = repr(
        [yard.store.sql(f"SELECT * FROM {table}") for table in ("lease", "request", "event")]
    )
    for secret in (request.secret, grant.holder.token):
        assert secret not in text
        assert secret not in repr(grant)
        assert secret not in repr(request)


def test_a_request_says_what_it_is_without_its_secret() -> None:
    request = ClaimRequest(worker="w", request_id="r", secret="s3cret-of-sufficient-length")
    assert "s3cret" not in repr(request)


def test_a_checked_claim_says_what_it_is_without_its_token() -> None:
    request = ClaimRequest(worker="w", request_id="r", secret=new_token())
    worker: Any = None
    claim = Claim(
        request=request,
        worker=worker,
        worker_row=1,
        terms=MANUAL_TERMS,
        queue="default",
        repository=0,
        only=None,
        first_token=token_of(request, 0),
    )
    assert claim.token(0) not in repr(claim)


def test_a_widening_that_was_refused_isnt_kept_as_an_answer(yard: Yard) -> None:
    grant, other = yard.running("src"), yard.running("docs")
    request = new_request_id()
    once = lambda: yard.lessor.leases.widen(grant.holder, ["docs"], request_id=request)  # noqa: E731
    assert yard.refused(once).code == "scope_held"
    yard.lessor.leases.release(other.holder)
    yard.lessor.leases.sweep()
    fence = once()
    yard.lessor.leases.release(grant.holder)
    assert once() == fence


def test_a_widening_of_another_holder_with_the_same_request_id_is_refused(yard: Yard) -> None:
    grant, request = yard.running("src"), new_request_id()
    yard.lessor.leases.widen(grant.holder, ["docs"], request_id=request)
    wrong = replace(grant.holder, token="somebody else's token")
    error = yard.refused(lambda: yard.lessor.leases.widen(wrong, ["docs"], request_id=request))
    assert error.code == "request_reused"
