"""An agent's worktree: made for a first epoch, adopted or inherited by a later one.

A worktree is never proof of ownership: the lease comes first. An old one is adopted only where its
process is known to be over; otherwise what it holds is salvaged and its branch is taken off it, so
that a zombie's commit moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lessor.errors import GitError, HostError, LessorError, WorktreeError
from lessor.git.authorship import slips_before
from lessor.git.command import run_git
from lessor.git.foreign import record_foreign
from lessor.git.healing import detach_entry
from lessor.git.inspection import take_snapshot
from lessor.git.layout import linked_layout
from lessor.git.progress import git_locks
from lessor.git.refs import BRANCHES, read_ref
from lessor.git.registry import (
    branch_lock,
    entries,
    list_worktrees,
    plain_place,
    references_lock,
)
from lessor.git.repository import resolve_commit
from lessor.git.worktree import add_worktree, detach_head, relock_worktree, resume_removals
from lessor.model.branch import branch_of_epoch
from lessor.model.grant import Grant
from lessor.model.lease import SECOND
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.asking import answered
from lessor.runner.cleaning import take_away
from lessor.runner.desk import Desk, Plan
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.preparing import bring, mark_prepared, prepared_for, refuse_unclean, set_up
from lessor.runner.process import never
from lessor.runner.salvaging import keep, move
from lessor.runner.targets import target_tips
from lessor.runner.witness import is_over
from lessor.runner.words import last_line

LOCK_PATIENCE_MS = 2 * SECOND
"""How long a git command that holds a lock on the branch is waited for: it takes milliseconds."""

_LOOK_MS = 50
_SHORT = 12
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an epoch works.

    Attributes:
        grant: as it is from now on: its branch may be another than the claim's.
        base: the commit that the task's work began from.
        start: the commit that this epoch began from.
        plan_from: the commit whose configuration judges the work: the base, but for work that
            stands on a result. That is an agent's, and nobody looked at it yet.
    """

    grant: Grant
    workspace: Workspace
    worktree: Path
    base: str
    start: str
    plan_from: str


