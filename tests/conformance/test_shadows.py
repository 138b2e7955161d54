"""A result that hasn't landed: what overlaps it begins on top of it, or waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import TTL, Yard
from lessor.model.grant import Grant, Reach, Result
from lessor.model.shadow import SHADOW_MS, Unlanded
from lessor.service.scanning import WIDEST

HOUR = 3_600_000


def result(yard: Yard, *scopes: str, head: str = "a" * 40, **more: object) -> Grant:
    """A task with these scopes that was done, with a commit to show."""
    grant = yard.running(*scopes, **more)
    yard.complete(grant, base="0" * 40, commit=head)
    return grant


def test_what_overlaps_one_result_begins_on_it(yard: Yard) -> None:
    first = result(yard, "src")
    yard.add("next", scopes=("src/a",))
    grant = yard.claim_one()
    assert grant.stand is not None
    assert (grant.stand.task, grant.stand.number) == (first.task, first.number)
    assert (grant.stand.branch, grant.stand.commit) == (first.branch, "a" * 40)


def test_what_overlaps_nothing_begins_on_the_target(yard: Yard) -> None:
    result(yard, "src")
    yard.add("beside", scopes=("docs",))
    assert yard.claim_one().stand is None


@pytest.mark.parametrize(
    ("held", "wish", "stands"),
    [
        (("src/*.py",), "src/a.py", True),
        (("src/*.py",), "src/a.md", False),
        (("src/a",), "src/**/*.py", True),
        (("src/a",), "doc?/*", False),
    ],
)
def test_globs_are_decided_exactly(
    yard: Yard, held: tuple[str, ...], wish: str, stands: bool
) -> None:
    result(yard, *held)
    yard.add("next", scopes=(wish,))
    assert (yard.claim_one().stand is not None) == stands


def test_paths_that_were_only_read_cast_no_shadow(yard: Yard) -> None:
    result(yard, "src", reads=("docs",))
    yard.add("next", scopes=("docs",))
    assert yard.claim_one().stand is None


def test_what_overlaps_two_results_waits_for_one_to_land(yard: Yard) -> None:
    result(yard, "src/a")
    result(yard, "src/b")
    task = yard.add("both", scopes=("src",))
    assert yard.claim() == []
    assert yard.lessor.tasks.task(task.task).waiting_on is not None


def test_a_result_that_contains_the_other_is_the_one_to_begin_on(yard: Yard) -> None:
    result(yard, "src/a", head="a" * 40)
    middle = result(yard, "src", head="b" * 40)
    yard.add("last", scopes=("src/a", "src/b"))
    grant = yard.claim_one()
    assert grant.stand is not None
    assert (grant.stand.task, grant.stand.commit) == (middle.task, "b" * 40)


def test_a_chain_is_followed_all_the_way_down(yard: Yard) -> None:
    result(yard, "src/a", "src/b", head="a" * 40)
    result(yard, "src/b", "src/c", head="b" * 40)
    top = result(yard, "src/c", "src/d", head="c" * 40)
    yard.add("last", scopes=("src/a", "src/d"))
    stand = yard.claim_one().stand
    assert stand is not None
    assert stand.task == top.task


def test_a_batch_stacks_each_task_on_its_own(yard: Yard) -> None:
    one, two = result(yard, "src/a", head="a" * 40), result(yard, "src/b", head="b" * 40)
    for path in ("src/a", "src/b", "src"):
        yard.add(path, scopes=(path,))
    grants = yard.claim(wanted=3)
    assert [grant.stand.task for grant in grants if grant.stand] == [one.task, two.task]


def test_a_result_without_a_commit_of_its_own_casts_none(yard: Yard) -> None:
    yard.complete(yard.running("src"), base="a" * 40, commit="a" * 40)
    yard.complete(yard.running("src"))
    yard.add("next", scopes=("src",))
    assert yard.claim_one().stand is None


def test_completing_again_casts_no_second_shadow(yard: Yard) -> None:
    grant = yard.running("src")
    for _ in range(2):
        yard.complete(grant, base="0" * 40, commit="a" * 40)
    assert yard.store.sql("SELECT count(*) FROM lease WHERE kind = 'shadow'") == [(1,)]


def test_completing_and_claiming_in_one_call_stacks_at_once(yard: Yard) -> None:
    grant = yard.running("src")
    yard.add("next", scopes=("src",))
    done = yard.result(base="0" * 40, commit="a" * 40)
    request = yard.request()
    for _ in range(2):
        _, grants = yard.lessor.leases.complete_and_claim([(grant.holder, done)], request)
        assert [g.stand.task for g in grants if g.stand] == [grant.task]


def test_a_late_result_casts_no_shadow(yard: Yard) -> None:
    grant = yard.running("src")
    yard.store.advance(TTL)
    yard.refused(lambda: yard.complete(grant, base="0" * 40, commit="a" * 40))
    assert yard.store.sql("SELECT count(*) FROM shadow_scope") == [(0,)]


def test_a_retry_of_the_claim_says_where_it_stands_too(yard: Yard) -> None:
    result(yard, "src")
    yard.add("next", scopes=("src",))
    request = yard.request()
    first = yard.lessor.leases.claim(request)
    assert first[0].stand is not None
    assert yard.lessor.leases.claim(request)[0].stand == first[0].stand


def test_a_later_epoch_stands_where_the_first_did(yard: Yard) -> None:
    result(yard, "src", head="a" * 40)
    yard.add("next", scopes=("src",))
    first = yard.claim_one()
    yard.lessor.leases.release(first.holder)
    again = yard.claim_one()
    assert again.epoch == 2
    assert again.stand == first.stand


def test_a_task_with_a_branch_of_its_own_goes_on_there(yard: Yard) -> None:
    result(yard, "src")
    yard.add("next", scopes=("src",), branch="feat/mine")
    assert yard.claim_one().stand is None


def test_paths_acquired_without_a_task_stand_on_nothing(yard: Yard) -> None:
    result(yard, "src/a")
    result(yard, "src/b")
    grant = yard.lessor.leases.acquire(yard.asked("look", scopes=("src",)), worker=yard.worker.id)
    assert grant.stand is None


def test_the_repository_may_say_wait(yard: Yard) -> None:
    yard.lessor.registry.set_unlanded(yard.repository.id, Unlanded.WAIT)
    result(yard, "src")
    yard.add("next", scopes=("src",))
    assert yard.claim() == []


def test_the_repository_may_say_ignore(yard: Yard) -> None:
    known = yard.lessor.registry.set_unlanded(yard.repository.id, Unlanded.IGNORE)
    assert known.unlanded is Unlanded.IGNORE
    result(yard, "src/a")
    result(yard, "src/b")
    yard.add("next", scopes=("src",))
    assert yard.claim_one().stand is None


def test_no_turn_is_reserved_for_who_waits_for_a_landing(yard: Yard) -> None:
    """A reservation keeps others behind who is passed; landing is a person's, and nobody passes."""
    yard.lessor.registry.set_queue("default", overtake_limit=1)
    result(yard, "src/a")
    result(yard, "src/b")
    yard.add("both", scopes=("src",))
    assert yard.claim() == []
    for n in range(3):
        yard.complete(yard.running(f"docs/{n}"))
        assert yard.claim() == []
    assert yard.store.sql("SELECT count(*) FROM lease WHERE kind = 'reservation'") == [(0,)]


