"""Where a run may stand: bare repositories, paths through links, twenty claims at once."""

from __future__ import annotations

import pytest
from run_rig import ADD, git

from lessor.git.repository import find_repository
from lessor.git.worktree import list_worktrees
from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind

CLAIMS = 20


def test_a_run_in_a_bare_repository_works_as_in_any_other(shop):
    git(shop.directory, "clone", "-q", "--bare", "shop", "bare.git")
    bare = shop.directory / "bare.git"
    task = shop.add()
    assert shop.run(cwd=bare, repo=find_repository(bare), plan=Plan(check="test -e README")) == 0
    assert shop.task(task).stage == "verified"
    assert git(bare, "show", f"{shop.branch(task)}:1.txt") == "work"
    assert git(bare, "rev-parse", "--is-bare-repository") == "true"
    assert git(bare, "log", "-1", "--format=%s", "main") == "begin"


def test_a_run_from_a_worktree_of_a_bare_repository_begins_at_its_branch(shop):
    git(shop.directory, "clone", "-q", "--bare", "shop", "bare.git")
    git(shop.directory / "bare.git", "worktree", "add", "-q", "-b", "feat/mine", "../tree")
    tree = shop.directory / "tree"
    git(tree, "commit", "-q", "--allow-empty", "-m", "mine")
    task = shop.add()
    assert shop.run(cwd=tree, repo=find_repository(tree)) == 0
    assert git(tree, "log", "-1", "--format=%s", f"{shop.branch(task)}~1") == "mine"


def test_a_run_through_links_is_one_on_what_they_lead_to(shop):
    (shop.directory / "link").symlink_to(shop.root)
    (shop.directory / "state-link").symlink_to(shop.state)
    here = shop.directory / "link" / "src"
    task = shop.add()
    found = find_repository(here)
    assert found == shop.repo
    run = {"cwd": here, "repo": found, "state_dir": shop.directory / "state-link"}
    assert shop.run(f"{ADD}; echo keep > kept.log", **run) == 0
    assert shop.shown(task, "1.txt") == "work"
    assert {tree.path.parent.parent.parent for tree in list_worktrees(found)[1:]} == {shop.state}


@pytest.mark.race
def test_twenty_claims_at_once_are_twenty_worktrees_and_twenty_branches(shop):
    """From a remote's branch, whose name git would write into the shared configuration."""
    git(shop.directory, "clone", "-q", "--bare", "shop", "origin.git")
    git(shop.root, "remote", "add", "origin", str(shop.directory / "origin.git"))
    git(shop.root, "fetch", "-q", "origin")
    before = (shop.root / ".git" / "config").read_text()
    tasks = [shop.add(f"task {n}") for n in range(CLAIMS)]
    agent = f"{ADD}; echo keep > kept.log"
    assert shop.run(agent, workers=CLAIMS, base="origin/main") == 0
    assert not shop.notes.of(NoteKind.FAILED)
    assert {shop.task(task).state for task in tasks} == {"succeeded"}
    trees = {tree.branch for tree in list_worktrees(shop.repo)}
    named = git(shop.root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert trees == set(named) == {"main", *(shop.branch(task) for task in tasks)}
    assert all(lease.epoch == 1 for task in tasks for lease in shop.lessor.leases.leases(task=task))
    after = (shop.root / ".git" / "config").read_text()
    # What each worktree has of its own needs this one line of the repository, which git asks for.
    assert after == f"{before}[extensions]\n\tworktreeConfig = true\n"
