"""Results that are on their target already: recorded as landed, so that their shadows go.

By a merge, a squash or a rebase, of whoever it was; or by a landing that was cut off between the
branch's move and the record of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.git.landed import Asked, what_landed
from lessor.git.refs import BRANCHES, delete_ref, landing_ref, read_ref
from lessor.git.replay import is_in
from lessor.git.target import Target
from lessor.model.task import Task
from lessor.runner.desk import Desk
from lessor.runner.noting import NoteKind
from lessor.service.lessor import Lessor


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A result that is on its target.

    Attributes:
        commit: the target's commit that has it.
        how: merged, squashed, rebased.
    """

    task: Task
    commit: str
    how: str


def settle_landed(
    lessor: Lessor, common_dir: Path, *, repository: str, target: Target, most: int = 1_000
) -> list[Settled]:
    """Record as landed what `target` has of the repository's results; those that weren't known.

    It asks git about all of them at once, and no remote.
    """
    results = lessor.landings.results(repository=repository, unfinished=True, most=most)
    # Of work that goes on, its shadow is all there is to end.
    results = [result for result in results if result.finished or result.shadowed]
    tasks = [lessor.tasks.task(result.task) for result in results]
    found = [*_by_history(common_dir, tasks, target), *_cut_off(common_dir, tasks, target)]
    settled = {one.task.id: one for one in found}
    for task, one in settled.items():
        lessor.landings.landed(task, commit=one.commit, target=target.name, how=one.how)
        forget_landing(common_dir, task)
    return list(settled.values())


def forget_landing(common_dir: Path, task: str) -> None:
    """Drop what a landing kept of its intention, once that is on record."""
    kept = read_ref(common_dir, landing_ref(task))
    if kept is not None:
        delete_ref(common_dir, landing_ref(task), expected=kept)


def _cut_off(common_dir: Path, tasks: Sequence[Task], target: Target) -> list[Settled]:
    found = []
    for task in tasks:
        meant = read_ref(common_dir, landing_ref(task.id))
        if meant and target.commit and is_in(common_dir, meant, target.commit):
            found.append(Settled(task=task, commit=meant, how="rebased"))
    return found


def _by_history(common_dir: Path, tasks: Sequence[Task], target: Target) -> list[Settled]:
    asked = [Asked(branch=task.branch or "", base=task.base, seen=task.commit) for task in tasks]
    found = what_landed(common_dir, asked, target=target) if asked else []
    return [
        Settled(
            task=task,
            commit=landing.holders[0] if landing.holders else str(landing.tip),
            how=landing.verdict,
        )
        for task, landing in zip(tasks, found, strict=True)
        if landing.verdict.is_in
    ]


def lift_landed(desk: Desk) -> None:
    """Before anything is claimed: what the base has of unlanded results is no shadow any more.

    Raises:
        GitError: the base names no commit.
    """
    target = Target(name=_name(desk.options.base), commit=desk.base_commit())
    for one in settle_landed(
        desk.lessor, desk.repo.common_dir, repository=desk.repository, target=target
    ):
        said = f"the result of #{one.task.number} is on {target.name} ({one.how}, {one.commit[:7]})"
        desk.note(NoteKind.FOUND, said)


def _name(base: str | None) -> str:
    return (base or "HEAD").removeprefix(BRANCHES)
