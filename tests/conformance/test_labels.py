"""Branch and label: written by the service alone, one unfinished task for a branch."""

from __future__ import annotations

from dataclasses import replace

from builders import TTL, Yard
from lessor.model.label import parse_label
from lessor.model.task import NewTask


def test_a_grant_has_a_label_that_reads_back(yard: Yard) -> None:
    claude = yard.add_worker("claude@host/1", kind="claude")
    task = yard.add("Fix the 503 on retry; now!")
    grant = yard.claim_one(worker=claude.id)
    label = parse_label(grant.label)
    assert (label.owner, label.env, label.epoch) == ("claude@host/1", "none", 1)
    assert label.task == str(task.number)
    assert label.branch == grant.branch == f"claude/{task.number}-fix-the-503-on-retry-now"


def test_a_task_without_a_repository_has_no_branch(yard: Yard) -> None:
    for wanted in (1, 2):
        for _ in range(wanted):
            yard.add("free", free=True)
        for grant in yard.claim_free(wanted=wanted):
            assert grant.branch is None
            label = parse_label(grant.label)
            assert (label.branch, label.task) == ("none", str(grant.number))


def test_the_branch_stays_with_the_task_over_its_epochs(yard: Yard) -> None:
    claude = yard.add_worker("claude-9", kind="claude")
    first = yard.running("src")
    yard.store.advance(TTL)
    again = yard.claim_one(worker=claude.id)
    assert again.branch == first.branch
    assert parse_label(again.label).epoch == 2


def test_a_branch_that_is_asked_for_is_taken(yard: Yard) -> None:
    yard.add("work", branch="feature/search-copy")
    assert yard.claim_one().branch == "feature/search-copy"


def test_one_unfinished_task_has_a_branch(yard: Yard) -> None:
    first = yard.add("first", branch="feature/x")
    before = yard.store.contents()
    error = yard.refused(lambda: yard.add("second", branch="feature/x"))
    assert error.code == "conflict"
    assert (error.facts["branch"], error.facts["task"]) == ("feature/x", first.task)
    assert f"#{first.number}" in str(error)
    assert yard.store.contents() == before
    yard.complete(yard.claim_one())
    assert yard.add("second", branch="feature/x").created


def test_two_of_one_batch_cant_ask_for_one_branch(yard: Yard) -> None:
    twins = [NewTask(title=t, repository=yard.repository.id, branch="fix/a") for t in "ab"]
    assert yard.refused(lambda: yard.lessor.tasks.submit(twins)).code == "conflict"


def test_the_same_branch_in_another_repository_is_another_branch(yard: Yard) -> None:
    docs = yard.lessor.registry.add_repository("github.com/acme/docs")
    yard.add("here", branch="feature/x")
    yard.add("there", branch="feature/x", repository=docs.id)


def test_a_name_that_somebody_asked_for_doesnt_stop_the_queue(yard: Yard) -> None:
    """The name made for #2 is the one that #1 asked for: it gets another, and nobody is refused."""
    yard.add("first", branch="ai/2-second", scopes=("a",))
    yard.add("second", scopes=("b",))
    yard.add("third", scopes=("c",))
    branches = {grant.title: grant.branch for _ in range(3) for grant in yard.claim()}
    assert branches == {
        "first": "ai/2-second",
        "second": "ai/2-second-2",
        "third": "ai/3-third",
    }


def test_names_stay_free_of_each_other_within_a_batch(yard: Yard) -> None:
    yard.add("x", branch="ai/2-second", scopes=("a",))
    yard.add("second", scopes=("b",))
    yard.add("third", scopes=("c",))
    grants = yard.claim(wanted=3)
    assert [g.branch for g in grants] == ["ai/2-second", "ai/2-second-2", "ai/3-third"]


def test_titles_in_any_script_make_a_branch(yard: Yard) -> None:
    for title in ("修复", "…", "Ärger mit Übergrößen", "a" * 500):
        yard.add(title)
    for grant in yard.claim(wanted=9):
        assert grant.branch is not None
        assert grant.branch.startswith(f"ai/{grant.number}")


def test_a_branch_that_cant_be_handed_on_is_left_for_another(yard: Yard) -> None:
    grant = yard.running("src")
    name, label = yard.lessor.leases.move_branch(grant.holder, "ai/1-work-e1", why="it is kept")
    assert name == "ai/1-work-e1"
    assert parse_label(label) == replace(parse_label(grant.label), branch=name)
    lease = yard.lessor.leases.lease(grant.lease)
    task = yard.lessor.tasks.task(grant.task)
    assert (lease.branch, lease.label, task.branch) == (name, label, name)
    assert yard.kinds(grant.task)[-1] == "branch"
    again = yard.lessor.leases.move_branch(grant.holder, name, why="it is kept")
    assert again == (name, label)
    assert yard.kinds(grant.task).count("branch") == 1
    yard.complete(grant)
    assert yard.lessor.tasks.task(grant.task).state == "succeeded"


def test_the_next_epoch_has_the_branch_that_was_moved_to_and_the_old_one_is_free(
    yard: Yard,
) -> None:
    grant = yard.running("src")
    yard.lessor.leases.move_branch(grant.holder, "ai/1-work-e1", why="it is kept")
    yard.add("its old one", branch=grant.branch)
    yard.store.advance(TTL)
    again = yard.claim_one(task=grant.task)
    assert again.branch == "ai/1-work-e1"
    assert parse_label(again.label).branch == again.branch


def test_a_branch_of_another_unfinished_task_is_never_moved_to(yard: Yard) -> None:
    yard.add("other", branch="ai/1-work-e1", scopes=("docs",))
    grant = yard.running("src")
    name, _ = yard.lessor.leases.move_branch(grant.holder, "ai/1-work-e1", why="it is kept")
    assert name == "ai/1-work-e1-2"


def test_a_holder_that_lost_its_lease_moves_no_branch(yard: Yard) -> None:
    grant = yard.running("src")
    yard.store.advance(TTL)
    current = yard.claim_one(worker=yard.other.id)
    error = yard.refused(
        lambda: yard.lessor.leases.move_branch(grant.holder, "ai/9-x", why="it is kept")
    )
    assert error.code == "lease_lost"
    assert yard.lessor.leases.lease(current.lease).branch == current.branch
