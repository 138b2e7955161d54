"""A scope grows by default: over what nobody holds, at once, with a fence of its own; it never waits."""

from __future__ import annotations

import pytest

from builders import TTL, Yard, zombie
from lessor.model.scope import Mode


def test_a_lease_grows_over_what_nobody_holds(yard: Yard) -> None:
    grant = yard.running("src")
    fence = yard.lessor.leases.widen(grant.holder, ["docs", "tests/*.py"])
    assert fence == 2
    lease = yard.lessor.leases.lease(grant.lease)
    assert lease.paths == ("src", "docs", "tests/*.py")
    yard.add("waits", scopes=("docs/a",))
    yard.add("waits too", scopes=("tests/test_a.py",))
    assert yard.claim() == []
    assert yard.kinds(grant.task) == ["submitted", "claimed", "widened"]
    assert yard.lessor.tasks.history(grant.task)[-1].facts == {
        "paths": ["docs", "tests/*.py"],
        "fence": 2,
    }


def test_a_task_without_a_scope_grows_from_nothing(yard: Yard) -> None:
    grant = yard.running()
    yard.lessor.leases.widen(grant.holder, ["src"])
    yard.add("waits", scopes=("src/a",))
    assert yard.claim() == []


def test_what_is_covered_already_takes_no_new_fence(yard: Yard) -> None:
    grant = yard.running("src")
    assert yard.lessor.leases.widen(grant.holder, ["src/a", "src"]) == 1
    assert yard.lessor.leases.widen(grant.holder, ["docs/*.md"]) == 2
    # The same again gets the same answer.
    assert yard.lessor.leases.widen(grant.holder, ["docs/*.md"]) == 2
    assert yard.lessor.leases.widen(grant.holder, ["src/b"]) == 1
    assert yard.lessor.leases.widen(grant.holder, ["src/b", "docs/*.md"]) == 2
    assert yard.lessor.registry.repository(yard.repository.id).fence == 2


def test_reading_what_is_written_is_covered_and_writing_what_is_read_isnt(yard: Yard) -> None:
    grant = yard.running("src", reads=("docs",))
    assert yard.lessor.leases.widen(grant.holder, ["src/a"], mode=Mode.READ) == 1
    assert yard.lessor.leases.widen(grant.holder, ["docs/a"], mode=Mode.WRITE) == 2


@pytest.mark.parametrize("asked", ["src/a", ".", "src/**/*.py", "src"])
def test_what_another_holds_is_refused_and_nothing_is_added(yard: Yard, asked: str) -> None:
    holder, other = yard.running("src"), yard.running("docs")
    before = yard.store.contents()
    error = yard.refused(lambda: yard.lessor.leases.widen(other.holder, ["apart", asked]))
    assert error.code == "scope_held"
    assert error.facts["lease"] == holder.lease
    assert error.facts["holder"] == "claude-1"
    assert error.facts["held"] == "src"
    assert (error.facts["number"], error.facts["epoch"]) == (holder.number, 1)
    assert error.facts["ttl_ms"] == TTL
    assert yard.store.contents() == before


def test_of_two_that_would_wait_for_each_other_the_one_that_asks_is_refused(yard: Yard) -> None:
    left, right = yard.running("left"), yard.running("right")
    assert (
        yard.refused(lambda: yard.lessor.leases.widen(left.holder, ["right/x"])).code
        == "scope_held"
    )
    assert (
        yard.refused(lambda: yard.lessor.leases.widen(right.holder, ["left/x"])).code
        == "scope_held"
    )
    yard.complete(left)
    yard.claim()
    assert yard.lessor.leases.widen(right.holder, ["left/x"]) == 3


def test_readers_may_widen_over_readers(yard: Yard) -> None:
    yard.running(reads=("docs",))
    grant = yard.running("src")
    assert yard.lessor.leases.widen(grant.holder, ["docs/a"], mode=Mode.READ) == 3
    assert (
        yard.refused(lambda: yard.lessor.leases.widen(grant.holder, ["docs/a"])).code
        == "scope_held"
    )


def test_an_ended_holders_paths_are_free_once_they_are_drained(yard: Yard) -> None:
    holder, other = yard.running("src"), yard.running("docs")
    yard.complete(holder)
    yard.lessor.leases.sweep()
    assert yard.lessor.leases.widen(other.holder, ["src/a"]) == 3


