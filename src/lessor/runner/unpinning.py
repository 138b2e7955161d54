"""The pins of bases that nothing needs any more: else each claim would leave a reference for ever.

A base tells a task's own commits from those that it began on, and keeps it from being collected. That is
over once the task is, its worktrees are gone, nothing of it is saved here, its result landed or was given
up, and the record tells the base or no branch is left to tell apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from lessor.errors import GitError, InvalidError, NotFoundError
from lessor.git.bases import pinned_bases, unpin
from lessor.git.refs import BRANCHES
from lessor.git.target import read_refs
from lessor.model.lifecycle import is_terminal
from lessor.model.task import Task
from lessor.service.lessor import Lessor


def drop_pins(
    lessor: Lessor, common_dir: Path, *, repository: str, only: Collection[str] | None = None
) -> int:
    """Delete the pins that nothing needs; how many. Where git can't tell, none.

    Args:
        only: the ids of the tasks that are looked at; else all that have pins here.
    """
    try:
        pins = pinned_bases(common_dir)
        looked_at = pins.keys() if only is None else pins.keys() & set(only)
        refs = read_refs(common_dir) if looked_at else {}
        going = [task for task in sorted(looked_at) if _is_over(lessor, task, repository, refs)]
        return unpin(common_dir, {ref: oid for task in going for ref, oid in pins[task].items()})
    except GitError:
        return 0  # they are in nobody's way until the next time


def _is_over(lessor: Lessor, name: str, repository: str, refs: Mapping[str, str]) -> bool:
    try:
        task = lessor.tasks.task(name)
    except (NotFoundError, InvalidError):
        return False  # another store's
    if task.repository != repository or not is_terminal(task.state):
        return False
    if not _is_told(task, refs) or lessor.workspaces.of_task(task.id):
        return False
    results = lessor.landings.results(task=task.id, unfinished=True)
    return not results and not lessor.salvages.of_task(task.id)


def _is_told(task: Task, refs: Mapping[str, str]) -> bool:
    """Whether the record has the base, or nothing is left that it would tell apart."""
    nothing_left = task.commit is None and f"{BRANCHES}{task.branch}" not in refs
    return task.base is not None or nothing_left
