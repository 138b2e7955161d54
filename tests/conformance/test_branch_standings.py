"""Whose a branch is, as a gate at a push asks; both stores."""

from __future__ import annotations

from builders import TTL, Yard
from lessor.receive.book import StoreBook


def book(yard: Yard) -> StoreBook:
    return StoreBook(yard.lessor, yard.repository.id)


def test_a_branch_is_its_unfinished_tasks(yard: Yard) -> None:
    grant = yard.running("src")
    found = book(yard).standings([grant.branch or "", "nobodys"])
    standing = found[grant.branch or ""]
    assert found.keys() == {grant.branch}
    assert (standing.number, standing.epoch, standing.agent) == (grant.number, 1, "claude-1")
    assert (standing.lease, standing.live, standing.head) == (grant.lease, True, None)
    yard.store.advance(TTL)
    assert not book(yard).standings([grant.branch or ""])[grant.branch or ""].live
    yard.lessor.leases.sweep()
    standing = book(yard).standings([grant.branch or ""])[grant.branch or ""]
    assert (standing.lease, standing.live, standing.state) == (None, False, "queued")


def test_a_finished_tasks_branch_is_its_results_until_that_has_landed(yard: Yard) -> None:
    grant = yard.running("src")
    yard.complete(grant, base="a" * 40, commit="b" * 40)
    branch = grant.branch or ""
    standing = book(yard).standings([branch])[branch]
    assert (standing.state, standing.lease, standing.head) == ("succeeded", None, "b" * 40)
    later = yard.add("later", branch=branch)
    standing = book(yard).standings([branch])[branch]
    assert (standing.number, standing.head) == (later.number, None)


def test_a_cancelled_tasks_branch_is_nobodys(yard: Yard) -> None:
    grant = yard.running("src")
    yard.lessor.tasks.cancel([grant.task])
    assert book(yard).standings([grant.branch or ""]) == {}


def test_branches_of_other_repositories_are_other_branches(yard: Yard) -> None:
    grant = yard.running("src")
    other = yard.lessor.registry.add_repository("github.com/acme/docs")
    assert StoreBook(yard.lessor, other.id).standings([grant.branch or ""]) == {}


def test_paths_are_inside_or_outside_of_a_lease(yard: Yard) -> None:
    grant = yard.running("src", "docs/*.md")
    paths = ["src/a", "src", "srcs/a", "docs/a.md", "docs/b/c.md", "docs/a.txt", "a\x00b", ".git/x"]
    outside = book(yard).outside(grant.lease, paths)
    assert set(outside) == {"srcs/a", "docs/b/c.md", "docs/a.txt", "a\x00b", ".git/x"}
    assert outside["srcs/a"] == ""
    assert outside[".git/x"] != ""
    read_only = yard.add("reads", reads=["lib"])
    reads = yard.claim_one(task=read_only.task)
    assert set(book(yard).outside(reads.lease, ["lib/x"])) == {"lib/x"}


def test_a_branch_whose_result_landed_or_was_given_up_is_nobodys(yard: Yard) -> None:
    branches = []
    for scope in ("src", "docs"):
        grant = yard.running(scope)
        yard.complete(grant, base="a" * 40, commit="b" * 40)
        branches.append(grant.branch or "")
        assert book(yard).standings(branches).keys() == set(branches[-1:])
        if scope == "src":
            yard.lessor.landings.landed(grant.task, commit="c" * 40, target="main")
        else:
            yard.lessor.landings.discarded(grant.task, reason="not wanted")
    assert book(yard).standings(branches) == {}
