"""Bases are pinned for as long as something may need them, and no longer."""

from __future__ import annotations

import pytest
from run_rig import ADD, RunRig, git

from lessor.errors import GitError
from lessor.git.bases import unpin
from lessor.model.workspace import WorkspaceState
from lessor.runner.cleaning import clean, give_up
from lessor.runner.landing import Lander
from lessor.runner.unpinning import drop_pins

EDIT = 'echo "by $LESSOR_NUMBER" >> README; echo done'


def pins(shop: RunRig) -> dict[str, str]:
    listed = git(shop.root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/lessor/base")
    return dict(line.split(" ") for line in listed.split("\n") if line)


def pin_of(task: str, epoch: int = 1) -> str:
    return f"refs/lessor/base/{task}/{epoch}"


def land(shop: RunRig, task: str) -> None:
    Lander(shop.desk(), branch="main", tell=lambda _task, _text: None).land([shop.task(task)])


def test_a_result_s_base_is_pinned_until_it_landed(shop: RunRig) -> None:
    task = shop.add()
    shop.run(EDIT)
    base = shop.task(task).base
    clean(shop.desk())
    assert pins(shop) == {pin_of(task): base}
    land(shop, task)
    assert pins(shop) == {}
    assert shop.task(task).base == base
    assert git(shop.root, "rev-parse", f"{base}^{{commit}}") == base


def test_a_result_that_a_person_merged_is_found_by_the_next_run(shop: RunRig) -> None:
    task = shop.add()
    shop.run(EDIT)
    git(shop.root, "merge", "-q", shop.branch(task))
    other = shop.add()
    shop.run(ADD)
    assert pins(shop).keys() == {pin_of(other)}


def test_a_result_that_was_given_up_pins_nothing(shop: RunRig) -> None:
    task = shop.add()
    shop.run(EDIT)
    give_up(shop.desk(), task)
    assert pins(shop) == {}


def test_a_task_that_may_go_on_keeps_its_pin(shop: RunRig) -> None:
    task = shop.add(max_attempts=1)
    shop.run("exit 1")
    clean(shop.desk())
    assert pins(shop).keys() == {pin_of(task)}


def test_what_is_cancelled_is_pinned_while_its_branch_is_there(shop: RunRig) -> None:
    """Nothing else tells which commits on it are its own."""
    task = shop.add(max_attempts=1)
    shop.run("git commit -q --allow-empty -m own; exit 1")
    shop.lessor.tasks.cancel([task])
    clean(shop.desk())
    assert shop.lessor.workspaces.of_task(task) == []
    assert pins(shop).keys() == {pin_of(task)}
    git(shop.root, "branch", "-q", "-D", shop.branch(task))
    clean(shop.desk())
    assert pins(shop) == {}


def test_what_is_cancelled_is_pinned_while_its_worktree_is_there(shop: RunRig) -> None:
    task = shop.add(max_attempts=1)
    shop.run("exit 1")
    shop.lessor.tasks.cancel([task])
    git(shop.root, "update-ref", "-d", f"refs/heads/{shop.branch(task)}")
    site = shop.desk()
    assert drop_pins(site.lessor, site.repo.common_dir, repository=site.repository) == 0
    (kept,) = shop.lessor.workspaces.of_task(task)
    shop.lessor.workspaces.move(kept, WorkspaceState.GONE, why="for the test")
    assert drop_pins(site.lessor, site.repo.common_dir, repository=site.repository) == 1


def test_what_is_saved_of_a_task_keeps_its_pin(shop: RunRig) -> None:
    task = shop.add(max_attempts=1)
    shop.run(EDIT)
    saved = f"refs/lessor/salvage/{task}/1/1"
    git(shop.root, "update-ref", saved, "HEAD")
    land(shop, task)
    assert pins(shop).keys() == {pin_of(task)}
    git(shop.root, "update-ref", "-d", saved)
    clean(shop.desk())
    assert pins(shop) == {}


def test_a_pin_of_a_task_that_this_store_doesnt_know_stays(shop: RunRig) -> None:
    for name in ("task_00000000000000000000000001", "7", "odd-name"):
        git(shop.root, "update-ref", pin_of(name), "HEAD")
    before = pins(shop)
    clean(shop.desk())
    assert pins(shop) == before
    assert len(before) == 3


def test_a_commit_that_a_pin_alone_leads_to_is_never_let_go(shop: RunRig) -> None:
    tree = git(shop.root, "rev-parse", "HEAD^{tree}")
    alone = git(shop.root, "commit-tree", tree, "-m", "alone")
    for name, commit in (("a", alone), ("b", "HEAD"), ("c", alone)):
        git(shop.root, "update-ref", pin_of(name), commit)
    assert unpin(shop.root / ".git", pins(shop)) == 1
    assert pins(shop) == {pin_of("a"): alone, pin_of("c"): alone}


def test_a_pin_that_was_moved_meanwhile_stays(shop: RunRig) -> None:
    git(shop.root, "update-ref", pin_of("a"), "HEAD")
    before = pins(shop)
    shop.commit_empty("next")
    git(shop.root, "update-ref", pin_of("a"), "HEAD")
    with pytest.raises(GitError, match="expected"):
        unpin(shop.root / ".git", before)
    assert pins(shop) == {pin_of("a"): git(shop.root, "rev-parse", "HEAD")}
