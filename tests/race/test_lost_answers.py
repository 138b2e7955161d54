"""The server is lost in the middle of a write, or its answer is: asked again, it was done once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from cutting import Proxy

from builders import MakeStore, StoreUnderTest, Yard
from invariants import check_invariants
from lessor.clock import SystemClock
from lessor.errors import StoreUnavailableError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Ended, Failure, Grant, Reach, Renewed, Result

TTL = 60_000


@dataclass(slots=True)
class Asker:
    """What a caller has in its hands: requests to send again, leases, and the task of each."""

    yard: Yard
    scoped: Grant
    request: ClaimRequest
    id: str = field(default_factory=new_request_id)
    secret: str = field(default_factory=new_token)


def given(yard: Yard) -> Asker:
    """One lease held, one scoped and one free task ready."""
    scoped = yard.running("src")
    yard.add("free before", free=True)
    yard.claim_free()  # the next claim of free tasks goes by one statement
    yard.add("scoped", scopes=("docs",))
    yard.add("free", free=True)
    return Asker(yard=yard, scoped=scoped, request=yard.request())


def shown(answer: Any) -> Any:
    """An answer without what says that it is a repeat, or how much time is left."""
    if isinstance(answer, list | tuple):
        return [shown(one) for one in answer]
    if isinstance(answer, Ended):
        return replace(answer, repeated=False, rule="", run_at_ms=None)
    if isinstance(answer, Grant | Renewed):
        return replace(answer, ttl_ms=0)
    return answer


RESULT = Result(said="done")
WRITES: dict[str, Callable[[Asker], Any]] = {
    "claim": lambda a: a.yard.lessor.leases.claim(a.request),
    "claim free": lambda a: a.yard.lessor.leases.claim(
        replace(a.request, repository=Reach.NO_REPOSITORY)
    ),
    "claim anywhere": lambda a: a.yard.lessor.leases.claim(
        replace(a.request, repository=Reach.ANYWHERE)
    ),
    "acquire": lambda a: a.yard.lessor.leases.acquire(
        a.yard.asked(scopes=("lib",)), worker=a.yard.worker.id, request_id=a.id, secret=a.secret
    ),
    "complete": lambda a: a.yard.lessor.leases.complete([(a.scoped.holder, RESULT)]),
    "complete and claim": lambda a: a.yard.lessor.leases.complete_and_claim(
        [(a.scoped.holder, RESULT)], a.request
    ),
    "renew": lambda a: a.yard.lessor.leases.renew([a.scoped.holder], request_id=a.id),
    "fail": lambda a: a.yard.lessor.leases.fail(a.scoped.holder, Failure(error="boom")),
    "release": lambda a: a.yard.lessor.leases.release(a.scoped.holder),
    "ask": lambda a: a.yard.lessor.leases.ask(a.scoped.holder, "which?"),
    "widen": lambda a: a.yard.lessor.leases.widen(a.scoped.holder, ["lib"]),
    "submit": lambda a: a.yard.lessor.tasks.submit([a.yard.asked("new")], request_id=a.id),
    "cancel": lambda a: a.yard.lessor.tasks.cancel([a.scoped.task], request_id=a.id),
    "block": lambda a: a.yard.lessor.tasks.block([a.scoped.task], request_id=a.id),
}


@pytest.fixture
def store(make_store: MakeStore) -> Iterator[StoreUnderTest]:
    """PostgreSQL: SQLite has no server to lose."""
    under_test = make_store("postgres")
    yield under_test
    check_invariants(under_test)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_whose_answer_was_lost_is_answered_again_and_done_once(
    store: StoreUnderTest, write: str
) -> None:
    with closing(Proxy(store.url)) as proxy:
        direct, store.url = store.url, proxy.url
        lessor = store.connect()
        store.url = direct
        asker = given(Yard(store, lessor))
        before = store.contents()
        proxy.cut_when = lambda: store.contents() != before
        lost(lambda: WRITES[write](asker))
        done = store.contents()
        assert done != before
        answer = WRITES[write](asker)
        assert store.contents() == done
        assert shown(WRITES[write](asker)) == shown(answer)
        store.close()


WAITS = {
    "the repository": "SELECT 1 FROM repository WHERE id > 0 FOR UPDATE",
    "the lease": "SELECT 1 FROM lease FOR UPDATE",
    "the tasks": "SELECT 1 FROM task FOR UPDATE",
}
MIDDLES = [
    ("claim", "the repository"),
    ("claim", "the tasks"),
    ("complete", "the lease"),
    ("complete", "the tasks"),
    ("complete and claim", "the repository"),
    ("complete and claim", "the tasks"),
    ("renew", "the lease"),
    ("release", "the tasks"),
    ("widen", "the repository"),
    ("widen", "the lease"),
    ("cancel", "the tasks"),
]


@pytest.mark.parametrize(("write", "waits_for"), MIDDLES)
def test_a_write_whose_server_process_was_ended_did_nothing_and_is_done_once_when_repeated(
    store: StoreUnderTest, write: str, waits_for: str
) -> None:
    asker = given(Yard(store, store.connect()))
    before = store.contents()
    with store.raw() as other:
        other.autocommit = False
        other.execute(WAITS[waits_for])
        writing = asker.yard.in_background(lambda _: lost(lambda: WRITES[write](asker)))
        end_who_waits(store)
        writing.join(30)
        other.rollback()
    assert store.contents() == before
    answer = WRITES[write](asker)
    done = store.contents()
    assert done != before
    assert shown(WRITES[write](asker)) == shown(answer)
    assert store.contents() == done


def lost(action: Callable[[], object]) -> None:
    """The action's answer is lost."""
    with pytest.raises(StoreUnavailableError):
        action()


def end_who_waits(store: StoreUnderTest) -> None:
    """End the server's process that waits for a lock, once there is one."""
    for _ in range(1_000):
        if store.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ):
            return
        SystemClock().wait(10)
    raise AssertionError("nobody waits")
