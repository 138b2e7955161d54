"""Submitting: one, thousands, within the caller's own transaction; a unique key gives what is there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import apsw
import psycopg
import pytest
from psycopg.rows import dict_row

from builders import MakeStore, StoreUnderTest, Yard
from lessor.errors import (
    BusyError,
    InvalidError,
    NotFoundError,
    StoreError,
    TransitionRefusedError,
)
from lessor.model.grant import Reach
from lessor.model.task import Effects, NewTask
from lessor.service.amending import AMENDABLE


def test_a_task_is_what_was_asked_for(yard: Yard) -> None:
    wish = NewTask(
        title="Fix it",
        prompt="all of it\n\twith\u2028care \U0001f600",
        queue="nightly",
        repository=yard.repository.id,
        scopes=("src/a", "docs/*.md"),
        reads=("lib",),
        strict=True,
        priority=7,
        unique_key="k",
        idempotency_key="pay-1",
        max_attempts=5,
        check="make test",
        agent="claude",
        capabilities=("gpu", "docker", "gpu"),
        limit_key="db",
        progress=False,
        branch="fix/it",
        delay=timedelta(seconds=1),
    )
    (done,) = yard.lessor.tasks.submit([wish], submitter="ada")
    task = yard.lessor.tasks.task(done.task)
    for name in ("title", "prompt", "queue", "repository", "strict", "priority", "unique_key"):
        assert getattr(task, name) == getattr(wish, name), name
    for name in (
        "idempotency_key",
        "max_attempts",
        "check",
        "agent",
        "limit_key",
        "progress",
        "branch",
    ):
        assert getattr(task, name) == getattr(wish, name), name
    assert task.capabilities == ("docker", "gpu")
    assert (task.scopes, task.reads) == (("docs/*.md", "src/a"), ("lib",))
    assert (task.state, task.epoch, task.number, done.created) == ("queued", 0, 1, True)
    assert task.run_at_ms == yard.lessor.now_ms() + 1_000
    assert yard.lessor.tasks.history(done.task)[0].facts == {"submitter": "ada", "number": 1}


def test_numbers_are_counted_per_repository(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    assert [yard.add().number for _ in range(2)] == [1, 2]
    assert yard.add(repository=docs.id).number == 1
    assert yard.add().number == 3
    assert yard.lessor.tasks.task_numbered(3, repository=yard.repository.id).title == "work"
    assert (
        yard.refused(lambda: yard.lessor.tasks.task_numbered(9, repository=docs.id)).code
        == "not_found"
    )


def test_a_unique_key_gives_the_unfinished_task_that_has_it(yard: Yard) -> None:
    first = yard.add("first", unique_key="k")
    again = yard.add("again", unique_key="k")
    assert (again.task, again.number, again.created) == (first.task, first.number, False)
    assert yard.add("other queue", unique_key="k", queue="q").created
    yard.claim_one()
    assert not yard.add("running", unique_key="k").created
    yard.lessor.tasks.cancel([first.task])
    assert yard.add("anew", unique_key="k").created
    assert yard.lessor.tasks.task(first.task).title == "first"


def test_a_unique_key_twice_in_a_batch_is_one_task(yard: Yard) -> None:
    wish = yard.asked("twin", unique_key="k")
    first, second = yard.lessor.tasks.submit([wish, wish])
    assert (first.created, second.created) == (True, False)
    assert first.task == second.task


def test_a_need_by_position_may_be_a_task_that_was_there_already(yard: Yard) -> None:
    there = yard.add("there", unique_key="k")
    _, after = yard.lessor.tasks.submit(
        [yard.asked("there", unique_key="k"), yard.asked("after", needs_index=(0,))]
    )
    assert yard.lessor.tasks.needs(after.task) == [there.task]
    assert yard.titles(yard.claim(wanted=9)) == ["there"]


def test_a_batch_is_added_as_a_whole_or_not_at_all(yard: Yard) -> None:
    before = yard.store.contents()
    good = yard.asked("good")
    for bad, code in (
        (yard.asked("bad", scopes=("../x",)), "scope_invalid"),
        (yard.asked("bad", branch="main"), "branch_invalid"),
        (yard.asked("bad", needs=("task_x",)), "not_found"),
        (yard.asked("bad", needs_index=(1,)), "cycle"),
        (yard.asked("bad", needs_index=(2,)), "invalid"),
    ):
        assert yard.refused(lambda b=bad: yard.lessor.tasks.submit([good, b])).code == code
    assert yard.store.contents() == before
    assert yard.lessor.tasks.submit([]) == []


def test_tasks_that_wait_for_each_other_are_refused(yard: Yard) -> None:
    circle = [
        yard.asked("a", needs_index=(1,)),
        yard.asked("b", needs_index=(2,)),
        yard.asked("c", needs_index=(0,)),
    ]
    error = yard.refused(lambda: yard.lessor.tasks.submit(circle))
    assert error.code == "cycle"
    assert "1 -> 2 -> 3 -> 1" in str(error)


def test_a_chain_of_thousands_is_no_circle(yard: Yard) -> None:
    chain = [yard.asked(f"link {n}", needs_index=(n - 1,) if n else ()) for n in range(2_000)]
    yard.lessor.tasks.submit(chain)
    assert yard.titles(yard.claim(wanted=9)) == ["link 0"]


def test_a_need_that_cant_succeed_any_more_is_refused(yard: Yard) -> None:
    dead = yard.add("dead")
    yard.lessor.tasks.cancel([dead.task])
    before = yard.store.contents()
    assert yard.refused(lambda: yard.add("after", needs=(dead.task,))).code == "transition_refused"
    assert yard.store.contents() == before


def begun(store: StoreUnderTest, **options: Any) -> Any:
    """The caller's own connection, in a transaction."""
    if store.kind == "sqlite":
        db = apsw.Connection(str(store.path))
        db.execute("BEGIN IMMEDIATE")
    else:
        db = psycopg.connect(store.url, **options)
        db.execute("CREATE TABLE IF NOT EXISTS public.bill (id int)")
    return db


