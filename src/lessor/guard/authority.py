"""Who answers for a lease: the store on this machine today, a service tomorrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from lessor.connect import open_store
from lessor.errors import LeaseLostError, LessorError, StoreUnavailableError
from lessor.model.lease import Holder, is_live
from lessor.runner.lease_file import read_holder
from lessor.runner.posted import Posted
from lessor.service.admitting import Admission, admit
from lessor.service.naming import Naming
from lessor.service.refusing import lease_lost
from lessor.service.rows import LeaseRow
from lessor.store import Store


class Authority(Protocol):
    """Answers for one lease."""

    def admit(self, paths: Sequence[str], *, packages: Callable[[], Collection[str]]) -> Admission:
        """Whether the lease is live and may have `paths`; see `lessor.service.admitting`.

        Raises:
            LeaseLostError: it is over.
            LessorError: any other: nobody can say.
        """


class StoreAuthority:
    """The store, opened for one question. Only what that needs is imported: a commit waits for it."""

    def __init__(self, posted: Posted) -> None:
        self._posted = posted

    def admit(self, paths: Sequence[str], *, packages: Callable[[], Collection[str]]) -> Admission:
        """As `Authority.admit`.

        Raises:
            LeaseLostError: the lease is over, or its token is gone.
            StoreUnavailableError: there is no store.
        """
        token = Path(self._posted.lease_file)
        try:
            with closing(self._store()) as store:
                naming = Naming(store.key)
                if not token.exists():
                    raise self._over(store, naming)
                return admit(store, naming, read_holder(token), paths, packages=packages)
        except LeaseLostError:
            raise
        except LessorError as silent:
            if token.exists():
                raise
            # What is needed to connect goes with the token, and both with the lease.
            raise LeaseLostError(
                f"#{self._posted.number} can't be committed at epoch {self._posted.epoch}: its run "
                f"is over, and the store doesn't say who has it now ({silent.message})",
                next_step=f"Stop, and see: lessor show {self._posted.number}.",
            ) from silent

    def _store(self) -> Store:
        path = self._posted.store.removeprefix("sqlite://")
        if "://" not in path and not Path(path).expanduser().exists():
            # Opening it would make a new, empty one.
            raise StoreUnavailableError(f"{path} isn't there.", next_step="Is its disk mounted?")
        return open_store(self._posted.store)

    def _over(self, store: Store, naming: Naming) -> LeaseLostError:
        """What became of a lease whose token is gone: the runner takes it away at the end."""
        posted = self._posted
        row = LeaseRow._make(store.read("lease", lease_id=naming.lease_row(posted.lease))[0])
        if is_live(now=row.now, expires_ms=row.expires_ms, ended_ms=row.ended_ms):
            return LeaseLostError(
                f"#{posted.number} can't be committed at epoch {posted.epoch}: the lease's token "
                "isn't here any more.",
                next_step=f"See who has it: lessor show {posted.number}.",
            )
        return lease_lost(
            store,
            naming,
            Holder(task=posted.task, epoch=posted.epoch, worker="", token=""),
            verb="committed",
            mine=True,
            end_reason=row.end_reason,
            expired=True,
        )
