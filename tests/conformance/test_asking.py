"""A question for a person ends the lease, and holds its paths for a while."""

from __future__ import annotations

from builders import Yard
from lessor.model.grant import Result

HOURS = 3_600_000


def test_a_question_ends_the_lease_and_waits_for_a_person(yard: Yard) -> None:
    grant = yard.running("src")
    ended = yard.lessor.leases.ask(grant.holder, "tabs or spaces?", result=Result(commit="c" * 40))
    assert (ended.end, ended.state) == ("asked", "needs_person")
    task = yard.lessor.tasks.task(grant.task)
    assert (task.said, task.commit) == ("tabs or spaces?", "c" * 40)
    assert task.charged == 0
    assert yard.claim() == []
    assert yard.lessor.leases.ask(
        grant.holder, "tabs or spaces?", result=Result(commit="c" * 40)
    ).repeated


def test_its_paths_stay_held_for_four_hours(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.leases.ask(grant.holder, "which?")
    yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    (held,) = yard.lessor.leases.who("src/a", repository=yard.repository.id)
    assert (held.kind, held.number) == ("hold", grant.number)
    yard.store.advance(4 * HOURS - 1)
    assert yard.claim() == []
    yard.store.advance(1)
    assert yard.claim_one().title == "waits"


def test_an_answer_queues_the_task_again_with_the_answer_in_its_prompt(yard: Yard) -> None:
    grant = yard.running("src", prompt="Indent it.")
    yard.lessor.leases.ask(grant.holder, "tabs or spaces?")
    (decided,) = yard.lessor.tasks.answer(grant.task, "spaces", actor="ada")
    assert decided.state == "queued"
    again = yard.claim_one()
    assert (again.task, again.epoch) == (grant.task, 2)
    assert again.prompt == "Indent it.\n\nspaces"
    # Its own hold gave way to its lease, and frees nothing when its time would have been over.
    yard.store.advance(1)
    assert [h.kind for h in yard.lessor.leases.who("src", repository=yard.repository.id)] == [
        "lease"
    ]


def test_waiters_of_the_holder_wait_for_the_hold(yard: Yard) -> None:
    grant = yard.running("src")
    waiting = yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    yard.lessor.leases.ask(grant.holder, "which?")
    assert yard.claim() == []
    assert yard.lessor.tasks.why(waiting.task).cause == "hold"
    yard.lessor.tasks.cancel([grant.task])
    assert yard.claim_one().task == waiting.task


def test_a_hold_isnt_widened_over(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.leases.ask(grant.holder, "which?")
    other = yard.running("docs")
    assert (
        yard.refused(lambda: yard.lessor.leases.widen(other.holder, ["src/x"])).code == "scope_held"
    )


def test_a_task_without_a_repository_can_ask_too(yard: Yard) -> None:
    task = yard.add("free", free=True)
    (grant,) = yard.claim_free()
    assert yard.lessor.leases.ask(grant.holder, "really?").state == "needs_person"
    yard.lessor.tasks.answer(task.task, "yes")
    assert yard.claim_free()[0].epoch == 2


def test_a_lapsed_hold_leaves_the_question_open(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.leases.ask(grant.holder, "which?")
    yard.store.advance(5 * HOURS)
    yard.lessor.leases.sweep()
    assert yard.state(grant.task) == "needs_person"
    freed = yard.lessor.tasks.history(grant.task)[-1]
    assert (freed.kind, freed.epoch, dict(freed.facts)) == (
        "freed",
        1,
        {"kind": "hold", "reason": "lapsed"},
    )
    assert yard.lessor.leases.who("src", repository=yard.repository.id) == []
    yard.lessor.tasks.answer(grant.task, "the left one")
    assert yard.claim_one().task == grant.task
