"""Salvages as people name them: `14` for all of a task, `14/2/1` for one."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from lessor.cli.finding import find_task
from lessor.cli.invocation import Invocation
from lessor.cli.output import Record
from lessor.cli.times import instant
from lessor.errors import GitError, InvalidError, NotFoundError
from lessor.git.refs import read_ref
from lessor.git.saved import Saved, delete_saved_ref, read_saved
from lessor.model.task import Task
from lessor.runner.unrecorded import of_unknown_tasks
from lessor.service.salvages import Salvaged

_NAME = re.compile(r"#?(?P<task>\w+)(?:/(?P<epoch>\d{1,9}))?(?:/(?P<n>\d{1,9}))?")


class Found:
    """A salvage with its task.

    Attributes:
        number: the task's; 0 where this store doesn't know the task.
        is_here: whether it was saved on this machine.
    """

    def __init__(self, invocation: Invocation, saved: Salvaged, task: Task | None) -> None:
        self.saved = saved
        self.number = task.number if task else 0
        self.title = task.title if task else "of a task that this store doesn't know"
        self.is_here = task is None or saved.host_id == invocation.host_id
        self._invocation = invocation

    @property
    def name(self) -> str:
        """How people call it: task, epoch, number, as in `14/2/1`."""
        return f"{self.number or self.saved.task}/{self.saved.epoch}/{self.saved.n}"

    @property
    def archive(self) -> Path | None:
        """Where its archive lies."""
        return None if self.saved.archive is None else Path(self.saved.archive)

    @cached_property
    def common_dir(self) -> Path:
        """The clone on this machine that has its reference; else the one around."""
        own = self._invocation.standing.checkout_or_refuse().repository.common_dir
        repository, ref = self._invocation.repository, self.saved.ref
        if ref is None or repository is None or read_ref(own, ref) is not None:
            return own
        for host, common_dir in self._invocation.lessor.registry.checkouts(repository):
            place = Path(common_dir)
            known = host == self._invocation.host_id and place.is_dir()
            if known and read_ref(place, ref) is not None:
                return place
        return own

    @cached_property
    def content(self) -> Saved:
        """What it holds; GitError where that isn't on this machine."""
        if not self.is_here:
            raise GitError(
                f"{self.name} was saved on another machine.",
                next_step="Run this there; salvages are never pushed.",
            )
        return read_saved(self.common_dir, ref=self.saved.ref, archive=self.archive)


def find_salvages(invocation: Invocation, name: str | None, *, most: int = 1000) -> list[Found]:
    """The salvages that `name` means; all of the repository for None.

    Raises:
        InvalidError: it is no name of one.
        NotFoundError: there is none.
    """
    lessor = invocation.lessor
    if name is None:
        repository = invocation.repository
        found = lessor.salvages.of_repository(repository, most=most) if repository else []
        tasks = {saved.task: lessor.tasks.task(saved.task) for saved in found}
        return [Found(invocation, saved, tasks[saved.task]) for saved in found]
    read = _NAME.fullmatch(name)
    if read is None:
        raise InvalidError(
            f"{name[:80]!r} is no salvage.",
            next_step="Name one as `lessor salvage list` does: 14/2/1, or 14 for all of #14.",
        )
    task, saved_of_it = _saved_of(invocation, read["task"])
    wanted = [read["epoch"], read["n"]]
    chosen = [
        Found(invocation, saved, task)
        for saved in saved_of_it
        if all(
            w is None or int(w) == n for w, n in zip(wanted, (saved.epoch, saved.n), strict=True)
        )
    ]
    if not chosen:
        raise NotFoundError(
            f"Nothing called {name} was saved, or it was dropped.",
            next_step="List what there is: lessor salvage list.",
        )
    return chosen


def find_unknown(invocation: Invocation, task: str | None = None) -> list[Found]:
    """What lies on this machine of tasks that this store doesn't know, or of one of them."""
    repo = invocation.standing.checkout_or_refuse().repository
    found = of_unknown_tasks(invocation.lessor, repo, invocation.settings.salvage_dir)
    return [Found(invocation, one, None) for one in found if task in {None, one.task}]


def _saved_of(invocation: Invocation, name: str) -> tuple[Task | None, list[Salvaged]]:
    try:
        task = find_task(invocation, name)
    except NotFoundError:
        unknown = [found.saved for found in find_unknown(invocation, name)]
        if not unknown:
            raise
        return None, unknown
    return task, invocation.lessor.salvages.of_task(task.id)


def find_salvage(invocation: Invocation, name: str) -> Found:
    """The one salvage that `name` means.

    Raises:
        InvalidError: it means several.
        NotFoundError: there is none.
    """
    found = find_salvages(invocation, name)
    if len(found) > 1:
        names = [one.name for one in found]
        raise InvalidError(
            f"{name} has {len(found)} salvages: {', '.join(names)}.",
            next_step=f"Name one; the newest: {names[-1]}.",
            names=names,
        )
    return found[0]


def drop_found(invocation: Invocation, found: Found, *, reason: str) -> None:
    """Delete a salvage: its reference and archive, as far as no other one needs them, then its record.

    Raises:
        GitError: it isn't on this machine, or something can't be deleted; the record stays.
    """
    if not found.is_here:
        raise GitError(
            f"{found.name} was saved on another machine.",
            next_step="Drop it there: it lies in a clone and a directory of that machine.",
        )
    salvages = invocation.lessor.salvages
    known = salvages.of_task(found.saved.task) if found.number else []
    others = [one for one in known if one != found.saved]
    ref, archive = found.saved.ref, found.archive
    if ref and all(other.ref != ref for other in others):
        at = read_ref(found.common_dir, ref)
        if at is not None:
            delete_saved_ref(found.common_dir, ref, expected=at)
    if archive is not None and all(other.archive != found.saved.archive for other in others):
        _delete_archive(archive, below=invocation.settings.salvage_dir)
    if found.number:
        salvages.drop(found.saved, actor=invocation.person, reason=reason)


def holds_text(found: Found) -> str:
    """What a salvage holds, in few words, without looking at it."""
    files = found.saved.files
    text = f"{files} file{'' if files == 1 else 's'}" if files else "commits"
    return f"{text}, archive" if found.saved.archive else text


def salvage_record(invocation: Invocation, found: Found) -> Record:
    """A salvage for programs."""
    saved = found.saved
    return {
        "name": found.name,
        "taskId": saved.task,
        "number": found.number or None,
        "title": found.title,
        "repo": invocation.standing.key or None,
        "epoch": saved.epoch,
        "n": saved.n,
        "ref": saved.ref,
        "archive": saved.archive,
        "files": saved.files,
        "branch": saved.branch,
        "path": saved.path,
        "here": found.is_here,
        "at": instant(saved.at_ms),
    }


def _delete_archive(archive: Path, *, below: Path) -> None:
    if archive.parent.resolve() != below.resolve() or archive.is_symlink():
        raise GitError(
            f"{archive} doesn't lie in {below}, so it isn't deleted.",
            next_step="Look at it, and delete it yourself.",
            archive=str(archive),
        )
    archive.unlink(missing_ok=True)