class Workplace:
    """Makes and hands on the worktrees of one run."""

    def __init__(self, desk: Desk, *, tell: Tell) -> None:
        self._desk = desk
        self._tell = tell

    def take(self, grant: Grant) -> Place:
        """The worktree for `grant`: an adopted one, else a new one on the task's branch.

        Raises:
            GitError: it can't be made; nothing of an older one was lost.
            LeaseLostError: the lease is over.
            OSError: the directory for worktrees can't be made.
        """
        earlier = [
            w for w in self._desk.lessor.workspaces.of_task(grant.task) if w.epoch < grant.epoch
        ]
        if earlier:
            self._let_removals_end()
        adopted: Workspace | None = None
        for old in reversed(earlier):
            if old.host_id != self._desk.host.id:
                continue
            # Looked at before it is saved: what comes to its end in between is saved once more.
            over = is_over(self._desk, old)
            kept = keep(self._desk, old, tell=self._tell)
            if over and kept and _is_half_made(self._desk, old):
                self._unmake(old)
            elif over and kept and adopted is None and self._may_go_on_in(old):
                adopted = old
            else:
                self._cut_loose(old, kept=kept)
        place = self._make(grant, earlier) if adopted is None else self._adopt(grant, adopted)
        if earlier:
            self._note_foreign(place, earlier[-1])
        return place

    def prepare(
        self, place: Place, plan: Plan, *, log: Path, interrupted: Callable[[], bool] = never
    ) -> Place:
        """Bring files along, run the setup command, remember what it left; once a worktree.

        Raises:
            GitError: a file can't be brought.
            SetupFailedError: the setup command failed; its last lines are in the facts.
            AgentError: there is no shell.
            OSError: the mark can't be written.
        """
        workspaces = self._desk.lessor.workspaces
        wanted = plan.setup or "nothing"
        said = str(place.worktree)
        if prepared_for(place.worktree) is None:
            if plan.bring:
                bring(self._desk, place.worktree, plan.bring)
            if plan.setup:
                took_ms = set_up(
                    self._desk, place.worktree, plan.setup, log=log, interrupted=interrupted
                )
                if interrupted():
                    return place
                refuse_unclean(place.worktree, plan.setup)
                said += f" ({plan.setup}: {took_ms / 1000:.0f} s)"
            marks = {
                path: tuple(mark) for path, mark in dict(take_snapshot(place.worktree)).items()
            }
            here = WorkspaceState.PRESENT
            answered(self._desk, lambda: workspaces.move(place.workspace, here, snapshot=marks))
            mark_prepared(place.worktree, wanted)
        self._tell(NoteKind.PREPARED, said)
        return replace(place, workspace=workspaces.get(place.workspace.id))

    def _let_removals_end(self) -> None:
        """Wait for a removal that began before the claim; one that begins after it sees the lease."""
        for refused in resume_removals(self._desk.repo):
            self._tell(NoteKind.KEPT, last_line(str(refused)))

    def _unmake(self, old: Workspace) -> None:
        """Take away a worktree whose making was cut short: what is missing in it, nobody deleted."""
        try:
            take_away(self._desk, old)
        except (LessorError, OSError) as refused:
            self._tell(NoteKind.KEPT, f"{old.path} stays as it is: {last_line(str(refused))}")
            self._cut_loose(old, kept=True)
        else:
            move(self._desk, old, WorkspaceState.GONE, why="its making was cut short")

    def _note_foreign(self, place: Place, last: Workspace) -> None:
        """Keep on record what came to the branch while another had it, and not from that one.

        Where the last one's worktree is gone altogether nothing tells, and the branch is taken as it is.
        """
        repo, here = self._desk.repo, plain_place(Path(last.path))
        known = entries(repo.common_dir) if last.host_id == self._desk.host.id else ()
        git_dir = next((git_dir for path, git_dir in known if path == here), None)
        if git_dir is None:
            return
        slips = slips_before(
            git_dir,
            tip=place.start,
            base=place.base,
            branch=last.branch,
            excluding=target_tips(self._desk, place.base),
        )
        record_foreign(repo.common_dir, place.grant.task, slips)
        if slips:
            named = ", ".join(oid[:_SHORT] for oid in list(slips)[:_MOST_NAMED])
            self._tell(NoteKind.INHERITED, f"not its own, and refused at completion: {named}")

    def _adopt(self, grant: Grant, old: Workspace) -> Place:
        path = Path(old.path)
        relock_worktree(self._desk.repo, path, reason=grant.label)
        adopt = self._desk.lessor.workspaces.adopt
        answered(self._desk, lambda: adopt(grant.holder, old.id))
        taken = self._desk.lessor.workspaces.get(old.id)
        self._tell(NoteKind.ADOPTED, f"goes on in the same worktree as epoch {grant.epoch}")
        start = resolve_commit(path, "HEAD")
        return self._place(grant, taken, base=old.base, start=start)

    def _make(self, grant: Grant, earlier: Sequence[Workspace]) -> Place:
        desk = self._desk
        branch = grant.branch or f"ai/{grant.number}"
        base = self._earliest_base(earlier) or self._base_of(branch, grant)
        tip = None
        if earlier and (lock := self._lock_on(branch)) is not None:
            tip = read_ref(desk.repo.common_dir, f"{BRANCHES}{branch}")
            grant = self._leave_branch(grant, branch, lock)
            branch = grant.branch or branch
        elif earlier and read_ref(desk.repo.common_dir, f"{BRANCHES}{branch}") is None:
            tip = self._newest_tip(earlier)
        path = desk.worktrees_dir / _directory(branch, grant)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        reserve = desk.lessor.workspaces.reserve
        number = answered(
            desk,
            lambda: reserve(
                grant.holder, host_id=desk.host.id, path=str(path), branch=branch, base=base
            ),
        )
        add_worktree(
            desk.repo,
            path=path,
            branch=branch,
            base=base,
            task=grant.task,
            epoch=grant.epoch,
            reason=grant.label,
            start=tip,
        )
        workspace = desk.lessor.workspaces.get(number)
        start = resolve_commit(path, "HEAD")
        if start != base:
            self._tell(NoteKind.INHERITED, "inherits the branch's commits")
        return self._place(grant, workspace, base=base, start=start)

    def _place(self, grant: Grant, workspace: Workspace, *, base: str, start: str) -> Place:
        stacked = grant.stand is not None and base == grant.stand.commit
        return Place(
            grant=grant,
            workspace=workspace,
            worktree=Path(workspace.path),
            base=base,
            start=start,
            plan_from=self._desk.base_commit() if stacked else base,
        )

    def _newest_tip(self, earlier: Sequence[Workspace]) -> str | None:
        """Where the task's last branch is; the one that it was given may never have been made."""
        tips = (
            read_ref(self._desk.repo.common_dir, f"{BRANCHES}{w.branch}") for w in earlier[::-1]
        )
        return next((tip for tip in tips if tip is not None), None)

    def _lock_on(self, branch: str) -> Path | None:
        """The lock by which a git command keeps the branch, and goes on keeping it."""
        repo, clock = self._desk.repo, self._desk.clock
        deadline_ms = clock.boottime_ms() + LOCK_PATIENCE_MS
        while (lock := references_lock(repo) or branch_lock(repo, branch)) is not None:
            if clock.boottime_ms() >= deadline_ms:
                break
            clock.wait(_LOOK_MS)
        if lock is not None and lock == references_lock(repo):
            raise HostError(
                f"A git command holds {lock}: no reference of this repository can be moved.",
                next_step="It ends by itself, or you end it. If no git runs there any more, remove "
                "that file, then run again.",
                lock=str(lock),
            )
        return lock

    def _leave_branch(self, grant: Grant, branch: str, lock: Path) -> Grant:
        """Leave the branch to the git command that may move it yet; the grant with another one."""
        desk = self._desk
        wanted = branch_of_epoch(branch, grant.epoch)
        if read_ref(desk.repo.common_dir, f"{BRANCHES}{wanted}") is not None:
            raise WorktreeError(
                f"{branch} can't be handed on while {lock} is there, and {wanted} is taken.",
                next_step=f"If no git runs there any more, remove {lock}.",
                lock=str(lock),
            )
        why = f"a git command holds {lock}, and may move {branch} yet"
        move_branch = desk.lessor.leases.move_branch
        name, label = answered(desk, lambda: move_branch(grant.holder, wanted, why=why))
        self._tell(NoteKind.INHERITED, f"goes on on {name}: {why}")
        return replace(grant, branch=name, label=label)

    def _may_go_on_in(self, old: Workspace) -> bool:
        """Whether its worktree is on its branch, and no git that died has left it locked."""
        if not _is_on_its_branch(old) or self._lock_on(old.branch) is not None:
            return False
        return not git_locks(linked_layout(Path(old.path)).git_dir)

    def _earliest_base(self, earlier: Sequence[Workspace]) -> str | None:
        for workspace in earlier:
            with suppress(GitError):  # another clone's, whose commits this one may not have
                return resolve_commit(self._desk.repo.common_dir, workspace.base)
        return None

    def _base_of(self, branch: str, grant: Grant) -> str:
        """Where work on a branch began that no workspace tells of."""
        desk = self._desk
        tip = read_ref(desk.repo.common_dir, f"{BRANCHES}{branch}")
        target = desk.base_commit()
        if tip is None:
            return self._stand_of(grant) or target
        if grant.epoch == 1:
            return tip  # a person's own branch: what is on it was there before the task
        asked = ["merge-base", tip, target]
        found = run_git(asked, cwd=desk.repo.common_dir, git_dir=desk.repo.common_dir, check=False)
        return found.text if found.code == 0 else target

    def _stand_of(self, grant: Grant) -> str | None:
        """The result's commit that new work begins on; None where it isn't in this clone."""
        stand = grant.stand
        if stand is None:
            return None
        named = f"#{stand.number}, which hasn't landed"
        try:
            commit = resolve_commit(self._desk.repo.common_dir, stand.commit)
        except GitError:  # another host's, never pushed; landing will find out whether they fit
            self._tell(NoteKind.STACKED, f"begins beside {named}: its commit isn't in this clone")
            return None
        self._tell(NoteKind.STACKED, f"begins on the result of {named} ({commit[:7]})")
        return commit

    def _cut_loose(self, old: Workspace, *, kept: bool) -> None:
        path = Path(old.path)
        if not path.is_dir():
            self._let_be(old, path)
            return
        try:
            self._detach(path)
        except (GitError, OSError) as refused:
            # It may hold the branch still; making the next worktree then says so.
            self._tell(NoteKind.KEPT, f"{path} stays as it is: {last_line(str(refused))}")
            move(self._desk, old, WorkspaceState.QUARANTINED, why=last_line(str(refused)))
        else:
            if kept:
                why = "its process isn't proved gone"
                move(self._desk, old, WorkspaceState.SALVAGED, why=why)

    def _let_be(self, old: Workspace, path: Path) -> None:
        """Close the record of a worktree that nothing is left of.

        Where git still knows it, it may come back; whoever cleans asks about it then.
        """
        place = path.parent.resolve() / path.name  # as git has it
        if all(entry.path != place for entry in list_worktrees(self._desk.repo)):
            move(self._desk, old, WorkspaceState.GONE, why="the directory is gone")
            return
        why = "it was deleted, or its disk isn't mounted"
        self._tell(NoteKind.KEPT, f"{path} isn't there, and stays on record: {why}")

    def _detach(self, path: Path) -> None:
        try:
            detach_head(path)
        except GitError:
            # An agent that deleted or replaced its `.git` file has cut the directory off, and
            # git's entry still holds the branch.
            place = plain_place(path)
            entry = next((e for e in list_worktrees(self._desk.repo) if e.path == place), None)
            if entry is None:
                raise
            detach_entry(entry.git_dir)


def _is_half_made(desk: Desk, workspace: Workspace) -> bool:
    path = Path(workspace.path)
    place = path.parent.resolve() / path.name  # as git has it
    return any(e.path == place and e.is_half_made for e in list_worktrees(desk.repo))


def _is_on_its_branch(workspace: Workspace) -> bool:
    path = Path(workspace.path)
    if not path.is_dir():
        return False
    try:
        asked = ["symbolic-ref", "--quiet", "--short", "HEAD"]
        return linked_layout(path).git(asked, check=False).text == workspace.branch
    except GitError:
        return False


def _directory(branch: str, grant: Grant) -> str:
    """A name that no other epoch's worktree has: git names its entry after it."""
    described = branch.rpartition("/")[2].removeprefix(f"{grant.number}-")
    return f"{grant.number}-{described}-e{grant.epoch}"
