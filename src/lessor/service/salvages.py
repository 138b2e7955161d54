"""Operations on what was saved of workspaces: noted once, listed, dropped by a person's word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessor.errors import InvalidError, NotFoundError
from lessor.model.workspace import Workspace
from lessor.service.naming import Naming
from lessor.service.rows import pack_facts
from lessor.service.wording import LONGEST_TEXT, check_count, check_note, check_page, check_text
from lessor.service.workspaces import check_workspace, missing_workspace
from lessor.store import Row, Store, Transaction

MOST_FILES = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """What was saved of a workspace: a reference, an archive, or both.

    Attributes:
        n: counts what was saved of one epoch; with task and epoch it names this one.
        files: how many; 0 where only commits were saved.
        host_id: where reference and archive lie.
        path: the worktree that it was saved of.
        branch: the branch that the worktree was made for.
    """

    task: str
    epoch: int
    n: int
    ref: str | None
    archive: str | None
    files: int
    at_ms: int
    host_id: str
    path: str
    branch: str


class Salvages:
    """A refusal raises and changes nothing."""

    def __init__(self, store: Store, naming: Naming) -> None:
        self._store = store
        self._naming = naming

    def note(
        self, workspace: Workspace, *, ref: str | None, archive: str | None, files: int
    ) -> None:
        """Record what was saved of a workspace.

        Raises:
            InvalidError: a text can't be kept, or `files` is no count.
            NotFoundError: there is no such workspace.
        """
        check_workspace(workspace)
        for value, what in ((ref, "reference"), (archive, "archive")):
            if value is not None:
                check_text(value, what, longest=LONGEST_TEXT, empty=False)
        check_count(files, "number of files", low=0, high=MOST_FILES)

        def rule(tx: Transaction) -> None:
            known = tx.rows("workspace", workspace_id=workspace.id)
            if not known:
                raise missing_workspace(workspace.id)
            _, row, _, _, path, *_ = known[0]
            what = {"ref": ref, "archive": archive, "files": files}
            # The event locks the task's row: of two at once each has a number of its own.
            tx.rows(
                "append_event",
                task_id=row,
                kind="salvaged",
                epoch=workspace.epoch,
                facts=pack_facts(path=path, **what),
            )
            tx.rows(
                "add_salvage",
                task_id=row,
                epoch=workspace.epoch,
                workspace_id=workspace.id,
                **what,
            )

        self._store.write(rule)

    def of_task(self, task: str) -> list[Salvaged]:
        """What was saved of a task's workspaces and not dropped since, oldest first."""
        return self._records(self._store.read("salvages", task_id=self._naming.task_row(task)))

    def of_repository(self, repository: str, *, most: int = 1000) -> list[Salvaged]:
        """The same of all tasks of a repository, the newest tasks first."""
        check_page(most)
        rows = self._store.read(
            "repository_salvages",
            repository_id=self._naming.repository_row(repository),
            most=most,
        )
        return self._records(rows)

    def drop(self, saved: Salvaged, *, actor: str = "", reason: str = "") -> None:
        """Record that a person deleted it; whoever calls this has deleted reference and archive.

        Raises:
            InvalidError: it is no salvage, or a text can't be kept.
            NotFoundError: it was dropped before, or never noted.
        """
        if type(saved) is not Salvaged:
            raise InvalidError(
                "A salvage has to be a Salvaged.", next_step="Pass one that is listed."
            )
        for value, what in ((saved.epoch, "epoch"), (saved.n, "number of a salvage")):
            check_count(value, what, low=1, high=MOST_FILES)
        check_note(actor, "actor")
        check_note(reason, "reason")
        row = self._naming.task_row(saved.task)

        def rule(tx: Transaction) -> None:
            if not tx.rows("drop_salvage", task_id=row, epoch=saved.epoch, n=saved.n):
                raise NotFoundError(
                    "It was dropped already.", next_step="List what is left: lessor salvage list."
                )
            facts = pack_facts(
                ref=saved.ref, archive=saved.archive, n=saved.n, actor=actor, reason=reason
            )
            tx.rows("append_event", task_id=row, kind="dropped", epoch=saved.epoch, facts=facts)

        self._store.write(rule)

    def _records(self, rows: Sequence[Row]) -> list[Salvaged]:
        return [
            Salvaged(
                task=self._naming.task(task),
                epoch=epoch,
                n=n,
                ref=ref,
                archive=archive,
                files=files,
                at_ms=at_ms,
                host_id=host_id,
                path=path,
                branch=branch,
            )
            for task, epoch, n, ref, archive, files, at_ms, host_id, path, branch in rows
        ]
