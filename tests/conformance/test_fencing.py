"""Fences: one counter a repository, +1 at every grant, in the order of the grants."""

from __future__ import annotations

from builders import TTL, Yard
from lessor.model.grant import Reach


def test_each_grant_takes_the_next_fence_of_its_repository(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    for n in range(3):
        yard.add(f"shop {n}", scopes=(f"d{n}",))
        yard.add(f"docs {n}", scopes=(f"d{n}",), repository=docs.id)
    assert [yard.claim_one().fence for _ in range(3)] == [1, 2, 3]
    assert [g.fence for g in yard.claim(repository=docs.id, wanted=3)] == [1, 2, 3]
    assert yard.lessor.registry.repository(yard.repository.id).fence == 3


def test_a_batch_takes_fences_in_its_order(yard: Yard) -> None:
    for n in range(4):
        yard.add(f"task {n}", scopes=(f"d{n}",), priority=n)
    assert [(g.title, g.fence) for g in yard.claim(wanted=4)] == [
        ("task 3", 1),
        ("task 2", 2),
        ("task 1", 3),
        ("task 0", 4),
    ]


def test_a_widening_is_a_grant_and_takes_a_fence(yard: Yard) -> None:
    grant = yard.running("a")
    assert yard.lessor.leases.widen(grant.holder, ["b"]) == grant.fence + 1
    assert yard.running("c").fence == grant.fence + 2


def test_the_next_holder_of_a_path_has_the_larger_fence(yard: Yard) -> None:
    grant = yard.running("src", max_attempts=9)
    for _ in range(3):
        yard.store.advance(TTL)
        later = yard.claim_one()
        assert (later.task, later.epoch) == (grant.task, grant.epoch + 1)
        assert later.fence > grant.fence
        grant = later


def test_an_empty_claim_and_a_refused_widening_take_no_fence(yard: Yard) -> None:
    first, second = yard.running("a"), yard.running("b")
    yard.add("waits", scopes=("a/x",))
    assert yard.claim() == []
    try_fence = yard.refused(lambda: yard.lessor.leases.widen(second.holder, ["a/y"]))
    assert try_fence.code == "scope_held"
    yard.complete(first)
    assert yard.claim_one().fence == 3


def test_a_task_without_a_repository_has_no_fence(yard: Yard) -> None:
    yard.add("free", free=True)
    (grant,) = yard.claim(repository=Reach.NO_REPOSITORY)
    assert (grant.fence, grant.term, grant.repository) == (0, 0, None)


def test_a_grant_carries_the_repositorys_term(yard: Yard) -> None:
    yard.store.sql("UPDATE repository SET term = 7 WHERE id = 1")
    assert yard.running("a").term == 7