def test_what_was_taken_since_the_lease_began_is_refused_at_the_gate(yard: Yard) -> None:
    mine = yard.running("docs")
    between = yard.running("src")
    yard.complete(between)
    yard.lessor.leases.sweep()
    error = yard.refused(lambda: yard.lessor.leases.widen(mine.holder, ["src/a"], since_start=True))
    assert error.code == "scope_held"
    assert "was taken meanwhile by" in str(error)
    assert (error.facts["lease"], error.facts["ttl_ms"]) == (between.lease, 0)
    assert yard.lessor.leases.widen(mine.holder, ["src/a"]) == 3


def test_what_was_taken_before_the_lease_began_is_no_obstacle(yard: Yard) -> None:
    earlier = yard.running("src")
    yard.complete(earlier)
    mine = yard.running("docs")
    yard.lessor.leases.sweep()
    assert yard.lessor.leases.widen(mine.holder, ["src/a"], since_start=True) == 3


def test_a_widening_meanwhile_counts_as_taken(yard: Yard) -> None:
    other = yard.running("lib")
    mine = yard.running("docs")
    yard.lessor.leases.widen(other.holder, ["src"])
    yard.complete(other)
    yard.lessor.leases.sweep()
    assert (
        yard.refused(
            lambda: yard.lessor.leases.widen(mine.holder, ["src/a"], since_start=True)
        ).code
        == "scope_held"
    )


def test_a_later_epoch_takes_again_what_an_earlier_one_widened_to(yard: Yard) -> None:
    other = yard.running("lib")
    yard.lessor.leases.widen(other.holder, ["src"])
    yard.lessor.leases.release(other.holder)
    mine = yard.running("docs")
    again = yard.claim_one()
    assert (again.task, again.scopes) == (other.task, ("lib", "src"))
    yard.complete(again)
    yard.lessor.leases.sweep()
    assert (
        yard.refused(
            lambda: yard.lessor.leases.widen(mine.holder, ["src/a"], since_start=True)
        ).code
        == "scope_held"
    )


def test_what_was_held_stays_on_record_when_the_task_is_changed(yard: Yard) -> None:
    mine = yard.running("docs")
    other = yard.running("src")
    yard.lessor.leases.release(other.holder)
    yard.lessor.tasks.amend(other.task, yard.asked("elsewhere", scopes=("lib",)))
    yard.lessor.leases.sweep()
    assert (
        yard.refused(
            lambda: yard.lessor.leases.widen(mine.holder, ["src/a"], since_start=True)
        ).code
        == "scope_held"
    )
    assert yard.lessor.leases.widen(mine.holder, ["other"], since_start=True) == 3


def test_what_others_only_read_since_is_refused_for_writing_only(yard: Yard) -> None:
    mine = yard.running("docs")
    reader = yard.running(reads=("src",))
    yard.complete(reader)
    yard.lessor.leases.sweep()
    widen = yard.lessor.leases.widen
    assert widen(mine.holder, ["src/a"], mode=Mode.READ, since_start=True) == 3
    assert (
        yard.refused(lambda: widen(mine.holder, ["src/b"], since_start=True)).code == "scope_held"
    )


def test_a_strict_task_is_confined(yard: Yard) -> None:
    grant = yard.running("src", strict=True)
    error = yard.refused(lambda: yard.lessor.leases.widen(grant.holder, ["docs"]))
    assert error.code == "scope_held"
    assert "is confined to src" in str(error)


def test_the_whole_repository_can_be_taken_when_it_is_free(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.leases.widen(grant.holder, ["."])
    yard.add("anything", scopes=("x",))
    assert yard.claim() == []


def test_a_task_without_a_repository_has_nothing_to_widen(yard: Yard) -> None:
    yard.add("free", free=True)
    (grant,) = yard.claim_free()
    assert yard.refused(lambda: yard.lessor.leases.widen(grant.holder, ["src"])).code == "invalid"


@pytest.mark.parametrize("part", ["token", "worker", "epoch"])
def test_only_the_holder_widens(yard: Yard, part: str) -> None:
    grant = yard.running("src")
    wrong = {"token": "f" * 64, "worker": yard.other.id, "epoch": 9}[part]
    before = yard.store.contents()
    error = yard.refused(
        lambda: yard.lessor.leases.widen(zombie(grant.holder, **{part: wrong}), ["docs"])
    )
    assert error.code == "lease_lost"
    assert yard.store.contents() == before


def test_the_next_epoch_starts_with_what_the_last_widened_to(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.leases.widen(grant.holder, ["docs"])
    yard.store.advance(TTL)
    assert yard.claim_one().scopes == ("src", "docs")
