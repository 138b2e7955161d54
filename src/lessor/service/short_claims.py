"""Claims in one round trip, for the usual case in which nothing has to be decided.

Only PostgreSQL's store has these statements (own.sql); whatever they leave alone goes the long way
round, through `claiming`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lessor.ids import token_hash
from lessor.model.branch import branch_type
from lessor.service.limits import MOST_LAPSES
from lessor.service.rows import GrantRow, pack
from lessor.service.wish import Claim
from lessor.store import Call, Row, Store


def claim_free(
    store: Store, claim: Claim, *, mark: tuple[int, int], before: Sequence[Call] = (), must: bool
) -> tuple[list[list[Row]], list[GrantRow]]:
    """Claim tasks without a repository by one statement; nothing where limits are set.

    Args:
        before: statements of the same transaction; their rows come first in the answer.
        must: give everything back where nothing can be claimed.

    Raises:
        LongWay: nothing can be claimed by one statement, and `must`.
    """
    hashes = [token_hash(claim.token(place)) for place in range(claim.request.wanted)]
    *done, rows = store.together(
        *before,
        (
            "claim_free",
            {
                **claim.identity(),
                "mark_rank": mark[0],
                "mark_id": mark[1],
                "wanted": claim.request.wanted,
                "token_hashes": pack(hashes),
                "ttl_ms": claim.terms.ttl_ms,
                "hold_ms": claim.terms.max_hold_ms,
                "label_head": f"owner={claim.worker.agent};branch=none;env=none;task=",
                "completed": _completed(before),
                "must": int(must),
            },
        ),
    )
    return done, [GrantRow._make(row) for row in rows]


def claim_next(
    store: Store,
    claim: Claim,
    *,
    mark: tuple[int, int],
    since_ms: int,
    before: Sequence[Call] = (),
) -> tuple[list[list[Row]], list[GrantRow]]:
    """Claim the first ready task of a repository in one round trip, where nothing is in its way.

    Args:
        since_ms: by the store's clock, from when on to look for leases that ran out or ended.
        before: statements of the same transaction, run under the repository's lock.

    Raises:
        LongWay: something is in its way, or there is none; nothing was written.
    """
    here = {"repository_id": claim.repository}
    _, *done, _, rows = store.together(
        ("lock_repository", here),
        *before,
        ("drain_unawaited", {**here, "since_ms": since_ms, "most": MOST_LAPSES}),
        (
            "claim_next",
            {
                **here,
                **claim.identity(),
                "mark_rank": mark[0],
                "mark_id": mark[1],
                "since_ms": since_ms,
                "token_hash": token_hash(claim.token(0)),
                "ttl_ms": claim.terms.ttl_ms,
                "hold_ms": claim.terms.max_hold_ms,
                "branch_type": branch_type(claim.worker.kind),
                "label_head": f"owner={claim.worker.agent};branch=",
                "completed": _completed(before),
            },
        ),
    )
    return done, [GrantRow._make(row) for row in rows]


def _completed(before: Sequence[Call]) -> str:
    """What the same transaction completes, as complete_leases takes it."""
    return next((str(values["rows"]) for _, values in before), "[]")