def test_what_is_submitted_within_a_transaction_exists_when_it_commits(
    yard: Yard, store: StoreUnderTest
) -> None:
    db = begun(store)
    (done,) = yard.lessor.tasks.submit_within(db, [yard.asked("within")], submitter="shop")
    assert yard.claim(repository=Reach.NO_REPOSITORY) == [] if store.kind == "postgres" else True
    db.execute("COMMIT")
    assert yard.lessor.tasks.task(done.task).title == "within"
    assert yard.claim_one().task == done.task
    db.close()


def test_what_is_submitted_within_a_transaction_is_gone_when_it_rolls_back(
    yard: Yard, store: StoreUnderTest
) -> None:
    before = store.contents()
    db = begun(store)
    (done,) = yard.lessor.tasks.submit_within(db, [yard.asked("within", scopes=("src",))])
    db.execute("ROLLBACK")
    db.close()
    assert store.contents() == before
    with pytest.raises(NotFoundError):
        yard.lessor.tasks.task(done.task)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_callers_commit_wakes_who_waits_for_work(kind: str, make_store: MakeStore) -> None:
    """Long before a waiting claim would look again by itself."""
    store = make_store(kind, real_time=True)
    yard = Yard(store, store.connect())
    waiter, looked = store.connect().store, Event()
    db = begun(store)
    yard.lessor.tasks.submit_within(db, [yard.asked("within")])

    def wait(_: Yard) -> None:
        waiter.wait(1)  # what came before the commit is no news any more
        looked.set()
        waiter.wait(600_000)

    waiting = yard.in_background(wait)
    assert looked.wait(timeout=60)
    db.execute("COMMIT")
    db.close()
    waiting.join(timeout=60)
    assert not waiting.is_alive()


def test_a_transaction_that_begins_with_the_submit_is_the_callers_too(
    yard: Yard, store: StoreUnderTest
) -> None:
    before = store.contents()
    with closing(
        apsw.Connection(str(store.path)) if store.kind == "sqlite" else psycopg.connect(store.url)
    ) as db:
        if store.kind == "sqlite":
            db.execute("BEGIN IMMEDIATE")
        yard.lessor.tasks.submit_within(db, [yard.asked("within")])
        db.execute("ROLLBACK")
    assert store.contents() == before


