"""A claim that is sent again: the same grants, never new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lessor.errors import GrantOverError, RequestReusedError
from lessor.model.grant import Grant
from lessor.model.lease import is_live
from lessor.service.granting import grant_of
from lessor.service.naming import Naming
from lessor.service.rows import GrantRow
from lessor.service.wish import Claim
from lessor.store import Row


def answer_again(read: Callable[..., list[Row]], claim: Claim) -> list[GrantRow]:
    """The grants of a request that was answered before; none where it wasn't.

    Args:
        read: a store's or a transaction's way to run a statement.

    Raises:
        RequestReusedError: the id came with another request.
        GrantOverError: every one of its grants has ended.
    """
    request_id = claim.request.request_id
    seen = read("request_seen", actor=claim.request.worker, request_id=request_id)
    if not seen:
        return []
    digest, answer = seen[0]
    if digest != claim.digest:
        raise RequestReusedError(
            "This request id was used for another request, or with another secret.",
            next_step="Make a new id for a new request; repeat one only to retry it.",
            request_id=request_id,
        )
    rows = [GrantRow._make(row) for row in read("grants", leases=answer)]
    if not any(_is_live(row) for row in rows):
        raise GrantOverError(
            "What this request was granted has ended.",
            next_step="Claim again with a new request id.",
            request_id=request_id,
        )
    return rows


def grants_of(rows: Sequence[GrantRow], claim: Claim, naming: Naming) -> list[Grant]:
    """The rows of one claim as grants; those that have ended since are left out.

    The rows come in the order of the tokens, so each keeps its own when others have ended.
    """
    return [
        grant_of(row, worker=claim.request.worker, token=claim.token(place), naming=naming)
        for place, row in enumerate(rows)
        if _is_live(row)
    ]


def _is_live(row: GrantRow) -> bool:
    return is_live(now=row.now, expires_ms=row.expires_ms, ended_ms=row.ended_ms)
