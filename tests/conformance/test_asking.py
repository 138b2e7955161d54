"""A question for a person ends the lease, and holds its paths for a while."""

from __future__ import annotations

from builders import Yard
from lessor.model.grant import Grant, Result
from lessor.model.shadow import Unlanded

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


def asked_with_commits(yard: Yard, *scopes: str, base: str | None = "0" * 40) -> Grant:
    grant = yard.running(*scopes)
    yard.lessor.leases.ask(grant.holder, "which?", result=Result(base=base, commit="c" * 40))
    return grant


def test_a_hold_that_runs_out_leaves_a_shadow_where_there_are_commits(yard: Yard) -> None:
    grant = asked_with_commits(yard, "src", base="0" * 40)
    yard.add("next", scopes=("src/a",))
    assert yard.claim() == []
    yard.store.advance(4 * HOURS)
    following = yard.claim_one()
    assert following.stand is not None
    assert (following.stand.task, following.stand.branch) == (grant.task, grant.branch)
    assert following.stand.commit == "c" * 40
    freed = yard.lessor.tasks.history(grant.task)[-1]
    assert dict(freed.facts) == {"kind": "hold", "reason": "lapsed", "left": "shadow"}
    assert yard.state(grant.task) == "needs_person"
    assert yard.lessor.landings.results() == []
    (work,) = yard.lessor.landings.results(unfinished=True)
    assert (work.task, work.shadowed, work.finished) == (grant.task, True, False)


def test_a_hold_without_a_commit_of_its_own_leaves_none(yard: Yard) -> None:
    asked_with_commits(yard, "src", base="c" * 40)
    yard.store.advance(4 * HOURS)
    yard.add("next", scopes=("src",))
    assert yard.claim_one().stand is None


def test_what_the_question_doesnt_say_the_workspaces_record_does(yard: Yard) -> None:
    for path, base in (("src/a", "c" * 40), ("src/b", "0" * 40)):
        grant = yard.running(path)
        yard.lessor.workspaces.reserve(
            grant.holder, host_id="h", path=f"/w/{path}", branch=str(grant.branch), base=base
        )
        yard.lessor.leases.ask(grant.holder, "which?", result=Result(commit="c" * 40))
    yard.store.advance(4 * HOURS)
    yard.add("next", scopes=("src/a",))
    yard.add("last", scopes=("src/b",))
    assert [bool(one.stand) for one in (yard.claim_one(), yard.claim_one())] == [False, True]


def test_the_shadow_lies_on_what_was_held_for_writing(yard: Yard) -> None:
    """Not on what the task asks for since: its commits are where they were made."""
    grant = yard.running("src", reads=("docs",))
    yard.lessor.leases.ask(grant.holder, "which?", result=Result(commit="c" * 40))
    yard.lessor.tasks.answer(grant.task, "left")
    yard.lessor.tasks.amend(grant.task, yard.asked("elsewhere", scopes=("web",)))
    yard.store.advance(4 * HOURS)
    yard.lessor.leases.sweep()
    assert yard.store.sql("SELECT text FROM shadow_scope") == [("src",)]


def test_the_task_itself_goes_on_over_its_own_shadow(yard: Yard) -> None:
    grant = asked_with_commits(yard, "src")
    yard.store.advance(4 * HOURS)
    yard.lessor.leases.sweep()
    yard.lessor.tasks.answer(grant.task, "the left one")
    again = yard.claim_one()
    assert (again.task, again.stand) == (grant.task, None)
    yard.complete(again, base="0" * 40, commit="d" * 40)
    yard.add("next", scopes=("src",))
    stand = yard.claim_one().stand
    assert stand is not None
    assert stand.commit == "d" * 40


def test_what_was_built_on_it_is_no_ground_for_the_task_itself(yard: Yard) -> None:
    """Each would wait for the other's landing."""
    grant = asked_with_commits(yard, "src")
    yard.store.advance(4 * HOURS)
    yard.add("next", scopes=("src",))
    yard.complete(yard.claim_one(), base="c" * 40, commit="d" * 40)
    yard.lessor.registry.set_unlanded(yard.repository.id, Unlanded.WAIT)
    yard.lessor.tasks.answer(grant.task, "the left one")
    assert yard.claim_one().task == grant.task


def test_cancelling_the_task_lifts_its_shadow(yard: Yard) -> None:
    grant = asked_with_commits(yard, "src/a")
    asked_with_commits(yard, "src/b")
    waiting = yard.add("next", scopes=("src",))
    yard.store.advance(4 * HOURS)
    assert yard.claim() == []
    told = yard.lessor.tasks.why(waiting.task)
    assert (told.cause, told.next_step) == ("shadow", f'lessor answer {grant.number} "…"')
    yard.lessor.tasks.cancel([grant.task])
    assert yard.claim_one().task == waiting.task


def test_a_landing_of_unfinished_work_lifts_its_shadow_and_leaves_the_question(yard: Yard) -> None:
    grant = asked_with_commits(yard, "src")
    yard.store.advance(4 * HOURS)
    yard.lessor.leases.sweep()
    assert yard.lessor.landings.landed(grant.task, commit="e" * 40, target="main")
    task = yard.lessor.tasks.task(grant.task)
    assert (task.state, task.stage != "landed") == ("needs_person", True)
    yard.add("next", scopes=("src",))
    assert yard.claim_one().stand is None