def test_a_refusal_within_a_transaction_leaves_it_as_it_was(
    yard: Yard, store: StoreUnderTest
) -> None:
    dead = yard.add("dead")
    yard.lessor.tasks.cancel([dead.task])
    db = begun(store)
    (kept,) = yard.lessor.tasks.submit_within(db, [yard.asked("kept", branch="fix/a")])
    before = kept.number
    for bad, code in (
        (yard.asked("bad", needs=(dead.task,)), "transition_refused"),
        (yard.asked("bad", branch="fix/a"), "constraint conflict"),
        (yard.asked("bad", scopes=("/",)), "scope_invalid"),
    ):
        error = yard.refused(lambda b=bad: store.connect().tasks.submit_within(db, [b]))
        assert error.code in code
    (following,) = yard.lessor.tasks.submit_within(db, [yard.asked("following")])
    db.execute("COMMIT")
    db.close()
    assert following.number == before + 1
    assert [t.title for t in yard.lessor.tasks.open_tasks(repository=yard.repository.id)] == [
        "kept",
        "following",
    ]


def test_the_callers_connection_may_have_its_own_habits(yard: Yard, store: StoreUnderTest) -> None:
    first = yard.add("first")
    if store.kind == "postgres":
        db = begun(store, row_factory=dict_row)
    else:
        db = begun(store)
        db.row_trace = lambda _, row: {"row": row}
    wishes = [yard.asked("a", unique_key="k"), yard.asked("b", unique_key="k", needs=(first.task,))]
    one, two = yard.lessor.tasks.submit_within(db, wishes)
    db.execute("COMMIT")
    db.close()
    assert (one.task, one.created, two.created) == (two.task, True, False)


def test_a_connection_to_another_store_is_refused(
    store: StoreUnderTest, make_store: MakeStore
) -> None:
    other = make_store(store.kind, real_time=True)
    other.connect()
    with closing(begun(other)) as db, pytest.raises(InvalidError, match="another database"):
        store.connect().tasks.submit_within(db, [NewTask(title="x")])


def test_a_connection_that_is_in_no_transaction_is_refused(store: StoreUnderTest) -> None:
    lessor = store.connect()
    before = store.contents()
    with closing(store.raw()) as idle:
        for connection in (idle, None, "postgresql://", object(), lessor):
            with pytest.raises(InvalidError, match="open transaction"):
                lessor.tasks.submit_within(connection, [NewTask(title="x")])
    with pytest.raises((InvalidError, StoreError)):
        lessor.tasks.submit_within(idle, [NewTask(title="closed")])
    assert store.contents() == before


def test_a_broken_transaction_is_refused(yard: Yard, store: StoreUnderTest) -> None:
    if store.kind == "sqlite":
        db = apsw.Connection(str(store.path))
        db.execute("BEGIN")  # not IMMEDIATE: another writer comes between
        db.execute("SELECT count(*) FROM task").fetchall()
        yard.add("meanwhile")
        with pytest.raises(BusyError):
            yard.lessor.tasks.submit_within(db, [yard.asked("late")])
    else:
        db = psycopg.connect(store.url)
        with pytest.raises(psycopg.Error):
            db.execute("SELECT 1 / 0")
        with pytest.raises(InvalidError):
            yard.lessor.tasks.submit_within(db, [yard.asked("late")])
    db.close()


@pytest.mark.parametrize("between", [0, 1])
def test_a_batch_that_closes_a_circle_by_a_unique_key_is_refused(yard: Yard, between: int) -> None:
    """Two with one key are one task, so what needs the second needs the first."""
    wishes = [
        yard.asked("first", unique_key="k", needs_index=(1,)),
        *[yard.asked("between", needs_index=(2,))] * between,
        yard.asked("again", unique_key="k"),
    ]
    before = yard.store.contents()
    assert yard.refused(lambda: yard.lessor.tasks.submit(wishes)).code == "cycle"
    assert yard.store.contents() == before
    yard.add("first", unique_key="k")
    *_, again = yard.lessor.tasks.submit(wishes)  # all of them are the one that is there already
    assert again.number == 1


