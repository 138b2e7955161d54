"""What a claim gives, in which order, and what it passes over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from builders import TTL, MakeStore, Yard
from lessor.errors import InvalidError
from lessor.model.grant import Grant, Reach
from lessor.model.task import NewTask
from lessor.service.scanning import MOST_LOOKED_AT


def test_the_highest_priority_goes_first(yard: Yard) -> None:
    for priority in (0, 5, -5):
        yard.add(f"priority {priority}", priority=priority)
    assert yard.titles(yard.claim(wanted=3)) == ["priority 5", "priority 0", "priority -5"]


def test_of_equal_priority_the_oldest_goes_first(yard: Yard) -> None:
    for n in range(3):
        yard.add(f"task {n}")
    assert [yard.claim_one().title for _ in range(3)] == ["task 0", "task 1", "task 2"]


def test_nothing_ready_is_an_empty_answer(yard: Yard) -> None:
    assert yard.claim() == []
    assert yard.claim_free() == []
    assert yard.claim(repository=Reach.ANYWHERE) == []


def test_a_batch_gets_as_many_as_asked_for_and_no_more(yard: Yard) -> None:
    for n in range(5):
        yard.add(f"task {n}", scopes=(f"dir{n}",))
    assert yard.titles(yard.claim(wanted=3)) == ["task 0", "task 1", "task 2"]
    assert yard.titles(yard.claim(wanted=3)) == ["task 3", "task 4"]


def test_a_batch_of_tasks_without_a_repository_keeps_the_order(yard: Yard) -> None:
    for n in range(5):
        yard.add(f"task {n}", free=True)
    assert yard.titles(yard.claim_free(wanted=2)) == ["task 0", "task 1"]
    assert yard.titles(yard.claim_free(wanted=9)) == ["task 2", "task 3", "task 4"]


def test_a_grant_carries_what_its_holder_needs(yard: Yard) -> None:
    task = yard.add("fix", scopes=("src/a",), reads=("docs",), prompt="do it", check="make test")
    grant = yard.claim_one()
    assert (grant.task, grant.number, grant.epoch) == (task.task, task.number, 1)
    assert (grant.scopes, grant.reads) == (("src/a",), ("docs",))
    assert (grant.prompt, grant.check) == ("do it", "make test")
    assert grant.ttl_ms == TTL
    assert grant.expires_ms == grant.granted_ms + TTL
    assert grant.repository == yard.repository.id


def test_a_task_isnt_ready_before_its_delay_has_passed(yard: Yard) -> None:
    yard.add("later", delay=timedelta(seconds=10))
    yard.store.advance(9_999)
    assert yard.claim() == []
    yard.store.advance(1)
    assert yard.claim_one().title == "later"


def test_a_task_isnt_ready_before_its_instant(yard: Yard) -> None:
    instant = datetime.fromtimestamp(yard.lessor.now_ms() / 1000 + 60, tz=UTC)
    yard.add("at noon", run_at=instant)
    yard.store.advance(59_999)
    assert yard.claim(repository=Reach.ANYWHERE) == []
    yard.store.advance(1)
    assert yard.claim_one(repository=Reach.ANYWHERE).title == "at noon"


def test_an_instant_that_has_passed_is_now(yard: Yard) -> None:
    yard.add("long ago", run_at=datetime(2001, 1, 1, tzinfo=UTC))
    assert yard.claim_one().title == "long ago"


def test_a_task_waits_until_what_it_needs_has_succeeded(yard: Yard) -> None:
    first = yard.add("first")
    yard.add("second", needs=(first.task,))
    grant = yard.claim_one()
    assert yard.claim() == []
    yard.complete(grant)
    assert yard.claim_one().title == "second"


def test_needs_of_the_same_batch_are_named_by_position(yard: Yard) -> None:
    tasks = [
        NewTask(title="last", repository=yard.repository.id, needs_index=(1, 2)),
        NewTask(title="a", repository=yard.repository.id),
        NewTask(title="b", repository=yard.repository.id),
    ]
    yard.lessor.tasks.submit(tasks)
    a, b = yard.claim(wanted=3)
    yard.complete(a)
    assert yard.claim() == []
    yard.complete(b)
    assert yard.claim_one().title == "last"


def test_a_need_that_has_succeeded_already_is_met(yard: Yard) -> None:
    first = yard.add("first")
    yard.complete(yard.claim_one())
    yard.add("second", needs=(first.task,))
    assert yard.claim_one().title == "second"


def test_a_failed_need_never_frees_its_dependents(yard: Yard) -> None:
    first = yard.add("first")
    yard.add("second", needs=(first.task,))
    yard.fail(yard.claim_one(), retry=False)
    assert yard.state(first.task) == "failed"
    assert yard.claim() == []


def test_only_the_agent_that_is_asked_for_gets_a_task(yard: Yard) -> None:
    yard.add("for codex", agent="codex")
    codex = yard.add_worker("codex-7", kind="codex")
    assert yard.claim() == []
    assert yard.claim_one(worker=codex.id).title == "for codex"


def test_only_a_worker_with_every_capability_gets_a_task(yard: Yard) -> None:
    yard.add("needs both", capabilities=("gpu", "docker"))
    some = yard.add_worker("some", capabilities=("gpu",))
    all_of_it = yard.add_worker("all", capabilities=("docker", "gpu", "net"))
    assert yard.claim() == []
    assert yard.claim(worker=some.id) == []
    assert yard.claim_one(worker=all_of_it.id).title == "needs both"


@pytest.mark.parametrize("free", [False, True])
def test_what_a_worker_cant_do_doesnt_hide_what_it_can(yard: Yard, free: bool) -> None:
    codex = yard.add_worker("codex-7", kind="codex")
    where = {"repository": Reach.NO_REPOSITORY} if free else {}
    for n in range(12):
        yard.add(f"codex {n}", agent="codex", free=free)
    yard.add("mine", free=free)
    assert yard.claim_one(**where).title == "mine"
    # The scan of the one isn't cut short by how far the other's got.
    assert yard.claim_one(worker=codex.id, **where).title == "codex 0"
    yard.add("mine again", free=free)
    assert yard.claim_one(**where).title == "mine again"
    assert yard.claim_one(worker=codex.id, **where).title == "codex 1"


def test_a_claim_takes_from_its_own_queue_only(yard: Yard) -> None:
    yard.add("other", queue="nightly")
    assert yard.claim() == []
    assert yard.claim_one(queue="nightly").title == "other"


def test_a_claim_takes_from_its_own_repository_only(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    yard.add("elsewhere", repository=docs.id)
    yard.add("nowhere", free=True)
    assert yard.claim() == []
    assert yard.claim_one(repository=docs.id).title == "elsewhere"
    assert [g.title for g in yard.claim_free()] == ["nowhere"]


def test_a_paused_queue_gives_nothing_until_it_is_resumed(yard: Yard) -> None:
    yard.add("kept")
    yard.add("free", free=True)
    yard.lessor.registry.set_queue("default", paused=True)
    assert yard.claim() == []
    assert yard.claim_free() == []
    assert yard.claim(repository=Reach.ANYWHERE) == []
    yard.lessor.registry.set_queue("default", paused=False)
    assert yard.claim_one().title == "kept"
    assert yard.titles(yard.claim_free()) == ["free"]


def test_one_task_can_be_asked_for(yard: Yard) -> None:
    yard.add("first", priority=9)
    wanted = yard.add("second")
    assert yard.claim_one(task=wanted.task).title == "second"
    assert yard.claim_one().title == "first"


def test_one_task_is_found_in_its_own_queue_and_repository(yard: Yard) -> None:
    wanted = yard.add("nightly", queue="nightly")
    assert yard.claim_one(task=wanted.task, repository=Reach.ANYWHERE).title == "nightly"


def test_asking_for_one_task_that_isnt_ready_gives_no_other(yard: Yard) -> None:
    later = yard.add("later", delay=timedelta(hours=1))
    yard.add("ready")
    assert yard.claim(task=later.task) == []
    assert yard.claim_one().title == "ready"


def test_asking_for_one_task_doesnt_hide_the_ones_before_it(yard: Yard) -> None:
    tasks = [yard.add(f"task {n}", scopes=(f"d{n}",)) for n in range(5)]
    assert yard.claim_one().title == "task 0"
    assert yard.claim_one(task=tasks[3].task).title == "task 3"
    assert yard.claim_one().title == "task 1"


@pytest.mark.parametrize("where", ["here", Reach.NO_REPOSITORY, Reach.ANYWHERE])
def test_a_retired_worker_claims_nothing(yard: Yard, where: str) -> None:
    yard.add("work")
    yard.add("free", free=True)
    asked = {} if where == "here" else {"repository": where}
    elsewhere = yard.store.connect()
    elsewhere.registry.worker(yard.worker.id)
    yard.lessor.registry.retire_worker(yard.worker.id)
    with pytest.raises(InvalidError, match="retired"):
        yard.claim(**asked)
    # Neither does it through a process that learnt of the worker before.
    assert elsewhere.leases.claim(yard.request(**asked)) == []
    with pytest.raises(InvalidError, match="retired"):
        elsewhere.leases.claim(yard.request(**asked))


def test_anywhere_takes_the_best_of_all_repositories(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    yard.add("shop low")
    yard.add("docs high", repository=docs.id, priority=5)
    yard.add("free middle", free=True, priority=3)
    got = [yard.claim_one(repository=Reach.ANYWHERE).title for _ in range(3)]
    assert got == ["docs high", "free middle", "shop low"]


def test_anywhere_goes_on_where_the_best_is_blocked(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    yard.running("src")
    yard.add("blocked", scopes=("src/a",), priority=9)
    yard.add("possible", repository=docs.id)
    assert yard.claim_one(repository=Reach.ANYWHERE).title == "possible"


def test_anywhere_finds_a_repository_where_only_a_lease_ran_out(yard: Yard) -> None:
    task = yard.add("abandoned")
    yard.claim_one()
    yard.store.advance(TTL)
    grant = yard.claim_one(repository=Reach.ANYWHERE)
    assert (grant.task, grant.epoch) == (task.task, 2)


def test_anywhere_finds_a_repository_where_only_waiters_are_left(yard: Yard) -> None:
    holder = yard.running("src")
    yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    yard.complete(holder)
    assert yard.claim_one(repository=Reach.ANYWHERE).title == "waits"


def test_anywhere_finds_a_repository_where_only_a_task_fell_due(yard: Yard) -> None:
    yard.add("due", delay=timedelta(seconds=5))
    assert yard.claim(repository=Reach.ANYWHERE) == []
    yard.store.advance(5_000)
    assert yard.claim_one(repository=Reach.ANYWHERE).title == "due"


def test_what_becomes_ready_before_the_last_grant_is_found_at_once(yard: Yard) -> None:
    """Scans start at a low-water mark; an answer is never empty because of it."""
    other = yard.store.connect()
    for n in range(3):
        yard.add(f"task {n}", scopes=(f"d{n}",))
    yard.claim(wanted=2)
    urgent = [NewTask(title="urgent", repository=yard.repository.id, priority=9)]
    other.tasks.submit(urgent)  # another process: this one's marks know nothing of it
    got = {grant.title for _ in range(2) for grant in yard.claim()}
    assert got == {"task 2", "urgent"}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_waiting_claim_gets_what_is_added_meanwhile(make_store: MakeStore, kind: str) -> None:
    """Long-poll, on the real clock: woken, not slept."""
    store = make_store(kind, real_time=True)
    yard = Yard(store, store.connect())
    got: list[Grant] = []

    def wait(yard: Yard) -> None:
        got.extend(yard.lessor.leases.claim(yard.request(), wait_ms=30_000))

    waiter = yard.in_background(wait)
    yard.add("at last")
    waiter.join(timeout=20)
    assert [grant.title for grant in got] == ["at last"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_waiting_claim_ends_when_its_time_is_over(make_store: MakeStore, kind: str) -> None:
    store = make_store(kind, real_time=True)
    yard = Yard(store, store.connect())
    assert yard.lessor.leases.claim(yard.request(), wait_ms=30) == []


def test_a_backlog_of_thousands_is_submitted_and_claimed_in_batches(yard: Yard) -> None:
    tasks = [
        NewTask(title=f"task {n}", repository=yard.repository.id, scopes=(f"dir/{n}",))
        for n in range(3_000)
    ]
    assert [s.number for s in yard.lessor.tasks.submit(tasks)] == list(range(1, 3_001))
    grants = yard.claim(wanted=1_000)
    assert [g.number for g in grants] == list(range(1, 1_001))
    assert [g.fence for g in grants] == list(range(1, 1_001))
    ended = yard.lessor.leases.complete([(g.holder, yard.result()) for g in grants])
    assert {e.state for e in ended} == {"succeeded"}
    assert len(yard.claim(wanted=1_000)) == 1_000


@pytest.mark.parametrize("wanted", [2, 3])
def test_a_batch_isnt_short_beside_however_many_wait_for_its_own_grants(
    yard: Yard, wanted: int
) -> None:
    """They overlap what the batch itself gets: nothing they could be parked on is there yet."""
    yard.add("first", scopes=("src",), priority=9)
    many = [
        yard.asked(f"n {n}", scopes=(f"src/{n}",), priority=5) for n in range(MOST_LOOKED_AT + 9)
    ]
    for start in range(0, len(many), 1_000):
        yard.lessor.tasks.submit(many[start : start + 1_000])
    for path in ("docs", "web"):
        yard.add(path, scopes=(path,), priority=1)
    request = yard.request(wanted=wanted)
    grants = yard.lessor.leases.claim(request)
    assert yard.titles(grants) == ["first", "docs", "web"][:wanted]
    assert [grant.fence for grant in grants] == list(range(1, wanted + 1))
    again = yard.lessor.leases.claim(request)
    assert [grant.holder for grant in again] == [grant.holder for grant in grants]
    rest = yard.claim(wanted=3)
    assert yard.titles(rest) == ["docs", "web"][wanted - 1 :]
    yard.complete(grants[0])
    assert yard.claim_one().title == "n 0"
