"""Keeping what a workspace holds, and giving its worktree back where that loses nothing.

Nothing here raises for what it finds: an ending must reach its end. What can't be read or saved
stays where it is, quarantined, and is said.
"""

from __future__ import annotations

from pathlib import Path

from lessor.errors import LessorError, TransitionRefusedError
from lessor.git.inspection import Inspection, inspect_worktree
from lessor.git.registry import list_worktrees, plain_place
from lessor.git.salvage import Salvage, salvage, salvage_entry
from lessor.git.worktree import remove_worktree
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.desk import Desk
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.words import last_line


def keep(desk: Desk, workspace: Workspace, *, tell: Tell) -> bool:
    """Save what the workspace holds and nothing else does; whether that succeeded.

    It removes nothing. Where something can't be saved, the workspace is quarantined. One that a
    later epoch has taken over isn't ours to save.
    """
    try:
        if desk.lessor.workspaces.get(workspace.id).epoch != workspace.epoch:
            return True
        saved = _salvage(desk, workspace)
        if saved is not None:
            _record(desk, workspace, saved, tell)
    except (LessorError, OSError) as refused:
        tell(NoteKind.KEPT, f"{workspace.path} stays as it is: {last_line(str(refused))}")
        move(desk, workspace, WorkspaceState.QUARANTINED, why=last_line(str(refused)))
        return False
    return True


def give_back(desk: Desk, workspace: Workspace, *, tell: Tell) -> str:
    """Remove the worktree if that loses nothing, else leave it; one word on what became of it."""
    verdict = _inspect(workspace)
    if not verdict.may_be_removed and keep(desk, workspace, tell=tell):
        # Labelling made an agent's commits anew; the old ones are saved now.
        verdict = _inspect(workspace)
    state, word, why = WorkspaceState.DIRTY, "kept", "; ".join(verdict.reasons)
    if verdict.may_be_removed:
        try:
            remove_worktree(desk.repo, Path(workspace.path), verdict=verdict)
            state, word = WorkspaceState.GONE, "removed"
        except (LessorError, OSError) as refused:
            state, why = WorkspaceState.QUARANTINED, last_line(str(refused))
    move(desk, workspace, state, why=why)
    return word


def move(desk: Desk, workspace: Workspace, state: WorkspaceState, *, why: str) -> None:
    """Record what became of a workspace, as far as the store can be told now.

    A later epoch that has taken it over, or another run that was first, is left alone.
    """
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


def _salvage(desk: Desk, workspace: Workspace) -> Salvage | None:
    path = Path(workspace.path)
    if path.is_dir():
        return salvage(
            path,
            common_dir=desk.repo.common_dir,
            task=workspace.task,
            epoch=workspace.epoch,
            snapshot=workspace.snapshot,
            archive_dir=desk.archive_dir,
        )
    place = plain_place(path)
    entry = next((e for e in list_worktrees(desk.repo) if e.path == place), None)
    if entry is None:
        return None
    ref = salvage_entry(
        entry.git_dir,
        common_dir=desk.repo.common_dir,
        task=workspace.task,
        epoch=workspace.epoch,
    )
    return Salvage(ref=ref, commit=None, archive=None, files=())


def _record(desk: Desk, workspace: Workspace, saved: Salvage, tell: Tell) -> None:
    archive = str(saved.archive) if saved.archive is not None else None
    known = {(s.ref, s.archive) for s in desk.lessor.workspaces.salvages(workspace.task)}
    if (saved.ref, archive) in known | {(None, None)}:
        return
    desk.lessor.workspaces.note_salvage(
        workspace, ref=saved.ref, archive=archive, files=len(saved.files)
    )
    if saved.files:
        tell(
            NoteKind.SALVAGED,
            f"{len(saved.files)} file{'' if len(saved.files) == 1 else 's'} saved",
        )


def _inspect(workspace: Workspace) -> Inspection:
    return inspect_worktree(Path(workspace.path), base=workspace.base, snapshot=workspace.snapshot)
