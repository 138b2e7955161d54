"""Why a task doesn't run, and who holds a path: one sentence, for each reason."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import TTL, Yard
from lessor.model.shadow import Unlanded
from lessor.model.waiting import Cause, Why

HOUR = 3_600_000


def why(yard: Yard, task: str) -> Why:
    found = yard.lessor.tasks.why(task)
    assert found.task == task
    assert found.sentence.startswith(f"#{found.number} ")
    return found


def test_it_runs(yard: Yard) -> None:
    grant = yard.running("src")
    found = why(yard, grant.task)
    assert (found.cause, found.state, found.at_ms) == (Cause.RUNNING, "running", grant.expires_ms)
    assert found.holder is not None
    assert (found.holder.agent, found.holder.epoch, found.holder.paths) == ("claude-1", 1, ("src",))
    yard.store.advance(TTL)
    assert "it has run out; the next claim ends it" in why(yard, grant.task).sentence


def test_it_is_ready(yard: Yard) -> None:
    first, second = yard.add("first"), yard.add("second")
    assert (why(yard, first.task).cause, why(yard, first.task).position) == (Cause.READY, 1)
    found = why(yard, second.task)
    assert (found.cause, found.position, found.next_step) == (Cause.READY, 2, "lessor run")
    assert "1 goes before it" in found.sentence


@pytest.mark.parametrize("parked", [False, True])
def test_it_waits_for_a_lease(yard: Yard, parked: bool) -> None:
    """Said before any claim has looked at it, too."""
    grant = yard.running("src", "docs/*.md")
    task = yard.add("waits", scopes=("src/a", "docs/intro.md"))
    if parked:
        assert yard.claim() == []
    found = why(yard, task.task)
    assert found.cause is Cause.LEASE
    assert found.overlaps == (("docs/intro.md", "docs/*.md"), ("src/a", "src"))
    assert found.holder is not None
    assert (found.holder.lease, found.holder.number) == (grant.lease, grant.number)
    assert (found.at_ms, found.holder.latest_ms) == (grant.expires_ms, grant.max_until_ms)
    assert f"waits for #{grant.number}" in found.sentence
    assert "claude-1" in found.sentence
    assert "720 min at the latest" in found.sentence
    assert (found.position, found.reserved, found.next_step) == (
        1,
        False,
        f"lessor show {grant.number}",
    )


def test_it_says_how_many_wait_before_it(yard: Yard) -> None:
    yard.running("src")
    tasks = [yard.add(f"waits {n}", scopes=("src",)) for n in range(3)]
    assert yard.claim() == []
    assert [why(yard, t.task).position for t in tasks] == [1, 2, 3]
    assert "2 wait before it" in why(yard, tasks[2].task).sentence


def test_it_says_when_what_it_waited_for_has_just_ended(yard: Yard) -> None:
    grant = yard.running("src")
    task = yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    yard.complete(grant)
    found = why(yard, task.task)
    assert found.cause is Cause.READY
    assert "has ended" in found.sentence


def test_it_waits_for_a_reserved_turn(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", overtake_limit=1)
    yard.running("src/left")
    broad = yard.add("broad", scopes=("src",))
    assert yard.claim() == []
    yard.running("docs")
    yard.running("lib")
    narrow = yard.add("narrow", scopes=("src/right",))
    assert yard.claim() == []
    found = why(yard, narrow.task)
    assert found.cause is Cause.RESERVATION
    assert f"#{broad.number}" in found.sentence
    assert why(yard, broad.task).reserved
    assert "its turn is reserved" in why(yard, broad.task).sentence
    urgent = yard.add("urgent", scopes=("src/right",), priority=1)
    assert why(yard, urgent.task).cause is Cause.READY


def test_it_waits_for_a_hold(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.leases.ask(grant.holder, "which?")
    task = yard.add("waits", scopes=("src/a",))
    found = why(yard, task.task)
    assert found.cause is Cause.HOLD
    assert found.holder is not None
    assert found.holder.kind == "hold"


@pytest.mark.parametrize("parked", [False, True])
def test_it_waits_for_a_result_to_land(yard: Yard, parked: bool) -> None:
    yard.lessor.registry.set_unlanded(yard.repository.id, Unlanded.WAIT)
    grant = yard.running("src")
    yard.complete(grant, base="0" * 40, commit="a" * 40)
    task = yard.add("waits", scopes=("src/a",))
    if parked:
        assert yard.claim() == []
    found = why(yard, task.task)
    assert (found.cause, found.overlaps) == (Cause.SHADOW, (("src/a", "src"),))
    assert f"waits for the result of #{grant.number} holds src to land (src)" in found.sentence
    assert "72 h at the latest" in found.sentence
    assert found.holder is not None
    assert (found.holder.kind, found.holder.paths) == ("shadow", ("src",))
    assert found.next_step == f"lessor land {grant.number}"


def test_it_waits_for_one_of_several_results_to_land(yard: Yard) -> None:
    for path in ("src/a", "src/b"):
        yard.complete(yard.running(path), base="0" * 40, commit="a" * 40)
    task = yard.add("waits", scopes=("src",))
    assert yard.claim() == []
    assert "1 more lies on its paths, and none contains the others" in why(yard, task.task).sentence


def test_it_says_on_which_result_it_begins_and_stands(yard: Yard) -> None:
    grant = yard.running("src")
    yard.complete(grant, base="0" * 40, commit="a" * 40)
    task = yard.add("next", scopes=("src",))
    assert f"on top of the result of #{grant.number}" in why(yard, task.task).sentence
    yard.claim_one()
    assert f"on top of #{grant.number} (aaaaaaa)" in why(yard, task.task).sentence


def test_it_waits_for_other_tasks(yard: Yard) -> None:
    first, second = yard.add("first"), yard.add("second")
    task = yard.add("last", needs=(first.task, second.task))
    found = why(yard, task.task)
    assert found.cause is Cause.TASKS
    assert found.needs == (first.task, second.task)
    assert f"waits for #{first.number} (queued), #{second.number} (queued)" in found.sentence
    yard.complete(yard.claim_one())
    assert why(yard, task.task).needs == (second.task,)
    yard.lessor.tasks.cancel([second.task])
    assert f"can't start: #{second.number}" in why(yard, task.task).sentence


def test_it_waits_for_its_time(yard: Yard) -> None:
    task = yard.add("later", delay=timedelta(seconds=90))
    found = why(yard, task.task)
    assert (found.cause, found.at_ms) == (Cause.TIME, yard.lessor.now_ms() + 90_000)
    assert "may start in 90 s" in found.sentence
    yard.store.advance(90_000)
    assert why(yard, task.task).cause is Cause.READY


def test_its_queue_is_paused(yard: Yard) -> None:
    task = yard.add("work", queue="nightly")
    yard.lessor.registry.set_queue("nightly", paused=True)
    found = why(yard, task.task)
    assert (found.cause, found.next_step) == (Cause.PAUSED, "lessor queue resume nightly")


@pytest.mark.parametrize(("kind", "key"), [("queue", "default"), ("key", "db")])
def test_a_limit_is_reached(yard: Yard, kind: str, key: str) -> None:
    yard.running("a", limit_key="db")
    task = yard.add("work", limit_key="db")
    yard.lessor.registry.set_limit(kind, key, 1)
    found = why(yard, task.task)
    assert found.cause is Cause.LIMIT
    assert f"1 of 1 at once run for the {kind} {key}" in found.sentence


def test_no_worker_could_do_it(yard: Yard) -> None:
    task = yard.add("work", agent="codex", capabilities=("gpu",))
    found = why(yard, task.task)
    assert found.cause is Cause.AGENT
    assert "codex with gpu" in found.sentence
    yard.add_worker("codex-7", kind="codex", capabilities=("gpu", "net"))
    assert why(yard, task.task).cause is Cause.READY


def test_a_person_is_asked(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.leases.ask(grant.holder, "which?")
    assert why(yard, grant.task).cause is Cause.PERSON


def test_a_state_keeps_it(yard: Yard) -> None:
    blocked = yard.add("blocked")
    yard.lessor.tasks.block([blocked.task])
    found = why(yard, blocked.task)
    assert (found.cause, found.next_step) == (Cause.STATE, f"lessor unblock {blocked.number}")
    spent = yard.running("src", max_attempts=1)
    yard.fail(spent)
    found = why(yard, spent.task)
    assert (found.cause, found.next_step) == (Cause.STATE, f"lessor retry {spent.number}")


def test_it_is_finished(yard: Yard) -> None:
    grant = yard.running("src")
    yard.complete(grant)
    assert (why(yard, grant.task).cause, why(yard, grant.task).state) == (
        Cause.FINISHED,
        "succeeded",
    )


def test_every_cause_has_a_test() -> None:
    """A cause that is added shows up here."""
    assert {cause.value for cause in Cause} == {
        *("running", "ready", "lease", "reservation", "hold", "shadow", "tasks", "time"),
        *("paused", "limit", "agent", "person", "state", "finished"),
    }


def test_it_says_when_it_waits_longer_than_its_queue_allows(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", wait_max_ms=HOUR)
    task = yard.add("work")
    later = yard.add("later", delay=timedelta(hours=1))
    yard.store.advance(HOUR - 1)
    assert not why(yard, task.task).overdue
    assert yard.lessor.tasks.overdue(repository=yard.repository.id) == []
    yard.store.advance(1)
    assert why(yard, task.task).overdue
    assert [t.id for t in yard.lessor.tasks.overdue(repository=yard.repository.id)] == [task.task]
    assert not why(yard, later.task).overdue


def test_who_holds_a_path(yard: Yard) -> None:
    grant = yard.running("src", "docs/*.md")
    reader = yard.running(reads=("lib",))
    who = yard.lessor.leases.who
    (held,) = who("src/a/b", repository=yard.repository.id)
    assert (held.lease, held.kind, held.paths) == (grant.lease, "lease", ("src",))
    assert (held.since_ms, held.ends_ms) == (grant.granted_ms, grant.expires_ms)
    assert [h.paths for h in who("docs/intro.md", repository=yard.repository.id)] == [
        ("docs/*.md",)
    ]
    assert [h.lease for h in who("lib/x", repository=yard.repository.id)] == [reader.lease]
    assert [h.lease for h in who(".", repository=yard.repository.id)] == [grant.lease, reader.lease]
    assert who("tests", repository=yard.repository.id) == []
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    assert who("src", repository=docs.id) == []
