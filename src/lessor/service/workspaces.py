"""Operations on workspaces: recorded before they are made, moved as hosts find them, never deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lessor.errors import ConflictError, ConstraintError, InvalidError, LessorError, NotFoundError
from lessor.model.label import MAX_EPOCH
from lessor.model.lease import Holder
from lessor.model.workspace import Workspace, WorkspaceState, check_move
from lessor.service.naming import Naming
from lessor.service.proof import held, lock_holder
from lessor.service.rows import LockedRow, pack_facts, unpack
from lessor.service.wording import LONGEST_TEXT, check_count, check_note, check_text
from lessor.store import RetryRule, Row, Store, Transaction

MOST_WORKSPACES = 2**62
_VERB = "given a workspace"


class Workspaces:
    """A refusal raises and changes nothing."""

    def __init__(self, store: Store, naming: Naming) -> None:
        self._store = store
        self._naming = naming

    def reserve(self, holder: Holder, *, host_id: str, path: str, branch: str, base: str) -> int:
        """Record where the holder is about to make its worktree; the workspace's number.

        Said again, it is the same one.

        Raises:
            InvalidError: a text is empty, too long, or can't be kept.
            LeaseLostError: the caller isn't the live holder.
            ConflictError: another workspace of this host has the path.
        """
        place = {"host_id": host_id, "path": path, "branch": branch, "base": base}
        for what, value in place.items():
            check_text(value, what.replace("_", " "), longest=LONGEST_TEXT, empty=False)

        def rule(tx: Transaction) -> int:
            row = lock_holder(tx, self._naming, holder)
            for known in map(self._record, tx.rows("task_workspaces", task_id=row.task_id, gone=0)):
                if known.epoch == holder.epoch and place == {n: getattr(known, n) for n in place}:
                    return known.id
            made = tx.rows(
                "put_workspace",
                task_id=row.task_id,
                epoch=holder.epoch,
                state=WorkspaceState.RESERVED,
                **place,
            )
            self._attach(tx, row, int(made[0][0]), holder, path=path, base=base, kind="workspace")
            return int(made[0][0])

        try:
            return held(self._store, self._naming, holder, rule, verb=_VERB)
        except ConstraintError as error:
            raise self._taken(error, host_id=host_id, path=path) from error

    def adopt(self, holder: Holder, workspace: int) -> None:
        """Take over the workspace of the task's earlier epoch, whose process is proved gone.

        Raises:
            LeaseLostError: the caller isn't the live holder.
            NotFoundError: the task has no such workspace.
            TransitionRefusedError: it is gone.
        """

        def rule(tx: Transaction) -> int:
            check_count(workspace, "number of a workspace", low=1, high=MOST_WORKSPACES)
            row = lock_holder(tx, self._naming, holder)
            known = self._found(tx.rows("workspace", workspace_id=workspace), workspace)
            if known.task != holder.task:
                raise missing_workspace(workspace)
            check_move(known.state, WorkspaceState.PRESENT)
            adopted = tx.rows(
                "adopt_workspace",
                workspace_id=workspace,
                from_epoch=known.epoch,
                from_state=known.state,
                epoch=holder.epoch,
                state=WorkspaceState.PRESENT,
            )
            if not adopted:
                raise RetryRule  # moved since it was read
            self._attach(
                tx, row, workspace, holder, path=known.path, base=known.base, kind="adopted"
            )
            return workspace

        held(self._store, self._naming, holder, rule, verb=_VERB)

    def move(
        self,
        workspace: Workspace,
        state: WorkspaceState,
        *,
        snapshot: Mapping[str, Sequence[int]] | None = None,
        why: str = "",
    ) -> bool:
        """Record what became of a workspace; False when a later epoch has taken it over meanwhile.

        Raises:
            InvalidError: `state` is none, or `why` can't be kept.
            NotFoundError: there is none of this number.
            TransitionRefusedError: see `WORKSPACE_MOVES`.
        """
        if not isinstance(state, WorkspaceState):
            raise InvalidError(
                f"{str(state)[:40]!r} is no state of a workspace.",
                next_step=f"One of: {', '.join(WorkspaceState)}.",
            )
        check_note(why, "reason")
        check_workspace(workspace)
        # By path, whatever a path holds: only values of facts are escaped.
        kept = None if snapshot is None else json.dumps({p: list(m) for p, m in snapshot.items()})

        def rule(tx: Transaction) -> bool:
            # Read in this transaction: an old runner's last word must meet the epoch of now.
            known = self._found(tx.rows("workspace", workspace_id=workspace.id), workspace.id)
            if known.epoch != workspace.epoch:
                return False
            check_move(known.state, state)
            moved = tx.rows(
                "set_workspace",
                workspace_id=workspace.id,
                epoch=workspace.epoch,
                from_state=known.state,
                state=state,
                snapshot=kept,
            )
            if not moved:
                raise RetryRule  # moved, or adopted, since it was read
            if state is not known.state:
                self._event(tx, known, kind="workspace", state=state, why=why)
            return True

        return self._store.write(rule)

    def get(self, workspace: int) -> Workspace:
        """The workspace of this number; NotFoundError otherwise."""
        check_count(workspace, "number of a workspace", low=1, high=MOST_WORKSPACES)
        return self._found(self._store.read("workspace", workspace_id=workspace), workspace)

    def of_task(self, task: str, *, gone: bool = False) -> list[Workspace]:
        """The workspaces of a task, oldest first."""
        rows = self._store.read(
            "task_workspaces", task_id=self._naming.task_row(task), gone=int(gone)
        )
        return [self._record(row) for row in rows]

    def on_host(self, host_id: str, *, repository: str | None = None) -> list[Workspace]:
        """The workspaces of a host that aren't gone, oldest first."""
        check_text(host_id, "host id", longest=LONGEST_TEXT, empty=False)
        row = self._naming.repository_row(repository) if repository else 0
        rows = self._store.read("host_workspaces", host_id=host_id, repository_id=row)
        return [self._record(row) for row in rows]

    def _found(self, rows: Sequence[Row], workspace: int) -> Workspace:
        if not rows:
            raise missing_workspace(workspace)
        return self._record(rows[0])

    def _record(self, row: Row) -> Workspace:
        number, task, epoch, host_id, path, branch, base, state, snapshot, at_ms = row
        return Workspace(
            id=number,
            task=self._naming.task(task),
            epoch=epoch,
            host_id=host_id,
            path=path,
            branch=branch,
            base=base,
            state=WorkspaceState(state),
            snapshot={name: (mark[0], mark[1]) for name, mark in unpack(snapshot).items()},
            at_ms=at_ms,
        )

    def _taken(self, error: ConstraintError, *, host_id: str, path: str) -> LessorError:
        """The refusal of a path that another workspace has; any other error as it is."""
        for row in self._store.read("host_workspaces", host_id=host_id, repository_id=0):
            known = self._record(row)
            if known.path == path:
                return ConflictError(
                    f"{path} is the workspace of another task on this host.",
                    next_step="Choose another directory, or look: lessor show TASK.",
                    path=path,
                    task=known.task,
                    workspace=known.id,
                )
        return error

    def _attach(
        self,
        tx: Transaction,
        row: LockedRow,
        workspace: int,
        holder: Holder,
        *,
        path: str,
        base: str,
        kind: str,
    ) -> None:
        tx.rows("attach_workspace", lease_id=row.lease_id, workspace_id=workspace)
        facts = pack_facts(path=path, base=base, worker=holder.worker)
        tx.rows("append_event", task_id=row.task_id, kind=kind, epoch=holder.epoch, facts=facts)

    def _event(self, tx: Transaction, workspace: Workspace, *, kind: str, **facts: object) -> None:
        tx.rows(
            "append_event",
            task_id=self._naming.task_row(workspace.task),
            kind=kind,
            epoch=workspace.epoch,
            facts=pack_facts(path=workspace.path, **facts),
        )


def missing_workspace(workspace: int) -> NotFoundError:
    """The refusal of a number that no workspace has."""
    return NotFoundError(
        f"There is no workspace {workspace}.", next_step="List them: lessor workspace list."
    )


def check_workspace(workspace: object) -> None:
    """Refuse what isn't a workspace as it is listed; InvalidError."""
    if type(workspace) is not Workspace:
        raise InvalidError(
            "A workspace has to be a Workspace.", next_step="Pass one that is listed."
        )
    check_count(workspace.id, "number of a workspace", low=1, high=MOST_WORKSPACES)
    check_count(workspace.epoch, "epoch", low=1, high=MAX_EPOCH)
