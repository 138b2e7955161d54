"""An agent that makes a repository of its own in its worktree's place keeps no branch and no one else's HEAD."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_rig import ADD, git

from lessor.model.workspace import WorkspaceState

INSTEAD = {
    "a new one": "rm .git; git init -q -b main; git add -A; git commit -qm mine; exit 1",
    "the person's": "rm .git; ln -s {root}/.git .git; exit 1",
}


@pytest.mark.parametrize("what", INSTEAD)
def test_the_next_epoch_goes_on_with_the_branch(shop, what: str) -> None:
    task = shop.add(max_attempts=1)
    shop.run(INSTEAD[what].format(root=shop.root), task=task)
    (old,) = shop.lessor.workspaces.of_task(task)
    assert git(shop.root, "symbolic-ref", "HEAD") == "refs/heads/main"
    shop.lessor.tasks.requeue([task], actor="dana")
    assert shop.run(ADD, task=task) == 0
    assert git(shop.root, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert shop.task(task).branch == old.branch
    assert shop.shown(task, "1.txt") == "work"
    assert shop.lessor.workspaces.get(old.id).state is WorkspaceState.QUARANTINED
    assert (Path(old.path) / "README").exists()


@pytest.mark.parametrize("what", INSTEAD)
def test_what_it_made_there_is_no_result_and_a_person_is_asked(shop, what: str) -> None:
    task = shop.add()
    agent = INSTEAD[what].format(root=shop.root).removesuffix("exit 1")
    assert shop.run(f"{agent} echo done") == 8
    assert "cut its worktree off from git" in shop.task(task).said
    assert git(shop.root, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert git(shop.root, "status", "--porcelain") == ""
