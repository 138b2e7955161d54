"""An agent's worktree: made for a first epoch, adopted or inherited by a later one.

A worktree is never proof of ownership: the lease comes first. An old one is adopted only where its
process is known to be over; otherwise what it holds is salvaged and its branch is taken off it, so
that a zombie's commit moves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lessor.errors import GitError, LessorError
from lessor.git.bring import bring_along
from lessor.git.inspection import inspect_worktree, take_snapshot
from lessor.git.repository import resolve_commit
from lessor.git.salvage import salvage
from lessor.git.worktree import add_worktree, detach_head, relock_worktree, remove_worktree
from lessor.model.grant import Grant
from lessor.model.lease import LeaseEnd
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.desk import SETUP_LIMIT_MS, Desk, Plan
from lessor.runner.host import Presence
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.process import run_configured
from lessor.runner.witness import agent_presence

_HOLDER_ENDED = frozenset(
    {LeaseEnd.GONE, LeaseEnd.RELEASED, LeaseEnd.FAILED, LeaseEnd.ASKED, LeaseEnd.COMPLETED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an epoch works.

    Attributes:
        base: the commit that the task's work began from.
        start: the commit that this epoch began from.
        fresh: setup has to run.
    """

    workspace: Workspace
    worktree: Path
    base: str
    start: str
    fresh: bool


