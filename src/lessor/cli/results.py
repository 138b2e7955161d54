"""What a task's branch has: from which commit, to which, read from git as it is now."""

from __future__ import annotations

from dataclasses import dataclass

from lessor.cli.invocation import Invocation
from lessor.errors import GitError, NotFoundError
from lessor.git.changes import FileChange
from lessor.git.refs import BRANCHES, base_ref, read_ref
from lessor.git.repository import Repository
from lessor.git.target import fork_of
from lessor.model.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Two commits of a clone: where a task began and how far it is.

    Attributes:
        finished: the end is a reported result; else it is where the branch stands now.
    """

    repository: Repository
    base: str
    head: str
    finished: bool


def find_work(invocation: Invocation, task: Task) -> Work:
    """The task's work in this clone.

    Raises:
        NotARepositoryError: there is no clone on this machine.
        NotFoundError: nothing has been committed, or its commits aren't in this clone.
    """
    repository = invocation.standing.checkout_or_refuse().repository
    common_dir = repository.common_dir
    if task.base and task.commit:
        if not (_has(repository, task.base) and _has(repository, task.commit)):
            raise NotFoundError(
                f"The commits of #{task.number} aren't in this clone.",
                next_step=f"Fetch them: git fetch origin {task.branch or ''}".rstrip() + ".",
                commit=task.commit,
            )
        return Work(repository=repository, base=task.base, head=task.commit, finished=True)
    known = task.commit if task.commit and _has(repository, task.commit) else None
    head = known or (read_ref(common_dir, f"{BRANCHES}{task.branch}") if task.branch else None)
    base = fork_of(common_dir, known) if known else None
    base = base or next(
        (
            found
            for epoch in range(1, task.epoch + 1)
            if (found := read_ref(common_dir, base_ref(task.id, epoch)))
        ),
        None,
    )
    if head is None or base is None:
        raise NotFoundError(
            f"#{task.number} has committed nothing here yet.",
            next_step=f"See what it does: lessor show {task.number}.",
            number=task.number,
        )
    return Work(repository=repository, base=base, head=head, finished=known is not None)


def changed_files(invocation: Invocation, task: Task) -> tuple[FileChange, ...]:
    """The files that the task changed; none where this machine can't tell."""
    from lessor.errors import NotARepositoryError
    from lessor.git.changes import diff_summary

    try:
        work = find_work(invocation, task)
        return diff_summary(work.repository.common_dir, work.base, work.head)
    except (NotFoundError, NotARepositoryError, GitError):
        return ()


def _has(repository: Repository, commit: str) -> bool:
    asked = ["cat-file", "-e", f"{commit}^{{commit}}"]
    return not commit.startswith("-") and repository.git(asked, check=False).code == 0


def block_words(invocation: Invocation, task: Task) -> str:
    """Who blocked a task and why, where a person did it; else nothing."""
    if task.state != "blocked":
        return ""
    told = [
        event
        for event in invocation.lessor.tasks.history(task.id)
        if event.kind == "blocked" or event.facts.get("state") == "blocked"
    ]
    if not told or told[-1].kind != "blocked":
        return ""
    facts = told[-1].facts
    reason = f": {facts['reason']}" if facts.get("reason") else ""
    return f"is blocked by {facts.get('actor') or 'a person'}{reason}"


def landing_trouble(invocation: Invocation, task: Task) -> str:
    """Why a finished task's result couldn't land when that was tried last; empty where it could."""
    if task.state != "succeeded":
        return ""
    results = invocation.lessor.landings.results(task=task.id)
    return (results[0].trouble or "") if results else ""
