"""Nobody waits for ever: a task that was passed too often has its turn reserved."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import TTL, Yard
from lessor.model.grant import Grant
from lessor.model.lease import LeaseKind
from lessor.service.reading import LeaseRecord

HOUR = 3_600_000


def reservations(yard: Yard) -> list[LeaseRecord]:
    return [
        lease
        for lease in yard.lessor.leases.leases(live=True)
        if lease.kind is LeaseKind.RESERVATION
    ]


def pass_by(yard: Yard, holder: Grant, times: int) -> Grant:
    """Keep `src` busy: each time another narrow task is granted before the last one ends."""
    for _ in range(times):
        side = "src/right" if holder.scopes == ("src/left",) else "src/left"
        yard.add("narrow", scopes=(side,))
        (following,) = yard.claim()
        yard.complete(holder)
        holder = following
    return holder


def starving(yard: Yard, *, limit: int = 5, **more: object) -> tuple[str, Grant]:
    """A broad task that narrow ones pass, as often as they may; the claim that parks it counts not."""
    yard.lessor.registry.set_queue("default", overtake_limit=limit)
    holder = yard.running("src/left")
    broad = yard.add("broad", scopes=("src",), **more)
    return broad.task, pass_by(yard, holder, 1 + limit)


def test_a_task_that_was_passed_too_often_has_its_turn_reserved(yard: Yard) -> None:
    broad, holder = starving(yard)
    (turn,) = reservations(yard)
    assert turn.task == broad
    yard.add("narrow", scopes=("src/left", "src/middle"))
    assert yard.claim() == []
    yard.complete(holder)
    grant = yard.claim_one()
    assert grant.task == broad
    assert reservations(yard) == []
    assert "reserved" in yard.kinds(broad)
    yard.complete(grant)
    assert yard.claim_one().title == "narrow"


def test_before_the_limit_others_go_on_passing(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", overtake_limit=5)
    holder = yard.running("src/left")
    yard.add("broad", scopes=("src",))
    pass_by(yard, holder, 5)
    assert reservations(yard) == []


def test_a_task_that_waited_too_long_has_its_turn_reserved(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", overtake_limit=1_000, overtake_ms=30_000)
    holder = yard.running("src/left")
    broad = yard.add("broad", scopes=("src",))
    holder = pass_by(yard, holder, 1)
    assert reservations(yard) == []
    yard.store.advance(30_000)
    pass_by(yard, holder, 1)
    assert [turn.task for turn in reservations(yard)] == [broad.task]


def test_a_reservation_lets_a_higher_priority_through(yard: Yard) -> None:
    broad, holder = starving(yard)
    yard.add("urgent", scopes=("src/urgent",), priority=1)
    yard.add("same", scopes=("src/same",))
    yard.add("lower", scopes=("src/lower",), priority=-1)
    urgent = yard.claim_one()
    assert urgent.title == "urgent"
    assert yard.claim() == []
    yard.complete(holder)
    yard.complete(urgent)
    assert yard.claim_one().task == broad


def test_a_reservation_never_blocks_a_holders_widening(yard: Yard) -> None:
    _, holder = starving(yard)
    assert len(reservations(yard)) == 1
    yard.lessor.leases.widen(holder.holder, ["src/middle"])


def test_a_reservation_doesnt_block_what_lies_apart(yard: Yard) -> None:
    starving(yard)
    yard.add("apart", scopes=("docs",))
    assert yard.claim_one().title == "apart"


def test_one_turn_is_reserved_at_a_time(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", overtake_limit=3)
    holder = yard.running("src/left")
    first = yard.add("broad 1", scopes=("src",))
    second = yard.add("broad 2", scopes=("src",))
    holder = pass_by(yard, holder, 4)
    assert [turn.task for turn in reservations(yard)] == [first.task]
    yard.complete(holder)
    grant = yard.claim_one()
    assert grant.task == first.task
    yard.complete(grant)
    # Passed as often, the other one waits its turn without another reservation being needed.
    assert yard.claim_one().task == second.task


def test_a_reservation_ends_after_an_hour_and_the_count_begins_anew(yard: Yard) -> None:
    broad, holder = starving(yard)
    yard.store.advance(HOUR)
    yard.add("narrow", scopes=("src/right", "src/middle"))
    grants = yard.claim(wanted=9)
    # Everything ran out by now: the broad one, who waited longest, is simply first in line.
    assert grants[0].task in {broad, holder.task}
    assert reservations(yard) == []


@pytest.mark.parametrize("how", ["cancel", "block", "pause", "amend"])
def test_a_reservation_ends_with_its_reason(yard: Yard, how: str) -> None:
    broad, _ = starving(yard)
    assert len(reservations(yard)) == 1
    match how:
        case "cancel":
            yard.lessor.tasks.cancel([broad])
        case "block":
            yard.lessor.tasks.block([broad])
        case "amend":
            yard.lessor.tasks.amend(broad, yard.asked("broad no more", scopes=("lib",)))
        case _:
            yard.lessor.registry.set_queue("default", paused=True)
            yard.lessor.registry.set_queue("default", paused=False, overtake_limit=1_000)
    assert reservations(yard) == []
    said = {"cancel": "cancelled", "block": "blocked", "amend": "amended", "pause": "freed"}
    assert yard.kinds(broad)[-1] == said[how]
    yard.add("narrow", scopes=("src/middle",), priority=9)
    assert yard.claim_one().title == "narrow"


def test_no_turn_is_reserved_for_a_paused_queue(yard: Yard) -> None:
    yard.lessor.registry.set_queue("slow", overtake_limit=2)
    holder = yard.running("src/left")
    yard.add("broad", scopes=("src",), queue="slow")
    assert yard.claim(queue="slow") == []
    yard.lessor.registry.set_queue("slow", paused=True)
    pass_by(yard, holder, 6)
    assert reservations(yard) == []


def test_no_turn_is_reserved_for_what_no_worker_could_do(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", overtake_limit=2)
    gpu = yard.add_worker("gpu-1", capabilities=("gpu",))
    holder = yard.running("src/left")
    broad = yard.add("broad", scopes=("src",), capabilities=("gpu",))
    assert yard.claim(worker=gpu.id) == []
    holder = pass_by(yard, holder, 2)
    assert [turn.task for turn in reservations(yard)] == [broad.task]
    yard.lessor.registry.retire_worker(gpu.id)
    assert reservations(yard) == []
    freed = yard.lessor.tasks.history(broad.task)[-1]
    assert (freed.kind, dict(freed.facts)) == (
        "freed",
        {"kind": "reservation", "reason": "released"},
    )
    yard.lessor.leases.sweep()
    pass_by(yard, holder, 6)
    assert reservations(yard) == []


@pytest.mark.parametrize("why", ["its queue is paused", "no worker could do it"])
def test_a_turn_is_reserved_behind_a_task_that_cant_run(yard: Yard, why: str) -> None:
    yard.lessor.registry.set_queue("default", overtake_limit=3)
    yard.lessor.registry.set_queue("slow", overtake_limit=1_000)
    gpu = yard.add_worker("gpu-1", capabilities=("gpu",))
    yard.running("src/left")
    yard.add("first", scopes=("src",), queue="slow", capabilities=("gpu",))
    assert yard.claim(queue="slow", worker=gpu.id) == []
    broad = yard.add("broad", scopes=("src",))
    assert yard.claim() == []
    if why == "its queue is paused":
        yard.lessor.registry.set_queue("slow", paused=True)
    else:
        yard.lessor.registry.retire_worker(gpu.id)
    yard.store.advance(1_000)  # claims by one statement are tried again
    for number in range(3):
        assert reservations(yard) == []
        yard.add("apart", scopes=(f"docs/{number}",))
        assert yard.titles(yard.claim()) == ["apart"]
    assert [turn.task for turn in reservations(yard)] == [broad.task]


def test_what_passed_a_task_while_it_couldnt_run_doesnt_count(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", overtake_limit=4)
    holder = yard.running("src/left")
    broad = yard.add("broad", scopes=("src",))
    holder = pass_by(yard, holder, 2)
    yard.lessor.tasks.block([broad.task])
    holder = pass_by(yard, holder, 6)
    yard.lessor.tasks.unblock([broad.task])
    holder = pass_by(yard, holder, 2)
    assert reservations(yard) == []
    pass_by(yard, holder, 3)
    assert [turn.task for turn in reservations(yard)] == [broad.task]


def test_a_broad_task_gets_its_turn_against_a_steady_stream(yard: Yard) -> None:
    """The promise itself: whatever keeps coming, it runs after a bounded number of grants."""
    yard.lessor.registry.set_queue("default", overtake_limit=8)
    running = [yard.running(f"src/{n}") for n in range(4)]
    broad = yard.add("broad", scopes=("src",))
    for turn in range(200):
        yard.add("narrow", scopes=(f"src/{turn % 7}",))
        for grant in yard.claim(wanted=2):
            if grant.task == broad.task:
                assert turn < 40
                return
            running.append(grant)
        if turn % 2 and running:
            yard.complete(running.pop(0))
    raise AssertionError("it starved")


def test_a_delayed_task_isnt_passed_before_it_is_due(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", overtake_limit=2)
    holder = yard.running("src/left")
    yard.add("later", scopes=("src",), delay=timedelta(milliseconds=TTL // 2))
    pass_by(yard, holder, 6)
    assert reservations(yard) == []
