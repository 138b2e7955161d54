"""Looking at workspaces: what may go, what has to stay, and why. It writes nothing.

The store says who may be inside and what setup left; git says what is there; both have to agree
before anything counts as free.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.inspection import Inspection, Verdict, inspect_worktree
from lessor.git.landed import Asked, what_landed
from lessor.git.layout import layout_of
from lessor.git.registry import Worktree, entries, list_worktrees
from lessor.git.target import default_target, read_refs
from lessor.model.workspace import Workspace
from lessor.runner.host import Presence
from lessor.runner.occupants import occupants
from lessor.runner.salvaging import snapshot_of
from lessor.runner.site import Site
from lessor.runner.witness import workspace_presence
from lessor.service.reading import LeaseRecord

_BLOCK = 512  # st_blocks counts these, whatever the file system's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found of one workspace.

    Attributes:
        lease: the live lease of its task, if there is one.
        found: what git says; None where it wasn't asked or couldn't look.
        has_directory: whether its directory is there.
        has_entry: whether git has an entry for it.
        is_whole: whether directory and entry belong together.
        clone: the clone on this host that it belongs to, where that isn't the site's.
        is_half_made: whether its making was cut short, so that nobody was ever in it.
        is_free: whether nobody holds it, as far as store and host know.
        bytes: what it takes on disk.
    """

    workspace: Workspace
    verdict: Verdict
    reasons: tuple[str, ...]
    lease: LeaseRecord | None = None
    found: Inspection | None = None
    has_directory: bool = True
    has_entry: bool = True
    is_whole: bool = True
    clone: Path | None = None
    is_half_made: bool = False
    is_free: bool = False
    bytes: int = 0

    @property
    def may_be_removed(self) -> bool:
        """Whether taking it away loses nothing."""
        return self.found is not None and self.found.may_be_removed

    @property
    def path(self) -> Path:
        """Where it was made."""
        return Path(self.workspace.path)


def look_at(site: Site, workspace: Workspace, *, known: Sequence[Worktree] | None = None) -> Look:
    """Look at one workspace of this host.

    Args:
        site: its repository.
        workspace: as it was recorded.
        known: git's list of worktrees, where the caller has it.

    Raises:
        GitError: git can't list the worktrees.
    """
    path = Path(workspace.path)
    has_directory = os.path.lexists(path)
    place = path.parent.resolve() / path.name  # as git has it
    entry = next((e for e in known or list_worktrees(site.repo) if e.path == place), None)
    look = Look(
        workspace=workspace,
        verdict=Verdict.UNKNOWN,
        reasons=(),
        has_directory=has_directory,
        has_entry=entry is not None,
        is_whole=entry is not None and has_directory and _is_whole(path),
        bytes=disk_bytes(path) if has_directory else 0,
    )
    other = None if entry is not None else _other_clone(site, place)
    if other is not None:
        reason = f"it belongs to another clone, {other}"
        return replace(look, clone=other, reasons=(reason,))
    taken = _of_holders(site, look)
    if taken is not None:
        return taken
    look = replace(look, is_free=True)
    if not look.is_whole:
        return replace(look, reasons=(_half(look),))
    if entry is not None and entry.is_half_made:
        reasons = ("its making was cut short",)
        return replace(look, verdict=Verdict.EMPTY, reasons=reasons, is_half_made=True)
    try:
        snapshot = snapshot_of(workspace, path)
    except (GitError, OSError) as refused:
        return replace(look, reasons=(str(refused),))
    found = inspect_worktree(path, base=workspace.base, snapshot=snapshot, occupants=occupants)
    return replace(look, found=found, verdict=found.verdict, reasons=found.reasons)


def look_at_all(site: Site) -> list[Look]:
    """Look at every workspace of this host and repository; those whose commits are in are merged.

    Raises:
        GitError: git can't list the worktrees.
    """
    known = list_worktrees(site.repo)
    recorded = site.lessor.workspaces.on_host(site.host.id, repository=site.repository)
    return with_merged(site, [look_at(site, workspace, known=known) for workspace in recorded])


def with_merged(site: Site, looks: Sequence[Look]) -> list[Look]:
    """The same looks, in which branches whose work is in the default branch count as merged."""
    kept = [look for look in looks if look.verdict is Verdict.KEPT and look.found]
    asked = [
        Asked(branch=look.found.branch, base=look.workspace.base)
        for look in kept
        if look.found and look.found.branch
    ]
    if not asked:
        return list(looks)
    try:
        common_dir = site.repo.common_dir
        target = default_target(common_dir, read_refs(common_dir), remote="origin", said=None)
        landed = {one.branch: one for one in what_landed(common_dir, asked, target=target)}
    except GitError:
        return list(looks)  # kept is all that can be said
    merged = {name for name, one in landed.items() if one.verdict.is_in}
    return [_if_merged(look, merged) for look in looks]


def disk_bytes(top: Path) -> int:
    """What a directory takes on disk; links aren't followed, files with several names count once."""
    total, seen = 0, set[tuple[int, int]]()
    waiting = [os.fspath(top)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listing:
                entries = list(listing)
        except OSError:
            continue  # a size is for people: what can't be read is left out
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if found.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                if (found.st_dev, found.st_ino) in seen:
                    continue
                seen.add((found.st_dev, found.st_ino))
            total += found.st_blocks * _BLOCK
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return total


def _other_clone(site: Site, place: Path) -> Path | None:
    """The clone on this host, other than the site's, that has an entry for a worktree."""
    for host, directory in site.lessor.registry.checkouts(site.repository):
        common_dir = Path(directory)
        if host != site.host.id or common_dir == site.repo.common_dir:
            continue
        if any(path == place for path, _ in entries(common_dir)):
            return common_dir.parent if common_dir.name == ".git" else common_dir
    return None


def _of_holders(site: Site, look: Look) -> Look | None:
    """The look at a workspace that somebody may be in, as far as store and host know."""
    leases = site.lessor.leases.leases(task=look.workspace.task, live=True)
    live = next((lease for lease in leases if lease.kind == "lease"), None)
    if live is not None:
        reason = f"{live.agent} has the lease of #{live.number}"
        return replace(look, verdict=Verdict.IN_USE, reasons=(reason,), lease=live)
    sighting = workspace_presence(site, look.workspace)
    if sighting.presence is Presence.GONE or not (look.has_directory or look.has_entry):
        return None
    verdict = Verdict.IN_USE if sighting.presence is Presence.ALIVE else Verdict.UNKNOWN
    return replace(look, verdict=verdict, reasons=(sighting.reason,))


def _is_whole(path: Path) -> bool:
    try:
        layout_of(path)
    except WorktreeError:
        return False
    return True


def _half(look: Look) -> str:
    if look.has_directory:
        return "it lost its entry in git" if not look.has_entry else "it lost its link to git"
    if look.has_entry:
        return "its directory is gone, and git still has its entry"
    return "it is gone"


def _if_merged(look: Look, branches: set[str]) -> Look:
    merged = look.verdict is Verdict.KEPT and look.found and look.found.branch in branches
    return replace(look, verdict=Verdict.MERGED) if merged else look
