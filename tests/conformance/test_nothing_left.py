"""A claim isn't answered with nothing, or with fewer than it wants, while more could be granted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import TTL, Yard
from lessor.model.grant import Grant, Reach
from lessor.model.task import NewTask

MANY = 20_500
"""More than a claim ever looked at in one transaction."""


def add_all(yard: Yard, wishes: list[NewTask]) -> None:
    """Submit in batches."""
    for first in range(0, len(wishes), 10_000):
        yard.lessor.tasks.submit(wishes[first : first + 10_000])


@pytest.mark.parametrize("wanted", [1, 2])
def test_what_is_ready_behind_ever_so_many_blocked_ones_is_found(yard: Yard, wanted: int) -> None:
    yard.running("src")
    blocked = [yard.asked(f"blocked {n}", scopes=(f"src/{n}",)) for n in range(MANY)]
    last = yard.asked("last", scopes=("lib",))
    add_all(yard, [*blocked[:3], yard.asked("first", scopes=("docs",)), *blocked[3:], last])
    assert yard.titles(yard.claim(wanted=wanted)) == ["first", "last"][:wanted]
    if wanted == 1:
        assert yard.claim_one().title == "last"


def test_a_batch_goes_on_behind_what_is_blocked(yard: Yard) -> None:
    yard.running("src")
    yard.add("free 0", scopes=("lib/0",))
    for n in range(30):
        yard.add(f"blocked {n}", scopes=("src/a",))
    for n in range(1, 5):
        yard.add(f"free {n}", scopes=(f"lib/{n}",))
    assert yard.titles(yard.claim(wanted=4)) == [f"free {n}" for n in range(4)]


def test_a_batch_goes_on_behind_what_waits_for_the_batch_itself(yard: Yard) -> None:
    yard.add("first", scopes=("src",))
    for n in range(30):
        yard.add(f"inside {n}", scopes=("src/a",))
    for n in range(3):
        yard.add(f"apart {n}", scopes=(f"lib/{n}",))
    grants = yard.claim(wanted=4)
    assert yard.titles(grants) == ["first", "apart 0", "apart 1", "apart 2"]
    assert [grant.fence for grant in grants] == [1, 2, 3, 4]
    yard.complete(grants[0])
    assert yard.claim_one().title == "inside 0"


@pytest.mark.parametrize("free", [False, True])
def test_a_batch_goes_on_behind_a_key_that_it_fills_itself(yard: Yard, free: bool) -> None:
    yard.lessor.registry.set_limit("key", "db", 2)
    where = {"repository": Reach.NO_REPOSITORY} if free else {}
    for n in range(40):
        yard.add(f"limited {n}", limit_key="db", free=free)
    for n in range(4):
        yard.add(f"other {n}", free=free)
    titles = yard.titles(yard.claim(wanted=5, **where))
    assert titles == ["limited 0", "limited 1", "other 0", "other 1", "other 2"]


@pytest.mark.parametrize("limit", [("queue", "default"), ("agent", "claude-1")])
def test_a_batch_takes_no_more_than_the_limits_leave_over_all_its_looks(
    yard: Yard, limit: tuple[str, str]
) -> None:
    yard.running("src")
    yard.lessor.registry.set_limit(*limit, 3)
    for n in range(30):
        yard.add(f"blocked {n}", scopes=("src/a",))
        yard.add(f"free {n}", scopes=(f"lib/{n}",))
    assert yard.titles(yard.claim(wanted=20)) == ["free 0", "free 1"]


def test_a_batch_grants_no_two_that_overlap_in_different_looks(yard: Yard) -> None:
    yard.running("src")
    yard.add("first", scopes=("lib/*.py",))
    for n in range(30):
        yard.add(f"blocked {n}", scopes=("src/a",))
    yard.add("overlaps", scopes=("lib/a.py",))
    yard.add("apart", scopes=("lib/a.txt",))
    assert yard.titles(yard.claim(wanted=3)) == ["first", "apart"]


def elsewhere(yard: Yard, name: str) -> str:
    """Another repository."""
    return yard.lessor.registry.add_repository(f"github.com/acme/{name}").id


@pytest.mark.parametrize("why", ["a lease", "a limit"])
def test_anywhere_finds_the_only_ready_task_among_many_repositories(yard: Yard, why: str) -> None:
    yard.lessor.registry.set_limit("key", "db", 1)
    yard.running("db", limit_key="db")
    for n in range(70):
        here = elsewhere(yard, f"shop-{n}")
        if why == "a lease":
            holder = yard.add("holder", repository=here, scopes=("src",), priority=9)
            yard.claim_one(repository=here, task=holder.task)
            yard.add("blocked", repository=here, scopes=("src/a",))
        else:
            yard.add("limited", repository=here, limit_key="db")
    yard.add("ready", repository=elsewhere(yard, "docs"), priority=-1)
    assert yard.claim_one(repository=Reach.ANYWHERE).title == "ready"
    assert yard.claim(repository=Reach.ANYWHERE) == []


@pytest.mark.parametrize("wanted", [1, 2])
def test_what_fell_due_behind_many_that_are_blocked_is_found(yard: Yard, wanted: int) -> None:
    yard.running("src")
    for n in range(70):
        yard.add(f"blocked {n}", scopes=("src/a",), delay=timedelta(milliseconds=100 + n))
    yard.add("free", scopes=("lib",), delay=timedelta(milliseconds=900))
    yard.store.advance(1_000)
    assert yard.titles(yard.claim(wanted=wanted)) == ["free"]


@pytest.mark.parametrize("anywhere", [False, True])
def test_what_fell_due_here_is_found_whatever_fell_due_elsewhere(
    yard: Yard, anywhere: bool
) -> None:
    docs = elsewhere(yard, "docs")
    yard.running("src")
    for n in range(70):
        yard.add(f"blocked {n}", scopes=("src/a",), delay=timedelta(milliseconds=100 + n))
    yard.add("here", repository=docs, delay=timedelta(milliseconds=900))
    yard.store.advance(1_000)
    where = Reach.ANYWHERE if anywhere else docs
    assert yard.claim_one(repository=where).title == "here"


def test_one_that_is_woken_after_many_that_are_blocked_again_is_found(yard: Yard) -> None:
    first = yard.running("src")
    for n in range(70):
        yard.add(f"needs both {n}", scopes=("src/a", "lib/a"))
    yard.add("needs one", scopes=("src/b",))
    assert yard.claim() == []
    second = yard.running("lib")
    yard.complete(first)
    assert yard.claim_one().title == "needs one"
    yard.complete(second)
    assert yard.claim_one().title == "needs both 0"


def test_one_behind_more_lapsed_leases_than_a_transaction_ends_is_found(yard: Yard) -> None:
    held = [yard.asked(f"held {n}", scopes=(f"src/{n}",), max_attempts=1) for n in range(230)]
    yard.lessor.tasks.submit(held)
    assert len(yard.claim(wanted=230)) == 230
    waiting = yard.add("waits", scopes=("src/229",))
    assert yard.claim() == []
    yard.store.advance(TTL)
    assert yard.claim_one().task == waiting.task


def test_a_sweep_ends_all_that_ran_out_and_wakes_all_that_waited(yard: Yard) -> None:
    held = [yard.asked(f"held {n}", scopes=(f"src/{n}",), max_attempts=1) for n in range(1_010)]
    yard.lessor.tasks.submit(held)
    for _ in range(2):
        yard.claim(wanted=505)
    for n in range(600):
        yard.add(f"waits {n}", scopes=("src/0",))
    assert yard.claim() == []
    yard.store.advance(TTL)
    assert len(yard.lessor.leases.sweep()) == 1_010
    assert yard.store.sql("SELECT count(*) FROM lease WHERE drained = 0") == [(0,)]
    assert yard.store.sql("SELECT count(*) FROM task WHERE waiting_on IS NOT NULL") == [(0,)]


def acquire(yard: Yard, *scopes: str) -> Grant:
    """Lease paths at once."""
    return yard.lessor.leases.acquire(yard.asked(scopes=scopes), worker=yard.other.id)


def test_paths_of_more_ended_leases_than_a_transaction_drains_can_be_acquired(yard: Yard) -> None:
    yard.lessor.tasks.submit([yard.asked(f"held {n}", scopes=(f"src/{n}",)) for n in range(230)])
    for grant in yard.claim(wanted=230):
        yard.complete(grant)
    assert acquire(yard, "src/229").scopes == ("src/229",)


def test_a_batch_without_a_repository_takes_what_another_process_gave_back(yard: Yard) -> None:
    for n in range(6):
        yard.add(f"task {n}", free=True)
    grants = [yard.claim_free()[0] for _ in range(4)]
    yard.store.connect().leases.release(grants[0].holder)
    titles = yard.titles(yard.claim_free(wanted=5))
    assert sorted(titles) == ["task 0", "task 4", "task 5"]


def test_a_batch_without_a_repository_takes_what_has_just_fallen_due(yard: Yard) -> None:
    yard.add("due", free=True, delay=timedelta(milliseconds=500))
    yard.add("first", free=True)
    assert len(yard.claim_free()) == 1
    yard.add("second", free=True)
    yard.store.advance(500)
    assert sorted(yard.titles(yard.claim_free(wanted=5))) == ["due", "second"]


def test_a_completion_goes_on_to_what_is_ready_behind_many_that_are_blocked(yard: Yard) -> None:
    holder, other = yard.running("src"), yard.running("docs")
    add_all(
        yard,
        [
            *(yard.asked(f"blocked {n}", scopes=(f"src/{n}",)) for n in range(5_000)),
            yard.asked("last", scopes=("lib",)),
        ],
    )
    request = yard.request()
    (ended,), grants = yard.lessor.leases.complete_and_claim(
        [(other.holder, yard.result())], request
    )
    assert (ended.state, yard.titles(grants)) == ("succeeded", ["last"])
    (ended,), again = yard.lessor.leases.complete_and_claim(
        [(other.holder, yard.result())], request
    )
    assert (ended.repeated, again[0].holder) == (True, grants[0].holder)
    assert yard.lessor.leases.watch(holder.holder).live
