"""PostgreSQL, with two transactions held at the very point where it matters.

Time is read after the last lock; what a statement didn't see in its snapshot isn't lost; nobody
waits for somebody who waits for them.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from pgbouncer import PgBouncer, is_installed

from builders import TTL, MakeStore, StoreUnderTest, Yard
from held import holding, refusal, until_waiting
from invariants import check_invariants
from lessor.errors import LeaseLostError, LessorError, StoreUnavailableError
from lessor.model.grant import Failure, Grant, Reach, Result
from lessor.model.workspace import WorkspaceState
from lessor.store import Transaction
from lessor.store.postgres import PostgresStore

Write = Callable[[Yard, Grant], object]

ENDS: dict[str, Write] = {
    "complete": lambda y, g: y.complete(g),
    "fail": lambda y, g: y.lessor.leases.fail(g.holder, Failure(error="x")),
    "release": lambda y, g: y.lessor.leases.release(g.holder),
    "ask": lambda y, g: y.lessor.leases.ask(g.holder, "?"),
}
WRITES: dict[str, Write] = {
    **ENDS,
    "renew": lambda y, g: y.lessor.leases.renew_one(g.holder),
    "widen": lambda y, g: y.lessor.leases.widen(g.holder, ["docs"]),
}


@pytest.fixture
def yard(make_store: MakeStore) -> Iterator[Yard]:
    store = make_store("postgres")
    yield Yard(store, store.connect())
    check_invariants(store)


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """Threads, each with a connection of its own."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_waits_past_the_deadline_is_refused(
    yard: Yard, aside: ThreadPoolExecutor, write: str
) -> None:
    grant = yard.running("src")
    with holding(yard, "SELECT * FROM lease FOR UPDATE"):
        future = aside.submit(WRITES[write], yard, grant)
        until_waiting(yard)
        yard.store.advance(TTL)
    assert refusal(future).code == "lease_lost"
    assert yard.state(grant.task) == "running"


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_waits_and_is_still_in_time_is_taken(
    yard: Yard, aside: ThreadPoolExecutor, write: str
) -> None:
    grant = yard.running("src")
    with holding(yard, "SELECT * FROM lease FOR UPDATE"):
        future = aside.submit(WRITES[write], yard, grant)
        until_waiting(yard)
        yard.store.advance(TTL - 1)
    future.result(timeout=30)


@pytest.mark.parametrize("verb", ["complete", "renew"])
def test_the_first_of_a_list_doesnt_get_time_from_the_wait_for_the_second(
    yard: Yard, aside: ThreadPoolExecutor, verb: str
) -> None:
    grants = [yard.running("a"), yard.running("b")]
    leases = yard.lessor.leases
    with holding(yard, "SELECT * FROM lease WHERE id = 2 FOR UPDATE"):
        if verb == "complete":
            future = aside.submit(leases.complete, [(g.holder, Result()) for g in grants])
        else:
            future = aside.submit(leases.renew, [g.holder for g in grants])
        until_waiting(yard)
        yard.store.advance(TTL)
    assert [type(answer) for answer in future.result(timeout=30)] == [LeaseLostError] * 2


