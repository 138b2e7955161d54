"""Keeping what a workspace holds, and giving its worktree back where that loses nothing.

Nothing here raises for what it finds: an ending must reach its end. What can't be read or saved
stays where it is, quarantined, and is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lessor.errors import ConflictError, LessorError, TransitionRefusedError
from lessor.git.ignored import Fingerprint
from lessor.git.inspection import Inspection, inspect_worktree, take_snapshot
from lessor.git.registry import list_worktrees, plain_place
from lessor.git.salvage import Salvage, salvage, salvage_entry
from lessor.git.worktree import remove_worktree
from lessor.model.lease import SECOND
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.asking import answered
from lessor.runner.desk import Desk
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.occupants import occupants
from lessor.runner.preparing import prepared_for
from lessor.runner.site import Site
from lessor.runner.taken import refuse_claimed
from lessor.runner.words import kept_text, last_line

RECORD_WITHIN_MS = 5 * SECOND
LONGEST_WHY = 4_000


def keep(desk: Desk, workspace: Workspace, *, tell: Tell) -> bool:
    """Save what the workspace holds and nothing else does; whether that succeeded.

    It removes nothing. Where something can't be saved, the workspace is quarantined. One that a
    later epoch has taken over isn't ours to save.
    """
    if _is_taken_over(desk, workspace):
        return True
    try:
        saved = save(desk, workspace)
    except (LessorError, OSError) as refused:
        tell(NoteKind.KEPT, f"{workspace.path} stays as it is: {last_line(str(refused))}")
        move(desk, workspace, WorkspaceState.QUARANTINED, why=last_line(str(refused)))
        return False
    if saved is not None:
        _record(desk, workspace, saved, tell)
    return True


def save(site: Site, workspace: Workspace, *, at: Path | None = None) -> Salvage | None:
    """Save what a workspace holds and nothing else does; None where nothing is left of it.

    Args:
        site: the repository on this host.
        workspace: whose task and epoch it is saved under.
        at: where its worktree is now, if that isn't its path.

    Raises:
        GitError: something can't be saved.
        OSError: something can't be read.
    """
    path = at or Path(workspace.path)
    if path.is_dir():
        return salvage(
            path,
            common_dir=site.repo.common_dir,
            task=workspace.task,
            epoch=workspace.epoch,
            snapshot=snapshot_of(workspace, path),
            archive_dir=site.archive_dir,
        )
    place = plain_place(path)
    entry = next((e for e in list_worktrees(site.repo) if e.path == place), None)
    if entry is None:
        return None
    ref = salvage_entry(
        entry.git_dir,
        common_dir=site.repo.common_dir,
        task=workspace.task,
        epoch=workspace.epoch,
    )
    return Salvage(ref=ref, commit=None, archive=None, files=())


def note_saved(site: Site, workspace: Workspace, saved: Salvage) -> bool:
    """Record what was saved, once; whether it is news to the store."""
    archive = str(saved.archive) if saved.archive is not None else None
    known = {(s.ref, s.archive) for s in site.lessor.salvages.of_task(workspace.task)}
    if (saved.ref, archive) in known | {(None, None)}:
        return False
    site.lessor.salvages.note(workspace, ref=saved.ref, archive=archive, files=len(saved.files))
    return True


def snapshot_of(workspace: Workspace, path: Path) -> Mapping[str, Fingerprint]:
    """What is ignored in its worktree at `path` and was there before any agent was.

    Before setup was finished no agent was in it: what is ignored there was brought or made by setup,
    and a copy of a secret isn't work.

    Raises:
        GitError: git can't look.
        OSError: a file can't be looked at.
    """
    return workspace.snapshot if prepared_for(path) is not None else take_snapshot(path)


def give_back(desk: Desk, workspace: Workspace, *, tell: Tell) -> str:
    """Remove the worktree if that loses nothing, else leave it; one word on what became of it.

    The lease is over by now: its task may have been granted anew, and its next holder adopts this
    very worktree.
    """
    verdict = _inspect(workspace)
    if not verdict.may_be_removed and keep(desk, workspace, tell=tell):
        # Labelling made an agent's commits anew; the old ones are saved now.
        verdict = _inspect(workspace)
    state, word, why = WorkspaceState.DIRTY, "kept", "; ".join(verdict.reasons)
    if verdict.may_be_removed:
        try:
            remove_worktree(
                desk.repo,
                Path(workspace.path),
                verdict=verdict,
                occupants=occupants,
                allowed=lambda: refuse_claimed(desk, workspace),
            )
            state, word = WorkspaceState.GONE, "removed"
        except ConflictError as taken:
            why = taken.message
        except (LessorError, OSError) as refused:
            state, why = WorkspaceState.QUARANTINED, last_line(str(refused))
    move(desk, workspace, state, why=why)
    return word


def move(desk: Desk, workspace: Workspace, state: WorkspaceState, *, why: str) -> None:
    """Record what became of a workspace, as far as the store can be told now.

    A later epoch that has taken it over, or another run that was first, is left alone.
    """
    why = kept_text(why, most=LONGEST_WHY)  # it names files, and a name may be any bytes
    try:
        if state not in {WorkspaceState.DIRTY, WorkspaceState.GONE}:
            _to_dirty(desk, workspace)
        desk.lessor.workspaces.move(workspace, state, why=why)
    except TransitionRefusedError:
        return
    except LessorError as refused:
        desk.note(NoteKind.KEPT, f"{workspace.path}: {last_line(str(refused))}")


def _to_dirty(desk: Desk, workspace: Workspace) -> None:
    # Only from there does everything lead on: one that was reserved may hold half a setup.
    if desk.lessor.workspaces.get(workspace.id).state is WorkspaceState.RESERVED:
        desk.lessor.workspaces.move(workspace, WorkspaceState.DIRTY, why="never became ready")


def _record(desk: Desk, workspace: Workspace, saved: Salvage, tell: Tell) -> None:
    """Tell the store what was saved; git and the archive hold it whether or not it listens."""

    def note() -> bool:
        return note_saved(desk, workspace, saved)

    try:
        is_news = answered(desk, note, within_ms=RECORD_WITHIN_MS)
    except LessorError as refused:
        tell(NoteKind.KEPT, f"saved as {saved.ref or saved.archive}: {last_line(str(refused))}")
        return
    if is_news and saved.files:
        files = "1 file" if len(saved.files) == 1 else f"{len(saved.files)} files"
        tell(NoteKind.SALVAGED, f"{files} saved")


def _is_taken_over(desk: Desk, workspace: Workspace) -> bool:
    try:
        return desk.lessor.workspaces.get(workspace.id).epoch != workspace.epoch
    except LessorError:
        return False  # nobody knows; saving it takes nothing from anybody


def _inspect(workspace: Workspace) -> Inspection:
    return inspect_worktree(
        Path(workspace.path),
        base=workspace.base,
        snapshot=workspace.snapshot,
        occupants=occupants,
    )
