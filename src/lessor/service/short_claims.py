"""Claims by one statement, for the usual case in which nothing has to be decided.

Each store has statements of its own for it (own.sql): PostgreSQL's spare round trips; whatever they
leave alone goes the long way round, through `claiming`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from lessor.ids import token_hash
from lessor.model.branch import branch_type
from lessor.service.limits import MOST_LAPSES
from lessor.service.marks import START, Mark, Marks
from lessor.service.rows import GrantRow, pack
from lessor.service.wish import Claim
from lessor.store import Call, LongWay, Row, Store, Transaction


def claim_short(
    store: Store, marks: Marks, claim: Claim, *, before: Sequence[Call] = (), must: bool = False
) -> tuple[list[list[Row]], list[GrantRow]] | None:
    """The claim in one round trip; None where that takes a rule, and nothing was written.

    Without a repository a full pass is one statement, too, while nothing fell due or ran out.

    Args:
        before: statements of the same transaction; their rows come first in the answer.
        must: an empty answer isn't wanted: leave it to the rule.
    """
    if not marks.is_short(claim.lane) or claim.only or claim.careful:
        return None
    mark: Mark | None = None
    try:
        if claim.repository:
            if claim.request.wanted > 1 or _several(before) is not None:
                return None
            mark = marks.start(claim.lane)
            since = 0 if mark == START else marks.since(claim.lane)
            done, rows = claim_next(store, claim, mark=mark, since_ms=since, before=before)
        elif (fresh := marks.fresh(claim.lane)) is not None:
            done, rows = _claim_some(store, claim, mark=fresh, before=before, must=must)
        else:
            done, rows = _claim_whole(store, claim, before=before, must=must)
            if rows:
                marks.start(claim.lane)  # with nothing found, the rule makes the full pass
    except LongWay:
        marks.lengthen(claim.lane, began=mark)
        return None
    if rows:
        marks.reach(claim.lane, (rows[-1].rank, rows[-1].task_id), at_ms=rows[-1].now)
    return done, rows


def claim_first(tx: Transaction, claim: Claim) -> list[GrantRow]:
    """The first ready task in a store of one writer; nothing, and nothing written, where a rule has to decide."""
    if claim.only or claim.careful or claim.request.wanted > 1:
        return []
    if not claim.repository:
        rows = tx.rows("claim_first_free", **_first_free(claim))
    else:
        rows = tx.rows(
            "claim_first",
            **_first_in(claim),
            most=MOST_LAPSES,
        )
    return [GrantRow._make(row) for row in rows]


def _first_in(claim: Claim) -> dict[str, object]:
    return {
        **claim.identity(),
        "repository_id": claim.repository,
        "token_hash": token_hash(claim.token(0)),
        "ttl_ms": claim.terms.ttl_ms,
        "hold_ms": claim.terms.max_hold_ms,
        "branch_type": branch_type(claim.worker.kind),
        "label_head": f"owner={claim.worker.agent};branch=",
    }


def _first_free(claim: Claim) -> dict[str, object]:
    return {
        **claim.identity(),
        "token_hash": token_hash(claim.token(0)),
        "ttl_ms": claim.terms.ttl_ms,
        "hold_ms": claim.terms.max_hold_ms,
        "label_head": _label_head(claim),
    }


def _claim_some(
    store: Store, claim: Claim, *, mark: Mark, before: Sequence[Call], must: bool
) -> tuple[list[list[Row]], list[GrantRow]]:
    """From the mark on; what isn't a whole batch there, from the beginning where all is ready."""
    if claim.request.wanted == 1 and not _several(before):
        return _claim_one(store, claim, mark=mark, before=before, must=must)
    if claim.request.wanted == 1:
        return claim_free(store, claim, mark=mark, before=before, least=int(must))
    with suppress(LongWay):
        return claim_free(store, claim, mark=mark, before=before, least=claim.request.wanted)
    return _claim_whole(store, claim, before=before, must=True)


def _claim_whole(
    store: Store, claim: Claim, *, before: Sequence[Call], must: bool
) -> tuple[list[list[Row]], list[GrantRow]]:
    """From the beginning, where nothing fell due or ran out that has to be seen to first.

    Sixty-four processes that went the long way round for it once a second held each other's first
    tasks locked while they computed: together they did a fifth of what eight did.
    """
    if claim.request.wanted == 1 and not _several(before):
        return _claim_one(store, claim, mark=START, before=before, must=must, whole=True)
    return claim_free(store, claim, mark=START, before=before, least=int(must), whole=True)


def _claim_one(
    store: Store,
    claim: Claim,
    *,
    mark: Mark,
    before: Sequence[Call],
    must: bool,
    whole: bool = False,
) -> tuple[list[list[Row]], list[GrantRow]]:
    """The first ready task without a repository; what was completed before it freed nobody."""
    *done, rows = store.together(
        *before,
        (
            "claim_next_free",
            {
                **_first_free(claim),
                "mark_rank": mark[0],
                "mark_id": mark[1],
                "least": int(must),
                "whole": int(whole),
            },
        ),
    )
    return done, [GrantRow._make(row) for row in rows]


def claim_free(
    store: Store,
    claim: Claim,
    *,
    mark: Mark,
    before: Sequence[Call] = (),
    least: int = 0,
    whole: bool = False,
) -> tuple[list[list[Row]], list[GrantRow]]:
    """Claim tasks without a repository by one statement; nothing where limits are set.

    Args:
        before: statements of the same transaction; their rows come first in the answer.
        least: give everything back where fewer can be claimed.
        whole: claim only where nothing fell due or ran out that has to be seen to first.

    Raises:
        LongWay: fewer than `least` can be claimed by one statement.
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
                "label_head": _label_head(claim),
                "completed": _completed(before),
                "least": least,
                "whole": int(whole),
            },
        ),
    )
    return done, [GrantRow._make(row) for row in rows]


def claim_next(
    store: Store,
    claim: Claim,
    *,
    mark: Mark,
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
        ("lock_place", here),
        *before,
        ("drain_unawaited", {**here, "since_ms": since_ms, "most": MOST_LAPSES}),
        (
            "claim_next",
            {
                **_first_in(claim),
                "mark_rank": mark[0],
                "mark_id": mark[1],
                "since_ms": since_ms,
            },
        ),
    )
    return done, [GrantRow._make(row) for row in rows]


def _label_head(claim: Claim) -> str:
    return f"owner={claim.worker.agent};branch=none;env=none;task="


def _several(before: Sequence[Call]) -> str | None:
    """What the same transaction completes, as complete_leases takes it; complete_one frees nobody."""
    return next((str(values["rows"]) for name, values in before if name == "complete_leases"), None)


def _completed(before: Sequence[Call]) -> str:
    return _several(before) or "[]"