def test_a_grant_dates_from_when_the_repository_was_locked(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    yard.add("work")
    with holding(yard, "SELECT * FROM repository WHERE id = 1 FOR UPDATE"):
        future = aside.submit(yard.claim_one)
        until_waiting(yard)
        yard.store.advance(5_000)
        now = yard.lessor.now_ms()
    assert future.result(timeout=30).granted_ms == now


def test_a_grant_dates_from_when_its_limits_were_locked(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    yard.lessor.registry.set_limit("queue", "default", 1)
    grant = yard.running("src")
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    yard.add("there", repository=docs.id)
    with holding(yard, "SELECT * FROM usage_limit FOR UPDATE"):
        future = aside.submit(yard.claim_one, repository=docs.id)
        until_waiting(yard)
        yard.store.advance(5_000)
        yard.complete(grant)
        ended = yard.lessor.now_ms()
    assert future.result(timeout=30).granted_ms >= ended


def test_a_lease_that_is_being_written_isnt_taken_for_lapsed(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    """A renewal may be on its way: the claim passes it by and doesn't wait."""
    grant = yard.running("src")
    waiting = yard.add("waits", scopes=("src/a",), priority=1)
    yard.store.advance(TTL)
    with holding(yard, "SELECT * FROM lease FOR UPDATE"):
        assert aside.submit(yard.claim).result(timeout=30) == []
        assert aside.submit(yard.lessor.leases.sweep).result(timeout=30) == []
        assert yard.state(grant.task) == "running"
    assert yard.claim_one().task == waiting.task


def test_a_completion_that_waits_for_a_submit_frees_what_the_submit_made_wait(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    """The dependency isn't in the completion's snapshot; without care, nobody would ever free it."""
    grant = yard.running("src")
    with closing(psycopg.connect(yard.store.url)) as db:
        wish = yard.asked("after", needs=(grant.task,))
        (after,) = yard.lessor.tasks.submit_within(db, [wish])
        future = aside.submit(yard.complete, grant)
        until_waiting(yard)
        db.commit()
    assert future.result(timeout=30).state == "succeeded"
    assert yard.claim_one().task == after.task


def test_a_fused_completion_that_waits_for_a_submit_frees_it_too(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    grant = yard.running("src")
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    with closing(psycopg.connect(yard.store.url)) as db:
        wish = yard.asked("after", needs=(grant.task,), repository=docs.id)
        (after,) = yard.lessor.tasks.submit_within(db, [wish])
        future = aside.submit(
            yard.lessor.leases.complete_and_claim, [(grant.holder, Result())], yard.request()
        )
        until_waiting(yard)
        db.commit()
    (ended,), _ = future.result(timeout=30)
    assert ended.state == "succeeded"
    assert yard.claim_one(repository=docs.id).task == after.task


def test_a_submit_that_waits_for_a_completion_finds_the_need_met(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    grant = yard.running("src")
    with holding(yard, "SELECT * FROM task WHERE id = 1 FOR UPDATE"):
        ending = aside.submit(yard.complete, grant)
        until_waiting(yard)
        adding = aside.submit(yard.add, "after", needs=(grant.task,))
        until_waiting(yard, 2)
    assert ending.result(timeout=30).state == "succeeded"
    after = adding.result(timeout=30)
    assert yard.claim_one().task == after.task


def test_a_need_that_was_there_already_and_ends_meanwhile_is_seen(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    """Named by position, found by its unique key, and just being completed."""
    grant = yard.running("src", unique_key="k")
    before = yard.add("before", needs=(grant.task,))
    wishes = [yard.asked("again", unique_key="k"), yard.asked("after", needs_index=(0,))]
    with holding(
        yard, "SELECT * FROM task WHERE id = 2 FOR UPDATE"
    ):  # the completion frees it last
        with holding(
            yard, "LOCK TABLE submission IN EXCLUSIVE MODE"
        ):  # the submit has found #1 by now
            adding = aside.submit(yard.lessor.tasks.submit, wishes)
            until_waiting(yard)
            ending = aside.submit(yard.complete, grant)
            until_waiting(yard, 2)
        again, after = adding.result(timeout=30)
    ending.result(timeout=30)
    assert (again.task, again.created) == (grant.task, False)
    assert [g.task for g in yard.claim(wanted=9)] == [before.task, after.task]


@pytest.mark.parametrize("first", ["complete", "amend"])
def test_a_need_that_is_taken_away_while_it_is_met_is_counted_once(
    yard: Yard, aside: ThreadPoolExecutor, first: str
) -> None:
    grant = yard.running("src")
    after = yard.add("after", needs=(grant.task,))
    calls = [
        lambda: yard.complete(grant),
        lambda: yard.lessor.tasks.amend(after.task, yard.asked("after")),
    ]
    if first == "amend":
        calls.reverse()
    with holding(yard, "SELECT * FROM task WHERE id = 1 FOR UPDATE"):
        futures = []
        for n, call in enumerate(calls):
            futures.append(aside.submit(call))
            until_waiting(yard, n + 1)
    for future in futures:
        future.result(timeout=30)
    assert yard.claim_one().task == after.task


def test_a_need_that_is_added_while_it_ends_is_seen(yard: Yard, aside: ThreadPoolExecutor) -> None:
    grant = yard.running("src")
    after = yard.add("after", scopes=("docs",))
    with holding(yard, "SELECT * FROM task WHERE id = 1 FOR UPDATE"):
        amending = aside.submit(
            yard.lessor.tasks.amend, after.task, yard.asked("after", needs=(grant.task,))
        )
        until_waiting(yard)
        ending = aside.submit(yard.complete, grant)
        until_waiting(yard, 2)
    amending.result(timeout=30)
    ending.result(timeout=30)
    assert yard.claim_one().task == after.task


def test_paths_that_change_while_a_claim_decides_are_never_granted_unseen(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    """By globs, which no index can forbid: the amendment waits for the claim's repository."""
    yard.running("src/*.py")
    task = yard.add("apart", scopes=("docs",))
    with holding(yard, "SELECT * FROM task WHERE id = 2 FOR UPDATE"):
        claiming = aside.submit(yard.claim)
        until_waiting(yard)
        amending = aside.submit(
            yard.lessor.tasks.amend, task.task, yard.asked("within", scopes=("src/a*.py",))
        )
        until_waiting(yard, 2)
    (grant,) = claiming.result(timeout=30)
    assert grant.scopes == ("docs",)
    assert refusal(amending).code == "transition_refused"


def test_paths_go_over_to_a_hold_only_under_the_repositorys_lock(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    grant = yard.running("src")
    ((before,),) = yard.lessor.store.once("turn_repository", repository_id=1)
    with holding(yard, "SELECT * FROM repository WHERE id = 1 FOR UPDATE"):
        future = aside.submit(yard.lessor.leases.ask, grant.holder, "which?")
        until_waiting(yard)
        assert yard.state(grant.task) == "running"
    assert future.result(timeout=30).state == "needs_person"
    assert yard.lessor.store.once("turn_repository", repository_id=1) == [(before + 2,)]


def test_a_key_that_another_transaction_is_adding_is_waited_for(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    for end in ("commit", "rollback"):
        with closing(psycopg.connect(yard.store.url)) as db:
            (first,) = yard.lessor.tasks.submit_within(
                db, [yard.asked("a", unique_key=end, repository=None)]
            )
            future = aside.submit(yard.add, "b", free=True, unique_key=end)
            until_waiting(yard)
            getattr(db, end)()
        second = future.result(timeout=30)
        assert second.created == (end == "rollback")
        assert (second.task == first.task) == (end == "commit")


def test_the_same_request_sent_twice_at_once_is_granted_once(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    for n in range(4):
        yard.add(f"task {n}", scopes=(f"d{n}",))
    request = yard.request()
    with holding(yard, "SELECT * FROM repository WHERE id = 1 FOR UPDATE"):
        futures = [aside.submit(yard.lessor.leases.claim, request) for _ in range(3)]
        until_waiting(yard, 3)
    answers = [future.result(timeout=30) for future in futures]
    assert len({grant.holder.token for (grant,) in answers}) == 1
    assert len(yard.lessor.leases.leases()) == 1


def test_the_same_submit_sent_twice_at_once_is_made_once(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    wishes = [yard.asked("a"), yard.asked("b")]
    with holding(yard, "SELECT * FROM repository WHERE id = 1 FOR UPDATE"):
        futures = [
            aside.submit(yard.lessor.tasks.submit, wishes, request_id="same") for _ in range(3)
        ]
        until_waiting(yard, 3)
    answers = [future.result(timeout=30) for future in futures]
    assert answers[0] == answers[1] == answers[2]
    assert yard.lessor.tasks.counts(everywhere=True) == {"queued": 2}


def test_a_cancel_and_a_claim_of_the_same_task_agree(yard: Yard, aside: ThreadPoolExecutor) -> None:
    task = yard.add("work")
    with holding(yard, "SELECT * FROM task FOR UPDATE"):
        claiming = aside.submit(yard.claim)
        until_waiting(yard)
        cancelling = aside.submit(yard.lessor.tasks.cancel, [task.task])
        until_waiting(yard, 2)
    grants = claiming.result(timeout=30)
    assert cancelling.result(timeout=30)[0].state == "cancelled"
    for grant in grants:
        assert yard.refused(lambda g=grant: yard.complete(g)).code == "lease_lost"
    assert yard.state(task.task) == "cancelled"


def test_a_busy_repository_is_passed_over_by_a_claim_anywhere(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    yard.add("first", priority=5)
    yard.add("second", repository=docs.id)
    with holding(yard, "SELECT * FROM repository WHERE id = 1 FOR UPDATE"):
        (grant,) = aside.submit(yard.claim, repository=Reach.ANYWHERE).result(timeout=30)
    assert grant.title == "second"


def test_each_busy_repository_is_waited_for_before_the_answer_is_nothing(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    yard.running("src")
    yard.add("blocked", scopes=("src/a",), priority=5)
    yard.add("ready", repository=docs.id)
    with holding(yard, "SELECT * FROM repository WHERE id > 0 FOR UPDATE"):
        future = aside.submit(yard.claim, repository=Reach.ANYWHERE)
        until_waiting(yard)
    assert yard.titles(future.result(timeout=30)) == ["ready"]


def test_whoever_waits_too_long_is_told_to_try_again(make_store: MakeStore) -> None:
    store = make_store("postgres")
    yard = Yard(store, store.connect())
    yard.add("work")
    yard.lessor.store._line().connection.execute("SET lock_timeout = 50")
    with holding(yard, "SELECT * FROM repository WHERE id = 1 FOR UPDATE"):
        error = yard.refused(yard.claim)
    assert (error.code, error.facts["retry_ms"]) == ("busy", 100)
    assert len(yard.claim()) == 1


def test_all_threads_that_wait_are_woken_by_one_notification(
    yard: Yard, aside: ThreadPoolExecutor
) -> None:
    store = yard.lessor.store
    futures = [aside.submit(store.wait, 30_000) for _ in range(4)]
    while not all(future.done() for future in futures):
        store.notify()
        threading.Event().wait(0.01)
    for future in futures:
        future.result()


def test_the_connections_of_threads_that_are_gone_are_closed(yard: Yard) -> None:
    for _ in range(5):
        thread = threading.Thread(target=yard.claim)
        thread.start()
        thread.join(timeout=30)
    assert len(yard.lessor.store._open) <= 2


def test_nobody_waits_in_a_circle(yard: Yard) -> None:
    """Every operation at once from many threads: only the declared refusals, and no deadlock at all."""
    chance = random.Random(20_261_129)
    for kind, key in (("queue", "default"), ("key", "db"), ("agent", "claude-1")):
        yard.lessor.registry.set_limit(kind, key, 6)
    yard.lessor.registry.set_queue("default", overtake_limit=1)
    repositories = [
        yard.repository.id,
        yard.lessor.registry.add_repository("github.com/acme/docs").id,
    ]
    tasks: list[str] = []
    for n in range(150):
        needs = tuple(chance.sample(tasks, min(len(tasks), chance.randrange(3))))
        scopes = (f"d{chance.randrange(6)}/{chance.choice('abc')}",)
        tasks.append(
            yard.add(
                f"task {n}",
                repository=chance.choice(repositories),
                scopes=scopes,
                needs=needs,
                limit_key=chance.choice([None, "db"]),
                max_attempts=99,
            ).task
        )
    faults: list[BaseException] = []

    def play(seed: int) -> None:
        dice = random.Random(seed)
        held: list[Grant] = []
        for _ in range(60):
            try:
                _move(yard, dice, held, repositories, tasks)
            except LessorError as error:
                if error.code not in EXPECTED:
                    faults.append(error)
            except BaseException as error:  # noqa: BLE001 - told by the assertion below
                faults.append(error)

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert faults == []
    yard.store.sql("SELECT pg_stat_force_next_flush()")
    (deadlocks,) = yard.store.sql(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    assert deadlocks == (0,)


EXPECTED = {"lease_lost", "scope_held", "transition_refused", "cycle", "conflict"}


def _move(
    yard: Yard, dice: random.Random, held: list[Grant], repositories: list[str], tasks: list[str]
) -> None:
    leases, some = yard.lessor.leases, dice.sample(tasks, 3)
    match dice.randrange(11):
        case 0 | 1 | 2:
            held += yard.claim(repository=dice.choice(repositories), wanted=dice.randint(1, 3))
        case 3 if held:
            leases.complete([(g.holder, Result()) for g in held[:2]])
            del held[:2]
        case 4 if held:
            request = yard.request(repository=dice.choice(repositories))
            held += leases.complete_and_claim([(held.pop(0).holder, Result())], request)[1]
        case 5 if held:
            leases.widen(dice.choice(held).holder, [f"d{dice.randrange(6)}/{dice.choice('abcd')}"])
        case 6 if held:
            leases.release(held.pop().holder)
        case 7:
            yard.lessor.tasks.block(some)
            yard.lessor.tasks.unblock(some)
            yard.lessor.registry.set_queue("default", paused=True)
            yard.lessor.registry.set_queue("default", paused=False)
        case 8:
            yard.lessor.tasks.amend(
                some[0], yard.asked("new", needs=tuple(some[1:]), repository=None)
            )
        case 9 if held:
            asked = held.pop()
            leases.ask(asked.holder, "which one?")
            yard.lessor.tasks.cancel([asked.task])
        case _:
            leases.sweep()
            yard.add("more", needs=tuple(some[:2]), scopes=(f"d{dice.randrange(6)}",))


@pytest.mark.parametrize("pooled", [False, True])
def test_who_stops_in_the_middle_of_a_transaction_keeps_the_lock_for_seconds_only(
    yard: Yard, aside: ThreadPoolExecutor, pooled: bool
) -> None:
    """A process that is paused or cut off there would else stop the repository's claims for hours."""
    if pooled and not is_installed():
        pytest.skip("there is no pgbouncer here")
    pooler = PgBouncer(yard.store.url) if pooled else None
    through = StoreUnderTest("postgres", pooler.url, yard.store.clock) if pooler else yard.store
    paused = through.connect()
    locked, go_on = threading.Event(), threading.Event()

    def stop_with_the_lock(tx: Transaction) -> object:
        row = yard.lessor.naming.repository_row(yard.repository.id)
        tx.rows("lock_repository", repository_id=row)
        locked.set()
        go_on.wait()
        return tx.now()

    yard.add("next", scopes=("src",))
    stopped = aside.submit(paused.store.write, stop_with_the_lock)
    locked.wait()
    try:
        assert yard.claim_one().title == "next"
    finally:
        go_on.set()
    with pytest.raises(StoreUnavailableError):
        stopped.result()
    paused.close()
    if pooler:
        pooler.close()


def test_a_server_that_says_nothing_is_given_up_as_the_url_says_or_within_half_a_minute(
    yard: Yard,
) -> None:
    """Where packets are lost, a kernel tries for a quarter of an hour, and waits for an answer for two."""
    given = f"{yard.store.url}{'&' if '?' in yard.store.url else '?'}tcp_user_timeout=7000"
    for url, expected in ((yard.store.url, "20000"), (given, "7000")):
        store = PostgresStore(url)
        parameters = store._line().connection.info.get_parameters()
        store.close()
        assert parameters["tcp_user_timeout"] == expected
        assert parameters["keepalives_idle"] == "10"


@pytest.mark.parametrize("adopts", [False, True])
def test_a_workspace_that_is_gone_meanwhile_stays_gone(
    yard: Yard, aside: ThreadPoolExecutor, adopts: bool
) -> None:
    grant = yard.running("src")
    workspaces = yard.lessor.workspaces
    number = workspaces.reserve(grant.holder, host_id="h", path="/w/1", branch="ai/1", base="a")
    known = workspaces.get(number)
    yard.lessor.leases.end_gone(grant.task, epoch=1, proof="gone")
    again = yard.claim_one(task=grant.task)
    with closing(psycopg.connect(yard.store.url, options="-c search_path=lessor")) as db:
        db.execute("UPDATE workspace SET state = 'gone'")
        if adopts:
            future = aside.submit(workspaces.adopt, again.holder, number)
        else:
            future = aside.submit(workspaces.move, known, WorkspaceState.DIRTY)
        until_waiting(yard)
        db.commit()
    assert refusal(future).code == "transition_refused"
    assert workspaces.get(number).state is WorkspaceState.GONE