def test_a_shadow_fades_where_nobody_lands(yard: Yard) -> None:
    result(yard, "src/a")
    result(yard, "src/b")
    yard.add("both", scopes=("src",))
    assert yard.claim() == []
    yard.store.advance(SHADOW_MS)
    assert yard.claim_one().stand is None
    assert yard.store.sql("SELECT count(*) FROM shadow_scope") == [(0,)]


def test_a_result_is_given_up_once_also_where_its_shadow_has_faded(yard: Yard) -> None:
    grant = result(yard, "src")
    yard.store.advance(SHADOW_MS)
    yard.lessor.leases.sweep()
    assert [one.shadowed for one in yard.lessor.landings.results()] == [False]
    assert yard.lessor.landings.discarded(grant.task, reason="no")
    assert not yard.lessor.landings.discarded(grant.task, reason="no")
    assert yard.lessor.landings.results() == []
    assert yard.kinds(grant.task).count("discarded") == 1


def test_however_many_results_there_are_all_of_them_can_be_read(yard: Yard) -> None:
    tasks = [result(yard, f"src/{n}").task for n in range(5)]
    landings = yard.lessor.landings
    for page in (1, 2, 5, 6):
        assert [one.task for one in landings.all_results(page=page)] == tasks
    assert [one.task for one in landings.results(after=tasks[1], most=2)] == tasks[2:4]
    assert (
        list(
            landings.all_results(
                repository=yard.lessor.registry.add_repository("example.org/other").id
            )
        )
        == []
    )


