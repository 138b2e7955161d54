"""What every gate asks: may the lease have these paths; all or none, and whose they are."""

from __future__ import annotations

import pytest

from builders import TTL, Yard, zombie
from lessor.ids import new_token


def test_what_the_scope_covers_is_admitted_and_nothing_is_written(yard: Yard) -> None:
    grant = yard.running("src", "docs/*.md")
    before = yard.store.contents()
    admission = yard.lessor.leases.admit(grant.holder, ["src/a.py", "src/b/c", "docs/x.md"])
    assert admission == ((), {})
    assert yard.store.contents() == before


def test_what_nobody_holds_takes_its_natural_scope(yard: Yard) -> None:
    grant = yard.running("src")
    admission = yard.lessor.leases.admit(
        grant.holder,
        ["web/shop/cart/total.js", "web/shop/page.js", "lib/x/y.py", "Makefile"],
        packages=lambda: {"web/shop"},
    )
    assert admission == (("Makefile", "lib/x", "web/shop"), {})
    assert yard.lessor.leases.lease(grant.lease).paths == ("src", "Makefile", "lib/x", "web/shop")
    assert yard.kinds(grant.task)[-1] == "widened"


def test_packages_are_only_looked_up_for_what_lies_outside(yard: Yard) -> None:
    grant = yard.running("src")

    def looked_up() -> set[str]:
        raise AssertionError("asked for")

    yard.lessor.leases.admit(grant.holder, ["src/a"], packages=looked_up)


def test_beside_another_only_the_file_is_taken(yard: Yard) -> None:
    other, grant = yard.running("lib/b.py"), yard.running("src")
    admission = yard.lessor.leases.admit(grant.holder, ["lib/a.py"])
    assert admission == (("lib/a.py",), {})
    assert yard.lessor.leases.admit(other.holder, ["lib/b.py"]) == ((), {})


def test_of_several_paths_one_that_is_held_keeps_all_from_being_taken(yard: Yard) -> None:
    holder, grant = yard.running("lib"), yard.running("src")
    before = yard.store.contents()
    admission = yard.lessor.leases.admit(grant.holder, ["docs/a", "lib/x.py", "src/a", "lib/y.py"])
    assert admission.taken == ()
    assert sorted(admission.refused) == ["lib/x.py", "lib/y.py"]
    facts = admission.refused["lib/x.py"].facts
    assert (facts["number"], facts["holder"], facts["lease"]) == (
        holder.number,
        "claude-1",
        holder.lease,
    )
    assert "lib/x.py" in admission.refused["lib/x.py"].message
    assert "lib/y.py" in admission.refused["lib/y.py"].message
    assert yard.store.contents() == before


def test_what_was_taken_since_the_lease_began_is_refused_though_it_is_free_again(
    yard: Yard,
) -> None:
    grant = yard.running("src")
    later = yard.running("lib")
    yard.complete(later)
    yard.claim()
    refused = yard.lessor.leases.admit(grant.holder, ["lib/x.py"]).refused
    assert refused["lib/x.py"].facts["number"] == later.number


def test_a_hold_keeps_its_paths(yard: Yard) -> None:
    asked, grant = yard.running("lib"), yard.running("src")
    yard.lessor.leases.ask(asked.holder, "which?")
    refused = yard.lessor.leases.admit(grant.holder, ["lib/x.py"]).refused
    assert refused["lib/x.py"].facts["number"] == asked.number


def test_a_confined_task_takes_nothing(yard: Yard) -> None:
    grant = yard.running("src", strict=True)
    before = yard.store.contents()
    admission = yard.lessor.leases.admit(grant.holder, ["src/a", "docs/a"])
    assert list(admission.refused) == ["docs/a"]
    assert "confined to src" in admission.refused["docs/a"].message
    assert yard.store.contents() == before


@pytest.mark.parametrize("path", [".git/config", "a/../b", "bad\udcffname/.GIT/x"])
def test_a_path_that_no_tree_may_hold_is_refused_in_its_place(yard: Yard, path: str) -> None:
    grant = yard.running("src")
    admission = yard.lessor.leases.admit(grant.holder, ["docs/a", path])
    assert [(p, e.code) for p, e in admission.refused.items()] == [(path, "scope_invalid")]
    assert admission.taken == ()


def test_a_name_outside_of_utf_8_takes_the_directory_around_it(yard: Yard) -> None:
    grant = yard.running("src")
    assert yard.lessor.leases.admit(grant.holder, ["docs/\udcff.txt"]).taken == ("docs",)


def test_a_read_scope_admits_no_write(yard: Yard) -> None:
    grant = yard.running("src", reads=("docs",))
    assert yard.lessor.leases.admit(grant.holder, ["docs/a"]).taken == ("docs",)


def test_who_lost_the_lease_is_told_who_holds_the_task_now(yard: Yard) -> None:
    grant = yard.running("src")
    yard.store.advance(TTL)
    later = yard.claim_one(worker=yard.other.id)
    before = yard.store.contents()
    error = yard.refused(lambda: yard.lessor.leases.admit(grant.holder, ["docs/a"]))
    assert error.code == "lease_lost"
    assert "committed at epoch 1: its time ran out; codex-1 holds it now at epoch 2" in str(error)
    wrong = zombie(later.holder, token=new_token())
    assert yard.refused(lambda: yard.lessor.leases.admit(wrong, [])).code == "lease_lost"
    assert yard.store.contents() == before
