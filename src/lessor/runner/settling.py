"""Results that are on their target already, or gone: recorded, so that their shadows go.

They landed by a merge, a squash or a rebase, of whoever it was; or by a landing that was cut off
between the branch's move and the record of it. They are gone where somebody deleted the branch, and
nothing else has the commit. What nobody can tell stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import GitError
from lessor.git.advertised import Advertised, has_more
from lessor.git.landed import Asked, Landing, what_landed
from lessor.git.refs import BRANCHES, base_ref, delete_ref, is_unreferenced, landing_ref, read_ref
from lessor.git.replay import is_in
from lessor.git.target import Target, read_refs
from lessor.model.task import Stage, Task
from lessor.runner.desk import Desk
from lessor.runner.noting import NoteKind
from lessor.runner.unpinning import drop_pins
from lessor.service.landing import Unlanded
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
    lessor: Lessor, common_dir: Path, *, repository: str, target: Target
) -> list[Settled]:
    """Record as landed what `target` has of the repository's results; those that weren't known.

    It asks git about all of them at once, and no remote. A result's own branch has it by itself:
    where that is the target, nothing has landed.
    """
    results = _open_results(lessor, repository)
    if any(_is_own(target, one) for one in results):
        return []
    tasks = [lessor.tasks.task(one.task) for one in results]
    found = [*_by_history(common_dir, tasks, target), *_cut_off(common_dir, tasks, target)]
    return _settle(lessor, common_dir, found, repository=repository, target=target)


def settle_found(
    lessor: Lessor,
    common_dir: Path,
    found: Iterable[tuple[Task, Landing]],
    *,
    repository: str,
    target: Target,
) -> list[Settled]:
    """The same for tasks whose branches were judged against `target` already."""
    known = {one.task for one in _open_results(lessor, repository)}
    landed = (_settled(task, one) for task, one in found if task.id in known and _is_in(one))
    return _settle(lessor, common_dir, landed, repository=repository, target=target)


def give_up_gone(
    lessor: Lessor,
    common_dir: Path,
    *,
    repository: str,
    said: Advertised | None = None,
    only: Collection[str] | None = None,
) -> list[Task]:
    """Record as given up what is gone of the repository's results.

    Gone is what was made in this clone, whose branch isn't here any more, whose commit nothing here
    leads to, of which no worktree is left, and which no remote has as far as it was pushed.

    Args:
        said: what the remote said of its branches; None where it wasn't asked, or didn't answer.
        only: the ids of the tasks that are looked at.
    """
    try:
        refs = read_refs(common_dir)
    except GitError:
        return []  # nobody can tell
    gone = []
    for one in _open_results(lessor, repository):
        if only is not None and one.task not in only:
            continue
        task = lessor.tasks.task(one.task)
        if _is_gone(lessor, common_dir, task, one, refs, said=said):
            lessor.landings.discarded(task.id, reason="its branch was deleted")
            gone.append(task)
    return gone


def forget_landing(common_dir: Path, task: str) -> None:
    """Drop what a landing kept of its intention, once that is on record."""
    kept = read_ref(common_dir, landing_ref(task))
    if kept is not None:
        delete_ref(common_dir, landing_ref(task), expected=kept)


def _is_own(target: Target, result: Unlanded) -> bool:
    # A detached HEAD is named by its commit.
    stands_on_it = target.commit == result.head and result.head.startswith(target.name)
    return stands_on_it or target.name == result.branch


def _open_results(lessor: Lessor, repository: str) -> list[Unlanded]:
    results = lessor.landings.all_results(repository=repository)
    return [result for result in results if result.is_open]


def _settle(
    lessor: Lessor,
    common_dir: Path,
    found: Iterable[Settled],
    *,
    repository: str,
    target: Target,
) -> list[Settled]:
    settled = {one.task.id: one for one in found}
    for task, one in settled.items():
        lessor.landings.landed(task, commit=one.commit, target=target.name, how=one.how)
        forget_landing(common_dir, task)
    if settled:
        drop_pins(lessor, common_dir, repository=repository, only=settled.keys())
    return list(settled.values())


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
    pairs = zip(tasks, found, strict=True)
    return [_settled(task, landing) for task, landing in pairs if _is_in(landing)]


def _is_in(landing: Landing) -> bool:
    return landing.verdict.is_in


def _settled(task: Task, landing: Landing) -> Settled:
    commit = landing.holders[0] if landing.holders else str(landing.tip)
    return Settled(task=task, commit=commit, how=landing.verdict)


def _is_gone(
    lessor: Lessor,
    common_dir: Path,
    task: Task,
    result: Unlanded,
    refs: Mapping[str, str],
    *,
    said: Advertised | None,
) -> bool:
    if f"{BRANCHES}{result.branch}" in refs or lessor.workspaces.of_task(task.id):
        return False
    if said is None and (task.stage is Stage.PUSHED or lessor.intents.of_task(task.id)):
        return False  # a remote may have it
    if said is not None and result.branch in said.branches:
        return False
    made_here = any(base_ref(task.id, epoch) in refs for epoch in range(1, task.epoch + 1))
    try:
        if said is not None and has_more(common_dir, said):
            return False  # it may be in there
        return made_here and is_unreferenced(common_dir, result.head)
    except GitError:
        return False  # nobody can tell


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