def test_amending_changes_what_a_queued_task_asks_for(yard: Yard) -> None:
    need = yard.add("need", scopes=("a",))
    task = yard.add("before", scopes=("a",), priority=1).task
    changed = yard.asked(
        "after",
        prompt="p",
        check="c",
        scopes=("b", "c/*.py"),
        reads=("d",),
        priority=9,
        agent="codex",
        limit_key="db",
        needs=(need.task,),
        strict=True,
    )
    found = yard.lessor.tasks.amend(task, changed, actor="ada")
    assert (found.title, found.prompt, found.check, found.priority) == ("after", "p", "c", 9)
    assert (found.scopes, found.reads, found.strict) == (("b", "c/*.py"), ("d",), True)
    assert (found.agent, found.limit_key, found.needs_left) == ("codex", "db", 1)
    assert yard.lessor.tasks.needs(task) == [need.task]
    codex = yard.add_worker("codex-7", kind="codex")
    yard.complete(yard.claim_one())
    grant = yard.claim_one(worker=codex.id)
    assert (grant.task, grant.scopes, grant.reads) == (task, ("b", "c/*.py"), ("d",))
    back = yard.refused(lambda: yard.lessor.tasks.amend(task, changed))
    assert back.code == "transition_refused"


def test_amending_away_a_need_frees_the_task(yard: Yard) -> None:
    need = yard.add("need")
    task = yard.add("task", needs=(need.task,)).task
    yard.lessor.tasks.amend(task, yard.asked("task"))
    assert yard.titles(yard.claim(wanted=9)) == ["need", "task"]


def test_amending_moves_a_waiting_task_to_other_paths(yard: Yard) -> None:
    yard.running("src")
    task = yard.add("waits", scopes=("src/a",)).task
    assert yard.claim() == []
    yard.lessor.tasks.amend(task, yard.asked("elsewhere", scopes=("docs",)))
    assert yard.claim_one().task == task


def test_amending_into_a_circle_is_refused(yard: Yard) -> None:
    first = yard.add("first").task
    second = yard.add("second", needs=(first,)).task
    third = yard.add("third", needs=(second,)).task
    before = yard.store.contents()
    for need in (first, second, third):
        error = yard.refused(
            lambda n=need: yard.lessor.tasks.amend(first, yard.asked("x", needs=(n,)))
        )
        assert error.code == "cycle"
    dead = yard.add("dead").task
    yard.lessor.tasks.cancel([dead])
    with pytest.raises(TransitionRefusedError):
        yard.lessor.tasks.amend(first, yard.asked("x", needs=(dead,)))
    assert yard.lessor.tasks.needs(first) == []
    assert {k: v for k, v in yard.store.contents().items() if k == "dependency"} == {
        "dependency": before["dependency"]
    }


