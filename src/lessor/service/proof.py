"""What a holder shows at each of its writes: checked, as the statements take it, and held against its lease."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lessor.errors import InvalidError
from lessor.ids import token_hash
from lessor.model.label import MAX_EPOCH
from lessor.model.lease import Holder, is_live
from lessor.service.naming import Naming
from lessor.service.refusing import lease_lost
from lessor.service.rows import LockedRow, pack
from lessor.service.wording import check_count, check_text
from lessor.store import Store, Transaction

LONGEST_TOKEN = 1_000
Answer = TypeVar("Answer")


class HolderLostError(Exception):
    """Raised inside the transaction; `held` turns it into the full refusal."""

    def __init__(self, row: LockedRow) -> None:
        super().__init__("not the live holder")
        self.row = row


def guard(naming: Naming, holder: Holder, place: int = 0) -> dict[str, Any]:
    """The values that every guarded write compares: task, epoch, worker and the token's hash.

    Raises:
        InvalidError: it isn't a holder, or a part of it can't be meant.
        NotFoundError: its task or worker is none of this store's.
    """
    if type(holder) is not Holder:
        raise InvalidError(
            "A lease's holder has to be a Holder.", next_step="Pass the one that the claim gave."
        )
    return {
        "ord": place,
        "task_id": naming.task_row(holder.task),
        "epoch": check_count(holder.epoch, "epoch", low=1, high=MAX_EPOCH),
        "worker_id": naming.worker_row(holder.worker),
        "token_hash": token_hash(check_text(holder.token, "token", longest=LONGEST_TOKEN)),
    }


def known_version(holder: Holder) -> int:
    """The lease's version that the holder knows: renewals and ends are refused at any other.

    A widening isn't: it is made beside a heartbeat, whose newest version it can't know.
    """
    return check_count(holder.version, "version", low=1, high=MAX_EPOCH)


def lock_holder(tx: Transaction, naming: Naming, holder: Holder) -> LockedRow:
    """The holder's lease, locked, live by the clock as it is read after that; of any version.

    Raises:
        HolderLostError: the caller isn't the live holder.
    """
    row = LockedRow._make(tx.rows("lock_leases", rows=pack([guard(naming, holder)]))[0])
    live = row.expires_ms is not None and is_live(
        now=row.now, expires_ms=row.expires_ms, ended_ms=row.ended_ms
    )
    if row.lease_id is None or not (row.mine and live):
        raise HolderLostError(row)
    return row


def lock_pusher(tx: Transaction, naming: Naming, holder: Holder) -> LockedRow:
    """The same where the task has a repository: nothing is pushed of another.

    Raises:
        HolderLostError: the caller isn't the live holder.
        InvalidError: there is no repository.
    """
    row = lock_holder(tx, naming, holder)
    if not row.repository_id:
        raise InvalidError(
            "The task has no repository, so nothing of it is pushed.",
            next_step="Complete it without a push.",
            task=holder.task,
        )
    return row


def held(
    store: Store,
    naming: Naming,
    holder: Holder,
    rule: Callable[[Transaction], Answer],
    *,
    verb: str,
    write: Callable[[Callable[[Transaction], Answer]], Answer] | None = None,
) -> Answer:
    """Run a rule that locks its holder.

    Args:
        verb: for the refusal: "widened".
        write: runs the rule in a transaction; None means the store's own way.

    Raises:
        LeaseLostError: the caller isn't the live holder; nothing was changed.
    """
    try:
        return (write or store.write)(rule)
    except HolderLostError as lost:
        row = lost.row
        raise lease_lost(
            store,
            naming,
            holder,
            verb=verb,
            mine=bool(row.mine),
            end_reason=row.end_reason,
            expired=row.expires_ms is not None and row.now >= row.expires_ms,
        ) from None
