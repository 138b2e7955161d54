"""Results that haven't landed, in the order in which they can: what stands below comes first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lessor.cli.invocation import Invocation
from lessor.git.repository import Repository
from lessor.model.lifecycle import TaskState
from lessor.model.task import Stage, Task, TaskId
from lessor.service.landing import Unlanded
from lessor.service.lessor import Lessor

MOST_LOOKED_AT = 30
_FINISHED_WELL = frozenset({Stage.VERIFIED, Stage.UNVERIFIED, Stage.PUSHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToLand:
    """What could land, or couldn't when that was tried last.

    Attributes:
        tasks: those whose result the branch doesn't contain, in the order in which they can land.
        troubles: why the result of a task couldn't land when that was tried last, by its id.
        behind: those before which another one has to land: they stand on it, or needed it (`--after`).
        unseen: how many more results nobody looked at.
    """

    tasks: Sequence[Task]
    troubles: Mapping[TaskId, str]
    behind: Collection[TaskId]
    unseen: int


def read_to_land(invocation: Invocation, *, commit: str) -> ToLand:
    """The results of the repository that `commit` doesn't contain; reads only.

    Args:
        commit: where the person's branch is; empty where nothing can be compared.
    """
    standing, lessor = invocation.standing, invocation.lessor
    results = lessor.landings.results(repository=standing.id) if standing.id else []
    looked_at = results[:MOST_LOOKED_AT]
    repository = standing.checkout.repository if standing.checkout and commit else None
    tasks = [
        task
        for task in (lessor.tasks.task(result.task) for result in looked_at)
        if _could_land(task) and not (repository and contains(repository, task.commit, at=commit))
    ]
    first = _firsts(lessor, looked_at)
    known = {task.id for task in tasks}
    return ToLand(
        tasks=_ordered(tasks, first),
        troubles={result.task: result.trouble or "" for result in looked_at},
        behind={task for task in known if first[task] & known},
        unseen=len(results) - len(looked_at),
    )


def in_landing_order(lessor: Lessor, results: Sequence[Unlanded]) -> list[Task]:
    """The tasks of `results`: what others stand on or needed before them, else the oldest first."""
    tasks = [lessor.tasks.task(result.task) for result in results]
    return _ordered(tasks, _firsts(lessor, results))


def contains(repository: Repository, commit: str | None, *, at: str) -> bool:
    """Whether the history of `at` contains `commit`; False where git can't tell."""
    asked = ["merge-base", "--is-ancestor", commit or "", at]
    return repository.git(asked, check=False).code == 0


def _could_land(task: Task) -> bool:
    return (
        task.state is TaskState.SUCCEEDED
        and task.stage in _FINISHED_WELL
        and task.commit not in {None, task.base}
    )


def _firsts(lessor: Lessor, results: Sequence[Unlanded]) -> dict[TaskId, set[TaskId]]:
    """By task, those of the others that have to land before it."""
    known = {result.task for result in results}
    return {
        result.task: known
        & {*result.below, *([result.on] if result.on else []), *lessor.tasks.needs(result.task)}
        for result in results
    }


def _ordered(tasks: Sequence[Task], first: Mapping[TaskId, Collection[TaskId]]) -> list[Task]:
    left, ordered = sorted(tasks, key=lambda task: task.number), list[Task]()
    while left:
        ids = {task.id for task in left}
        task = next((one for one in left if ids.isdisjoint(first[one.id])), left[0])
        left.remove(task)
        ordered.append(task)
    return ordered