def test_an_amendment_of_what_stays_names_it_and_changes_nothing(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    task = yard.add("work").task
    fixed = {
        "repository": docs.id,
        "queue": "slow",
        "delay": timedelta(hours=1),
        "unique_key": "k",
        "idempotency_key": "pay-1",
        "effects": Effects.UNSAFE,
        "max_attempts": 9,
        "capabilities": ("gpu",),
        "progress": False,
        "branch": "fix/a",
        "needs_index": (0,),
    }
    before = yard.store.contents()
    for name, value in {**fixed, "run_at": datetime(2030, 1, 1, tzinfo=UTC)}.items():
        wish = yard.asked("changed", **{name: value})
        error = yard.refused(lambda w=wish: yard.lessor.tasks.amend(task, w))
        assert (error.code, error.facts["fields"]) == ("invalid", [name])
        assert name in error.message
    error = yard.refused(lambda: yard.lessor.tasks.amend(task, yard.asked("changed", **fixed)))
    assert sorted(error.facts["fields"]) == sorted(fixed)
    assert yard.store.contents() == before
    assert {*fixed, "run_at"} | AMENDABLE == {field.name for field in fields(NewTask)}


def test_an_amendment_may_say_again_what_stays(yard: Yard) -> None:
    as_it_was = {
        "queue": "slow",
        "unique_key": "k",
        "effects": Effects.UNSAFE,
        "max_attempts": 9,
        "capabilities": ("gpu",),
        "progress": False,
        "branch": "fix/a",
    }
    task = yard.add("before", **as_it_was).task
    for more in ({}, as_it_was):
        found = yard.lessor.tasks.amend(task, yard.asked("after", **more))
        assert {name: getattr(found, name) for name in as_it_was} == as_it_was


def test_tasks_are_listed_in_pages_newest_first(yard: Yard) -> None:
    for n in range(5):
        yard.add(f"task {n}")
    yard.add("free", free=True)
    yard.lessor.tasks.cancel([yard.lessor.tasks.task_numbered(1, repository=yard.repository.id).id])
    page = yard.lessor.tasks.tasks(repository=yard.repository.id, most=2)
    assert [t.title for t in page] == ["task 4", "task 3"]
    rest = yard.lessor.tasks.tasks(repository=yard.repository.id, before=page[-1].id)
    assert [t.title for t in rest] == ["task 2", "task 1", "task 0"]
    assert [t.title for t in yard.lessor.tasks.tasks()] == ["free"]
    assert len(yard.lessor.tasks.tasks(everywhere=True)) == 6
    cancelled = yard.lessor.tasks.tasks(repository=yard.repository.id, states=["cancelled"])
    assert [t.title for t in cancelled] == ["task 0"]
    assert yard.lessor.tasks.counts(repository=yard.repository.id) == {"cancelled": 1, "queued": 4}
    assert yard.lessor.tasks.counts(everywhere=True) == {"cancelled": 1, "queued": 5}
    assert [t.title for t in yard.lessor.tasks.ready(repository=yard.repository.id, most=2)] == [
        "task 1",
        "task 2",
    ]


def test_tasks_are_found_by_their_branches_the_newest_of_each(yard: Yard) -> None:
    first = yard.add("one", branch="feat/a")
    yard.lessor.tasks.cancel([first.task])
    second = yard.add("one again", branch="feat/a")
    done = yard.add("two", branch="feat/b")
    yard.lessor.tasks.cancel([done.task])
    yard.add("another", branch="feat/c")
    elsewhere = yard.lessor.registry.add_repository("elsewhere").id
    yard.add("elsewhere", branch="feat/d", repository=elsewhere)
    tasks, here = yard.lessor.tasks, yard.repository.id
    found = tasks.newest_on(["feat/b", "feat/d", "feat/a", "feat", "none"], repository=here)
    assert [task.id for task in found] == [second.task, done.task]
    assert tasks.newest_on([], repository=here) == []
    assert tasks.newest_on(["feat/a"], repository=None) == []


def test_tasks_are_found_by_their_keys_the_newest_of_each(yard: Yard) -> None:
    first = yard.add("one", unique_key="list:a")
    yard.lessor.tasks.cancel([first.task])
    second = yard.add("one again", unique_key="list:a")
    other = yard.add("two", unique_key="list:b")
    yard.add("of another list", unique_key="lists:a")
    elsewhere = yard.lessor.registry.add_repository("elsewhere").id
    yard.add("elsewhere", unique_key="list:c", repository=elsewhere)
    tasks, here = yard.lessor.tasks, yard.repository.id
    found = tasks.with_keys(["list:b", "list:a", "list:c", "none"], repository=here)
    assert {task.unique_key: task.id for task in found} == {
        "list:a": second.task,
        "list:b": other.task,
    }
    assert tasks.with_keys([], repository=here) == []
    tasks.cancel([other.task])
    assert [t.id for t in tasks.with_keys(["list:b"], repository=here)] == [other.task]
    assert [t.id for t in tasks.open_with_keys("list:", repository=here)] == [second.task]
    assert [t.id for t in tasks.open_with_keys("list:", repository=here, most=1)] == [second.task]
