"""What is on this host and not in the store: salvages it wasn't told of, worktrees it doesn't know.

A store that is away loses no work: git and the archives hold what was saved. Here it is told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lessor.errors import GitError, NotFoundError
from lessor.git.leaving import is_leaving
from lessor.git.ownership import VERIFY
from lessor.git.refs import OWN
from lessor.git.registry import list_worktrees
from lessor.git.repository import Repository
from lessor.git.saved import read_saved
from lessor.model.workspace import Workspace
from lessor.runner.site import Site
from lessor.service.lessor import Lessor
from lessor.service.salvages import Salvaged

_REF = re.compile(rf"{OWN}/salvage/(task_[0-9a-z]+)/([0-9]{{1,9}})/[0-9]{{1,9}}")
_ARCHIVE = re.compile(r"(task_[0-9a-z]+)-([0-9]{1,9})-[0-9]{1,9}\.tar")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A worktree that Lessor made and this store has no record of, or what a removal left of one."""

    path: Path
    why: str
    step: str


def note_unrecorded(site: Site) -> int:
    """Tell the store of salvages that lie on this host and that it has no record of; how many.

    Tasks that somebody works on now are left alone: whoever saves something there tells it himself.

    Raises:
        GitError: git can't list its references.
    """
    found: dict[str, list[tuple[int, str | None, Path | None]]] = {}
    for task, epoch, ref, archive in _places(site.repo, site.archive_dir):
        found.setdefault(task, []).append((epoch, ref, archive))
    return sum(_note(site, task, places) for task, places in found.items())


def strays(site: Site) -> list[Stray]:
    """Worktrees of this clone that are Lessor's and in no record, and half-deleted directories.

    Raises:
        GitError: git can't list the worktrees.
    """
    recorded = {
        Path(workspace.path).parent.resolve() / Path(workspace.path).name
        for workspace in site.lessor.workspaces.on_host(site.host.id)
    }
    known = list_worktrees(site.repo)
    found = [
        Stray(
            path=entry.path,
            why="this store has no record of it",
            step=f"lessor workspace inspect {entry.path}",
        )
        for entry in known
        if entry.is_lessors
        and entry.locked_reason != VERIFY
        and not is_leaving(entry.path)
        and entry.path not in recorded
    ]
    registered = {entry.path for entry in known}
    return found + [
        Stray(
            path=path,
            why="git couldn't delete all of it; nothing in it was work",
            step=f"ls -la {path}",
        )
        for path in sorted(site.worktrees_dir.resolve().glob("*"))
        if is_leaving(path) and path not in registered
    ]


def of_unknown_tasks(lessor: Lessor, repo: Repository, archive_dir: Path) -> list[Salvaged]:
    """What lies on this host of tasks that the store doesn't know, in the order of its names.

    It was saved for another store, or after the backup that this one was restored from. Path and
    branch are empty: nobody knows them any more. Of one epoch the references are counted first.

    Raises:
        GitError: git can't list its references.
    """
    found: list[Salvaged] = []
    counts: Counter[tuple[str, int]] = Counter()
    for task, epoch, ref, archive in sorted(
        _places(repo, archive_dir), key=lambda place: (place[0], place[1], place[2] is None)
    ):
        if _is_known(lessor, task):
            continue
        counts[task, epoch] += 1
        found.append(
            Salvaged(
                task=task,
                epoch=epoch,
                n=counts[task, epoch],
                ref=ref,
                archive=None if archive is None else str(archive),
                files=_files(repo, ref, archive),
                at_ms=_saved_ms(repo, ref, archive),
                host_id="",
                path="",
                branch="",
            )
        )
    return found


def _is_known(lessor: Lessor, task: str) -> bool:
    try:
        lessor.tasks.task(task)
    except NotFoundError:
        return False
    return True


def _places(
    repo: Repository, archive_dir: Path
) -> Iterator[tuple[str, int, str | None, Path | None]]:
    listed = repo.git(["for-each-ref", "--format=%(refname)", f"{OWN}/salvage"])
    for ref in listed.lines:
        read = _REF.fullmatch(ref)
        if read is not None:
            yield read[1], int(read[2]), ref, None
    for path in sorted(archive_dir.glob("*.tar")):
        read = _ARCHIVE.fullmatch(path.name)
        if read is not None:
            yield read[1], int(read[2]), None, path


def _saved_ms(repo: Repository, ref: str | None, archive: Path | None) -> int:
    if ref is not None:
        asked = ["log", "-1", "--format=%ct", ref]
        return 1000 * int(repo.git(asked, check=False).text or 0)
    return 0 if archive is None else archive.stat().st_mtime_ns // 1_000_000


def _note(site: Site, task: str, places: list[tuple[int, str | None, Path | None]]) -> int:
    try:
        if site.lessor.tasks.task(task).repository != site.repository:
            return 0
        leases = site.lessor.leases.leases(task=task, live=True)
    except NotFoundError:  # another store's
        return 0
    if leases:
        return 0
    salvages = site.lessor.salvages.of_task(task)
    known = {s.ref for s in salvages} | {s.archive for s in salvages}
    count = 0
    for epoch, ref, archive in places:
        workspace = _of_epoch(site, task, epoch)
        if workspace is None or (ref or str(archive)) in known:
            continue
        kept = str(archive) if archive else None
        site.lessor.salvages.note(
            workspace, ref=ref, archive=kept, files=_files(site.repo, ref, archive)
        )
        count += 1
    return count


def _of_epoch(site: Site, task: str, epoch: int) -> Workspace | None:
    """The workspace that was saved, as of that epoch; a later one may have adopted it since."""
    own = [
        workspace
        for workspace in site.lessor.workspaces.of_task(task, gone=True)
        if workspace.host_id == site.host.id and workspace.epoch >= epoch
    ]
    nearest = min(own, key=lambda workspace: workspace.epoch, default=None)
    return None if nearest is None else replace(nearest, epoch=epoch)


def _files(repo: Repository, ref: str | None, archive: Path | None) -> int:
    try:
        saved = read_saved(repo.common_dir, ref=ref, archive=archive)
    except GitError:  # it can't be read now: that it is there is worth a record
        return 0
    return len(saved.files) + len(saved.deleted) + len(saved.archived)