def test_a_shadow_that_blocks_for_longer_than_the_queue_allows_is_told(yard: Yard) -> None:
    yard.lessor.registry.set_queue("default", wait_max_ms=HOUR)
    first = result(yard, "src/a")
    second = result(yard, "src/b")
    waiting = [yard.add(title, scopes=("src",)) for title in ("both", "also")]
    yard.add("elsewhere", scopes=("src/c",), queue="other")
    assert yard.claim() == []
    yard.store.advance(HOUR - 1)
    assert yard.lessor.landings.blocking() == []
    yard.store.advance(1)
    (told,) = yard.lessor.landings.blocking(repository=yard.repository.id)
    assert (told.task, told.waiting, told.first) == (first.task, 2, waiting[0].number)
    why = yard.lessor.tasks.why(waiting[0].task)
    assert (why.overdue, why.next_step) == (True, f"lessor land {first.number}")
    yard.lessor.landings.landed(first.task, commit="e" * 40, target="main")
    assert yard.lessor.landings.blocking() == []
    stand = yard.claim_one().stand
    assert stand is not None
    assert stand.task == second.task


ENDS: dict[str, Callable[[Yard, Grant], object]] = {
    "landed": lambda y, g: y.lessor.landings.landed(g.task, commit="e" * 40, target="main"),
    "discarded": lambda y, g: y.lessor.landings.discarded(g.task),
    "faded": lambda y, g: y.store.advance(HOUR),
    "cancelled": lambda y, g: y.lessor.tasks.cancel([g.task]),
}


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("which", [0, 1])
def test_the_end_of_any_of_two_shadows_wakes_who_overlaps_both(
    yard: Yard, end: str, which: int, anywhere: bool
) -> None:
    """It is parked on one of them, and may begin on the other once that is alone."""
    grants = []
    for n, path in enumerate(("src/a", "src/b")):
        asks = end == "cancelled" and n == which
        grants.append(yard.running(path) if asks else result(yard, path))
        if asks:
            done = Result(base="0" * 40, commit="b" * 40)
            yard.lessor.leases.ask(grants[-1].holder, "which?", result=done)
            yard.store.advance(4 * HOUR)
            yard.lessor.leases.sweep()
    waiting = yard.add("both", scopes=("src",))
    assert yard.claim() == []
    if end == "faded":
        yard.store.sql(
            "UPDATE lease SET expires_ms = (SELECT min(k.expires_ms) FROM lease AS k WHERE k.kind = 'shadow')"
            " - :left WHERE kind = 'shadow' AND task_id = :task",
            left=SHADOW_MS - HOUR,
            task=yard.lessor.naming.task_row(grants[which].task),
        )
    ENDS[end](yard, grants[which])
    if end != "faded":
        assert yard.lessor.tasks.why(waiting.task).cause == "ready"
    grant = yard.claim_one(**({"repository": Reach.ANYWHERE} if anywhere else {}))
    assert grant.task == waiting.task
    assert grant.stand is not None
    assert grant.stand.task == grants[1 - which].task


def test_many_who_wait_for_landings_are_all_woken(yard: Yard) -> None:
    first, _ = result(yard, "src/a"), result(yard, "src/b")
    beside = result(yard, "web/a"), result(yard, "web/b")
    for n in range(80):
        yard.add(f"both {n}", scopes=("src" if n % 2 else "web",), priority=-n)
    assert yard.claim() == []
    yard.lessor.landings.landed(first.task, commit="e" * 40, target="main")
    yard.complete(yard.claim_one(), commit=None)
    yard.lessor.landings.landed(beside[0].task, commit="e" * 40, target="main")
    got = [yard.claim_one() for _ in range(2)]
    assert sorted(grant.scopes[0] for grant in got) == ["src", "web"]


@pytest.mark.parametrize("setting", [Unlanded.STACK, Unlanded.IGNORE])
def test_another_setting_wakes_who_waited_by_the_old_one(yard: Yard, setting: Unlanded) -> None:
    yard.lessor.registry.set_unlanded(yard.repository.id, Unlanded.WAIT)
    below = result(yard, "src")
    yard.add("next", scopes=("src",))
    assert yard.claim() == []
    yard.lessor.registry.set_unlanded(yard.repository.id, setting)
    stand = yard.claim_one().stand
    assert (stand and stand.task) == (below.task if setting is Unlanded.STACK else None)


def test_a_setting_wakes_however_many_wait(yard: Yard) -> None:
    yard.lessor.registry.set_unlanded(yard.repository.id, Unlanded.WAIT)
    result(yard, "src")
    wishes = [yard.asked(f"n {n}", scopes=(f"src/{n}",)) for n in range(WIDEST + 3)]
    yard.lessor.tasks.submit(wishes)
    assert yard.claim() == []
    yard.lessor.registry.set_unlanded(yard.repository.id, Unlanded.IGNORE)
    assert yard.store.sql("SELECT count(*) FROM task WHERE waiting_on IS NOT NULL") == [(0,)]