class Workplace:
    """Makes and gives back the worktrees of one run."""

    def __init__(self, desk: Desk, *, tell: Tell) -> None:
        self._desk = desk
        self._tell = tell

    def take(self, grant: Grant) -> Place:
        """The worktree for `grant`: an adopted one, else a new one on the task's branch.

        Raises:
            WorktreeError, GitError: it can't be made; nothing of an older one was lost.
            LeaseLostError: the lease is over.
        """
        earlier = [
            w for w in self._desk.lessor.workspaces.of_task(grant.task) if w.epoch < grant.epoch
        ]
        here = [w for w in earlier if w.host_id == self._desk.host.id]
        adopted: Workspace | None = None
        for old in reversed(here):
            over = self.is_over(old)
            self.keep(old)
            if over and adopted is None and Path(old.path).is_dir():
                adopted = old
            elif old.state is not WorkspaceState.GONE:
                self._cut_loose(old)
        if adopted is not None:
            return self._adopt(grant, adopted)
        return self._make(grant, base=earlier[0].base if earlier else None)

    def prepare(self, place: Place, plan: Plan, *, log: Path) -> Place:
        """Bring files along, run the setup command, remember what it left.

        Raises:
            GitError: a file can't be brought; AgentError: there is no shell.
            WorktreeError: the setup command failed; its last lines are in the facts.
        """
        if place.fresh:
            if plan.bring:
                bring_along(self._desk.cwd, place.worktree, plan.bring)
            if plan.setup:
                self._set_up(place.worktree, plan.setup, log=log)
        snapshot = (
            dict(take_snapshot(place.worktree)) if place.fresh else dict(place.workspace.snapshot)
        )
        marks = {path: tuple(mark) for path, mark in snapshot.items()}
        self._desk.lessor.workspaces.move(place.workspace, WorkspaceState.PRESENT, snapshot=marks)
        return replace(place, workspace=self._desk.lessor.workspaces.get(place.workspace.id))

    def keep(self, workspace: Workspace) -> None:
        """Salvage what the workspace holds and nothing else does; removes nothing."""
        path = Path(workspace.path)
        if not path.is_dir():
            return
        saved = salvage(
            path,
            common_dir=self._desk.repo.common_dir,
            task=workspace.task,
            epoch=workspace.epoch,
            snapshot=workspace.snapshot,
            archive_dir=self._desk.archive_dir,
        )
        archive = str(saved.archive) if saved.archive is not None else None
        known = {(s.ref, s.archive) for s in self._desk.lessor.workspaces.salvages(workspace.task)}
        if (saved.ref, archive) not in known | {(None, None)}:
            self._desk.lessor.workspaces.note_salvage(
                workspace, ref=saved.ref, archive=archive, files=len(saved.files)
            )
            self._tell(NoteKind.SALVAGED, f"{len(saved.files)} files saved")

    def give_back(self, workspace: Workspace) -> str:
        """Remove the worktree if that loses nothing, else leave it; one word on what became of it."""
        path = Path(workspace.path)
        verdict = inspect_worktree(path, base=workspace.base, snapshot=workspace.snapshot)
        state, word = WorkspaceState.DIRTY, "kept"
        if verdict.may_be_removed:
            try:
                remove_worktree(self._desk.repo, path, verdict=verdict)
                state, word = WorkspaceState.GONE, "removed"
            except GitError:
                state = WorkspaceState.QUARANTINED
        self._desk.lessor.workspaces.move(workspace, state, why="; ".join(verdict.reasons))
        return word

    def leave(self, workspace: Workspace) -> str:
        """Leave the worktree for whoever comes next; nothing in it is touched."""
        self._desk.lessor.workspaces.move(workspace, WorkspaceState.DIRTY, why="no result")
        return "kept"

    def is_over(self, workspace: Workspace) -> bool:
        """Whether the process that worked there is known to have ended; unknown is no."""
        for lease in self._desk.lessor.leases.leases(task=workspace.task):
            if lease.epoch == workspace.epoch and lease.workspace == workspace.id:
                if lease.end in _HOLDER_ENDED:
                    return True
                sighting = agent_presence(self._desk.run_dir(lease.id), self._desk.host)
                return sighting.presence is Presence.GONE
        # Reserved and never attached: no agent was ever started in it.
        return workspace.state is WorkspaceState.RESERVED

    def _adopt(self, grant: Grant, old: Workspace) -> Place:
        path = Path(old.path)
        relock_worktree(self._desk.repo, path, reason=grant.label)
        self._desk.lessor.workspaces.adopt(grant.holder, old.id)
        taken = self._desk.lessor.workspaces.get(old.id)
        self._tell(NoteKind.ADOPTED, f"goes on in the same worktree as epoch {grant.epoch}")
        start = resolve_commit(path, "HEAD")
        return Place(
            workspace=taken, worktree=path, base=old.base, start=start, fresh=old.snapshot == {}
        )

    def _make(self, grant: Grant, *, base: str | None) -> Place:
        desk = self._desk
        commit = base or resolve_commit(desk.cwd, desk.options.base or "HEAD")
        branch = grant.branch or f"ai/{grant.number}"
        path = desk.worktrees_dir / f"{branch.rpartition('/')[2]}-e{grant.epoch}"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = desk.lessor.workspaces.reserve(
            grant.holder, host_id=desk.host.id, path=str(path), branch=branch, base=commit
        )
        add_worktree(
            desk.repo,
            path=path,
            branch=branch,
            base=commit,
            task=grant.task,
            epoch=grant.epoch,
            reason=grant.label,
        )
        workspace = desk.lessor.workspaces.get(number)
        start = resolve_commit(path, "HEAD")
        if start != commit:
            self._tell(NoteKind.INHERITED, "inherits the branch's commits")
        return Place(workspace=workspace, worktree=path, base=commit, start=start, fresh=True)

    def _cut_loose(self, old: Workspace) -> None:
        path = Path(old.path)
        if not path.is_dir():
            self._desk.lessor.workspaces.move(old, WorkspaceState.GONE, why="the directory is gone")
            return
        detach_head(path)
        self._desk.lessor.workspaces.move(
            old, WorkspaceState.SALVAGED, why="its process isn't proved gone"
        )

    def _set_up(self, worktree: Path, setup: str, *, log: Path) -> None:
        result = run_configured(
            setup,
            cwd=str(worktree),
            env=clean_environment(),
            log=str(log),
            timeout_ms=SETUP_LIMIT_MS,
            clock=self._desk.clock,
        )
        if result.code != 0:
            raise SetupFailedError(setup, result.tail)


class SetupFailedError(LessorError):
    """The configured setup command failed in a new worktree."""

    code = "setup_failed"

    def __init__(self, command: str, tail: str) -> None:
        super().__init__(
            f"The setup command failed: {command}",
            next_step="Run it in your checkout, or change `setup` in lessor.toml.",
            command=command,
            tail=tail[-2_000:],
        )


def clean_environment(extra: Sequence[tuple[str, str]] = ()) -> dict[str, str]:
    """The environment of setup and check commands: the person's, without git's and an agent's variables."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("GIT_", "LESSOR_"))}
    return {**kept, **dict(extra)}
