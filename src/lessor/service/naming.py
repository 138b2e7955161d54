"""Public ids of this store's rows, and back."""

from __future__ import annotations

from lessor.errors import NotFoundError
from lessor.ids import public_id, row_of
from lessor.model.lease import LeaseId
from lessor.model.repository import RepositoryId
from lessor.model.task import TaskId
from lessor.model.worker import WorkerId

_MOST_KNOWN = 4_096


class Naming:
    """Translates between row numbers and the ids that people and programs see."""

    def __init__(self, store_key: int) -> None:
        self._key = store_key
        self._workers: dict[str, int] = {}

    def task(self, row: int) -> TaskId:
        """The id of a task's row."""
        return TaskId(public_id("task", store_key=self._key, row=row))

    def lease(self, row: int) -> LeaseId:
        """The id of a lease's row."""
        return LeaseId(public_id("lease", store_key=self._key, row=row))

    def worker(self, row: int) -> WorkerId:
        """The id of a worker's row."""
        return WorkerId(public_id("worker", store_key=self._key, row=row))

    def repository(self, row: int) -> RepositoryId | None:
        """The id of a repository's row; None for row 0, which stands for no repository."""
        return RepositoryId(public_id("repo", store_key=self._key, row=row)) if row else None

    def task_row(self, text: object) -> int:
        """The row that a task's id names.

        Raises:
            NotFoundError: it is no task's id, or another store's.
        """
        return self._row(text, "task", "List the tasks: lessor list.")

    def lease_row(self, text: object) -> int:
        """The row that a lease's id names; NotFoundError otherwise."""
        return self._row(text, "lease", "List the leases: lessor list --leases.")

    def worker_row(self, text: object) -> int:
        """The row that a worker's id names; NotFoundError otherwise.

        Remembered, as each of a worker's calls names it, and a claim with its completion thrice.
        """
        known = self._workers.get(text) if isinstance(text, str) else None
        if known is not None:
            return known
        row = self._row(text, "worker", "Register a worker first.")
        if len(self._workers) >= _MOST_KNOWN:
            self._workers.clear()
        self._workers[str(text)] = row
        return row

    def repository_row(self, text: object) -> int:
        """The row that a repository's id names; NotFoundError otherwise."""
        return self._row(text, "repo", "Register the repository first.")

    def _row(self, text: object, kind: str, next_step: str) -> int:
        row = row_of(text, kind, store_key=self._key)
        if row is None or row == 0:
            raise NotFoundError(
                f"{_shown(text)} is no {kind} of this store.", next_step=next_step, kind=kind
            )
        return row


def _shown(text: object) -> str:
    return repr(text if not isinstance(text, str) or len(text) <= 80 else text[:80] + "…")  # noqa: PLR2004
