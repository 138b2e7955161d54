"""Each change has its event, in the same transaction, numbered without gaps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import TTL, Yard
from lessor.errors import ConstraintError
from lessor.service.lessor import Lessor
from lessor.service.rows import pack_facts


def test_the_history_tells_the_whole_life_of_a_task(yard: Yard) -> None:
    task = yard.add("work", scopes=("src",), max_attempts=9).task
    grant = yard.claim_one()
    yard.lessor.leases.widen(grant.holder, ["docs"])
    yard.store.advance(TTL)
    grant = yard.claim_one(worker=yard.other.id)
    yard.lessor.leases.ask(grant.holder, "which?")
    yard.lessor.tasks.answer(task, "left", actor="ada")
    yard.lessor.leases.release(yard.claim_one().holder)
    yard.lessor.tasks.block([task])
    yard.lessor.tasks.unblock([task])
    yard.lessor.tasks.amend(task, yard.asked("better words"), actor="ada")
    grant = yard.claim_one()
    yard.lessor.leases.force_release(task, actor="ada", reason="hung", checked="ps")
    yard.refused(lambda: yard.complete(grant))
    yard.lessor.leases.acknowledge(grant.holder)
    yard.complete(yard.claim_one())
    history = yard.lessor.tasks.history(task)
    assert [(e.kind, e.epoch) for e in history] == [
        ("submitted", 0),
        ("claimed", 1),
        ("widened", 1),
        ("lapsed", 1),
        ("claimed", 2),
        ("asked", 2),
        ("answered", 2),
        ("claimed", 3),
        ("released", 3),
        ("blocked", 3),
        ("unblocked", 3),
        ("amended", 3),
        ("claimed", 4),
        ("forced", 4),
        ("late", 4),
        ("acknowledged", 4),
        ("claimed", 5),
        ("completed", 5),
    ]
    assert [e.n for e in history] == list(range(1, len(history) + 1))
    assert [e.at_ms for e in history] == sorted(e.at_ms for e in history)
    assert history[1].facts == {"worker": yard.worker.id, "agent": "claude-1"}
    assert history[4].facts["agent"] == "codex-1"


def test_a_history_is_read_in_pages(yard: Yard) -> None:
    task = yard.add("work").task
    for _ in range(3):
        yard.lessor.tasks.block([task])
        yard.lessor.tasks.unblock([task])
    pages, after = [], 0
    while page := yard.lessor.tasks.history(task, after=after, most=2):
        pages += [entry.n for entry in page]
        after = page[-1].n
    assert pages == list(range(1, 8))


def test_a_change_that_is_rolled_back_leaves_no_event(yard: Yard) -> None:
    done = yard.running("a")
    yard.complete(done)
    queued = yard.add("queued").task
    yard.refused(lambda: yard.lessor.tasks.cancel([queued, done.task]))
    assert yard.kinds(queued) == ["submitted"]


def test_an_event_comes_with_its_change_or_neither_does(yard: Yard) -> None:
    """Where the event can't be written, the change isn't made either."""
    grant = yard.running("src")
    (row,) = yard.store.sql("SELECT id, events FROM task")
    yard.store.sql(
        "INSERT INTO event (task_id, n, at_ms, kind, epoch, facts) VALUES (:t, :n, 0, 'stray', 0, :f)",
        t=row[0],
        n=row[1] + 1,
        f=pack_facts(),
    )
    changes: list[Callable[[Lessor], object]] = [
        lambda it: it.leases.complete_one(grant.holder, yard.result()),
        lambda it: it.leases.release(grant.holder),
        lambda it: it.leases.widen(grant.holder, ["docs"]),
        lambda it: it.tasks.cancel([grant.task]),
    ]
    plainly = yard.store.connect()  # what can't happen is in no table of refusals
    for change in changes:
        with pytest.raises(ConstraintError):
            change(plainly)
    yard.store.sql("UPDATE task SET events = events + 1")
    assert yard.state(grant.task) == "running"
    assert yard.lessor.leases.watch(grant.holder).live
    assert yard.complete(grant).state == "succeeded"


def test_renewals_write_no_event(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.leases.renew_one(grant.holder)
    assert yard.kinds(grant.task) == ["submitted", "claimed"]


def test_text_in_an_event_comes_back_as_it_went_in(yard: Yard) -> None:
    odd = "naïve \u2028 \x07 \\u0000 ' \" ; = {} \U0001f600"
    grant = yard.running("src")
    yard.lessor.tasks.cancel([grant.task], actor="ada", reason=odd)
    assert yard.lessor.tasks.history(grant.task)[-1].facts["reason"] == odd
