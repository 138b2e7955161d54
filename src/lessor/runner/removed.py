"""An agent that took away the worktree it was given: told as that, with what is left of its work.

Another round has no place to work in, and another attempt would most likely do the same: a person
decides.
"""

from __future__ import annotations

from lessor.errors import WorktreeError
from lessor.git.command import run_git
from lessor.git.layout import linked_layout
from lessor.git.refs import BRANCHES, read_ref
from lessor.model.grant import Grant
from lessor.model.task import Stage
from lessor.runner.desk import Desk
from lessor.runner.judging import Finding, Judgement
from lessor.runner.workplace import Place


def is_there(place: Place) -> bool:
    """Whether the worktree is still one that git knows, and not an agent's own repository in its place."""
    try:
        linked_layout(place.worktree)
    except WorktreeError:
        return False
    return True


def of_removed(desk: Desk, grant: Grant, place: Place, *, question: str) -> Judgement:
    """What is left of a removed worktree's work: the commits on its branch.

    Args:
        question: what the agent asked, if it did.

    Raises:
        GitError: git can't be asked.
    """
    branch, common_dir = place.workspace.branch, desk.repo.common_dir
    tip = read_ref(common_dir, f"{BRANCHES}{branch}") or place.start
    counted = ["rev-list", "--count", f"{place.base}..{tip}"]
    commits = int(run_git(counted, cwd=common_dir, git_dir=common_dir).text)
    if place.worktree.is_dir():
        what = "The agent cut its worktree off from git"
        rest = f"its files are kept in {place.worktree}"
    else:
        what = "The agent removed its own worktree, or moved it away"
        rest = "what was only in its files went with it"
    left = {0: "No commit is", 1: "1 commit is"}.get(commits, f"{commits} commits are")
    told = f"{what}. {left} on {branch}; {rest}."
    look = f"See: lessor diff {grant.number}. " if commits else ""
    step = f'{look}Then: lessor answer {grant.number} "leave your worktree where it is".'
    return Judgement(
        finding=Finding.QUESTION,
        stage=Stage.SUBMITTED if commits else Stage.NONE,
        commit=tip,
        text="\n\n".join(part for part in (question, f"{told} {step}") if part),
    )
