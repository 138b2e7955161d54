"""Work that begins on a result which hasn't landed."""

from __future__ import annotations

from run_rig import git

from lessor.ids import new_token
from lessor.model.grant import ClaimRequest, Result
from lessor.model.shadow import Unlanded
from lessor.model.waiting import Cause
from lessor.model.worker import NewWorker
from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind

EDIT = (
    'echo "by $LESSOR_NUMBER" >> src/app.py; cp "$LESSOR_BRIEF" "$LESSOR_OUTBOX/../told"; echo done'
)


def test_the_next_task_on_the_same_path_begins_on_the_result(shop):
    first, second = shop.add("one", scopes=("src",)), shop.add("two", scopes=("src/app.py",))
    assert shop.run(EDIT) == 0
    done, stacked = shop.task(first), shop.task(second)
    assert stacked.base == done.commit
    assert shop.shown(second, "src/app.py").endswith("by 1\nby 2")
    assert git(shop.root, "diff", "--stat", stacked.base, stacked.commit).count("|") == 1
    (note,) = shop.notes.texts(NoteKind.STACKED)
    assert note == f"begins on the result of #1, which hasn't landed ({done.commit[:7]})"
    told = [path.read_text() for path in shop.state.glob("runs/*/told")]
    assert sum("You begin on the result of #1" in text for text in told) == 1


def test_what_judges_is_the_targets_and_not_the_results(shop):
    """A result may have changed the configuration, and nobody has looked at it yet."""
    asked = []

    def plan_at(commit):
        asked.append(commit)
        return Plan()

    shop.add("one", scopes=("src",))
    shop.add("two", scopes=("src",))
    base = git(shop.root, "rev-parse", "HEAD")
    assert shop.run(EDIT, plan_at=plan_at) == 0
    assert set(asked) == {base}


def test_a_run_ends_where_only_a_landing_is_waited_for(shop):
    shop.lessor.registry.set_unlanded(shop.repository, Unlanded.WAIT)
    shop.add("one", scopes=("src",))
    second = shop.add("two", scopes=("src",))
    assert shop.run(EDIT) == 0
    assert shop.lessor.tasks.why(second).cause is Cause.SHADOW


def test_a_later_epoch_keeps_the_ground_that_it_stands_on(shop):
    first = shop.add("one", scopes=("src",))
    second = shop.add("two", scopes=("src",))
    fails_once = (
        'test "$LESSOR_NUMBER$LESSOR_EPOCH" = 21 && { echo half > src/half; kill -9 $$; }; ' + EDIT
    )
    assert shop.run(fails_once) == 0
    assert shop.task(second).epoch == 2
    assert shop.task(second).base == shop.task(first).commit


def test_a_result_that_is_in_another_clone_is_worked_beside(shop):
    """A fleet's other host has it, and never pushed it."""
    worker = shop.lessor.registry.add_worker(NewWorker(agent="far"))
    task = shop.add("one", scopes=("src",))
    wish = ClaimRequest(worker=worker.id, request_id="r", secret=new_token(), task=task)
    (grant,) = shop.lessor.leases.claim(wish)
    shop.lessor.leases.complete_one(grant.holder, Result(base="0" * 40, commit="a" * 40))
    second = shop.add("two", scopes=("src",))
    base = git(shop.root, "rev-parse", "HEAD")
    assert shop.run(EDIT) == 0
    assert shop.task(second).base == base
    assert "isn't in this clone" in shop.notes.texts(NoteKind.STACKED)[0]
