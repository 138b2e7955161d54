"""What a holder shows at each of its writes, checked and as the statements take it."""

from __future__ import annotations

from typing import Any

from lessor.errors import InvalidError
from lessor.ids import token_hash
from lessor.model.label import MAX_EPOCH
from lessor.model.lease import Holder
from lessor.service.naming import Naming
from lessor.service.wording import check_count, check_text

LONGEST_TOKEN = 1_000


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
