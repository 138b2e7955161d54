"""Who may hold which paths side by side, who waits for whom, and who is woken first."""

from __future__ import annotations

import pytest

from builders import TTL, Yard
from lessor.model.grant import Reach


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("src", "src"),
        ("src", "src/a/b"),
        ("src/a/b", "src"),
        (".", "anything"),
        ("anything", "."),
        ("src/*.py", "src/main.py"),
        ("src/main.py", "src/*.py"),
        ("src/**/*.py", "src/a"),
        ("src/*_test.py", "src/test_*.py"),
        ("**/package.json", "services/billing"),
        ("Ünï", "Ünï/x"),
    ],
)
def test_overlapping_writes_arent_granted_side_by_side(yard: Yard, held: str, asked: str) -> None:
    holder = yard.running(held)
    waiting = yard.add("waits", scopes=(asked,))
    assert yard.claim() == []
    assert yard.lessor.tasks.task(waiting.task).waiting_on == holder.lease
    yard.complete(holder)
    assert yard.claim_one().task == waiting.task


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("services/billing", "services/billing-v2"),
        ("services/billing", "services/bill"),
        ("src/a", "src/b"),
        ("src/*.py", "src/*.ts"),
        ("app/[id].tsx", "app/i"),
        ("src/a?c", "src/abbc"),
        ("*.md", "docs/readme.md"),
    ],
)
def test_disjoint_writes_are_granted_side_by_side(yard: Yard, held: str, asked: str) -> None:
    yard.running(held)
    yard.add("beside", scopes=(asked,))
    assert yard.claim_one().title == "beside"


def test_readers_share_and_a_writer_waits_for_them(yard: Yard) -> None:
    first = yard.running(reads=("docs",))
    second = yard.running(reads=("docs/guide",))
    yard.add("writes", scopes=("docs/guide/intro.md",))
    assert yard.claim() == []
    yard.complete(first)
    assert yard.claim() == []
    yard.complete(second)
    assert yard.claim_one().title == "writes"


def test_a_reader_waits_for_a_writer(yard: Yard) -> None:
    writer = yard.running("docs")
    yard.add("reads", reads=("docs/guide",))
    assert yard.claim() == []
    yard.complete(writer)
    assert yard.claim_one().title == "reads"


def test_globs_of_readers_share_too(yard: Yard) -> None:
    yard.running(reads=("src/**/*.py",))
    yard.add("reads", reads=("src/a*.py", "src/b"))
    assert yard.claim_one().title == "reads"


def test_a_task_may_read_and_write_the_same_paths(yard: Yard) -> None:
    yard.add("both", scopes=("src/a",), reads=("src", "src/a"))
    assert yard.claim_one().scopes == ("src/a",)


def test_paths_of_different_repositories_never_meet(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    yard.running("src")
    yard.add("same path", scopes=("src",), repository=docs.id)
    assert yard.claim_one(repository=docs.id).title == "same path"


def test_a_repository_may_fold_case(yard: Yard) -> None:
    mac = yard.lessor.registry.add_repository("github.com/acme/mac", fold_case=True)
    for title, scope in (("lower", "src/readme"), ("upper", "SRC/README")):
        yard.add(title, scopes=(scope,), repository=mac.id)
        yard.add(title, scopes=(scope,))
    assert yard.titles(yard.claim(repository=mac.id, wanted=2)) == ["lower"]
    assert yard.titles(yard.claim(wanted=2)) == ["lower", "upper"]


def test_of_one_batch_the_later_overlapping_task_waits_for_the_earlier(yard: Yard) -> None:
    yard.add("broad", scopes=("src",))
    inner = yard.add("inner", scopes=("src/a",))
    glob = yard.add("glob", scopes=("src/**/*.py",))
    yard.add("apart", scopes=("docs",))
    grants = yard.claim(wanted=9)
    assert yard.titles(grants) == ["broad", "apart"]
    for task in (inner, glob):
        assert yard.lessor.tasks.task(task.task).waiting_on == grants[0].lease


def test_a_blocked_task_doesnt_hold_up_those_behind_it(yard: Yard) -> None:
    yard.running("src")
    for n in range(600):
        yard.add(f"blocked {n}", scopes=(f"src/{n}",), priority=1)
    yard.add("free to go", scopes=("docs",))
    assert yard.claim_one().title == "free to go"


def test_waiters_are_woken_in_the_order_of_priority_and_age(yard: Yard) -> None:
    holder = yard.running("src")
    for title, priority in (("old", 0), ("young", 0), ("urgent", 7)):
        yard.add(title, scopes=("src",), priority=priority)
    assert yard.claim() == []
    order = []
    while True:
        yard.complete(holder)
        grants = yard.claim()
        if not grants:
            break
        (holder,) = grants
        order.append(holder.title)
    assert order == ["urgent", "old", "young"]


def test_more_waiters_than_one_claim_wakes_are_all_woken_in_order(yard: Yard) -> None:
    holder = yard.running("src")
    for n in range(100):
        yard.add(f"waiter {n}", scopes=(f"src/{n}",))
    assert yard.claim() == []
    yard.complete(holder)
    got = [grant.title for _ in range(100) for grant in yard.claim()]
    assert got == [f"waiter {n}" for n in range(100)]


def test_a_lease_that_ran_out_frees_its_paths_at_the_next_claim(yard: Yard) -> None:
    yard.running("src")
    waiting = yard.add("waits", scopes=("src/a",), priority=1)
    assert yard.claim() == []
    yard.store.advance(TTL)
    assert yard.claim_one().task == waiting.task


def test_a_released_task_and_its_waiter_go_in_order(yard: Yard) -> None:
    holder = yard.running("src", priority=3)
    yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []
    yard.lessor.leases.release(holder.holder)
    assert yard.claim_one().task == holder.task
    assert yard.claim() == []


def test_a_task_waits_for_one_of_its_blockers_after_the_other(yard: Yard) -> None:
    first, second = yard.running("a"), yard.running("b")
    yard.add("both", scopes=("a", "b"))
    assert yard.claim() == []
    yard.complete(first)
    assert yard.claim() == []
    yard.complete(second)
    assert yard.claim_one().title == "both"


def test_tasks_without_a_scope_never_wait(yard: Yard) -> None:
    yard.running(".")
    yard.add("grows")
    assert yard.claim_one().title == "grows"


def test_globs_are_decided_against_plain_holders_and_the_other_way_round(yard: Yard) -> None:
    yard.running("src/a.py")
    yard.running("docs/**/*.md")
    yard.add("blocked by the plain one", scopes=("src/*.py",))
    yard.add("blocked by the glob", scopes=("docs/guide",))
    yard.add("apart", scopes=("src/*.ts", "docs/*.txt"))
    assert yard.titles(yard.claim(wanted=9)) == ["apart"]


def test_more_pairs_than_are_looked_at_count_as_overlapping(yard: Yard) -> None:
    """Safe, and never granted by mistake: beyond a thousand pairs nobody decides exactly."""
    yard.running(*(f"src/f{n}.c" for n in range(1_001)))
    task = yard.add("many pairs", scopes=("src/*.py",))
    assert yard.claim() == []
    assert "more than 1000 pairs" in yard.lessor.tasks.why(task.task).sentence


def test_anywhere_respects_paths_too(yard: Yard) -> None:
    yard.running("src")
    yard.add("waits", scopes=("src/a",))
    assert yard.claim(repository=Reach.ANYWHERE) == []
