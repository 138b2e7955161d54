"""What the concurrency limits leave, counted under their locks: two claims never count the same room."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from lessor.model.claiming import Room
from lessor.service.lapsing import end_lapsed
from lessor.service.rows import CandidateRow, LapsedRow, pack
from lessor.service.wish import Claim
from lessor.store import Row, Transaction

MOST_LAPSES = 100


class Limits(NamedTuple):
    """What the limits leave for a look at candidates.

    Attributes:
        now: the store's clock, read under the limits' locks.
        freed: whether leases that ran out elsewhere, and take no room, were ended for it.
        busy: keys that another claim has locked; they are taken as full.
    """

    room: Room
    now: int
    freed: bool
    busy: frozenset[str]


def room_for(
    tx: Transaction,
    claim: Claim,
    rows: Sequence[CandidateRow],
    *,
    keys: Collection[str],
    first: bool,
) -> Limits:
    """The room for these candidates, and the store's clock read under the limits' locks.

    Args:
        keys: further ones to lock at the first look: an earlier transaction found them locked.
        first: whether this transaction has locked no limit yet. A later look may need keys that
            come before those it has in the lock order: it doesn't wait for them, and a key that
            another claim has locked is taken as full.
    """
    wanted = {row.limit_key for row in rows if row.limit_key is not None}
    asked = {
        "queue": claim.queue,
        "agent": claim.worker.agent,
        "agent_kind": claim.worker.kind,
        "keys": pack(sorted(wanted.union(keys) if first else wanted)),
    }
    lock = "lock_limits" if first else "lock_more_limits"
    locked, usage = tx.batch((lock, asked), ("limit_usage", asked))
    lapsed: Sequence[Row] = []
    if any(holding >= maximum for _, _, maximum, holding, _ in usage):
        lapsed = tx.rows("lapsed_by_limit", **asked, most=MOST_LAPSES)
        if lapsed:
            end_lapsed(tx, [LapsedRow._make(row) for row in lapsed])
            usage = tx.rows("limit_usage", **asked)
    mine = {(row[0], row[1]) for row in locked}
    return Limits(
        room=_room(usage, mine),
        now=max([row[4] for row in usage], default=0),
        freed=bool(lapsed),
        busy=frozenset(row[1] for row in usage if (row[0], row[1]) not in mine),
    )


def _room(usage: Sequence[Row], locked: Collection[tuple[str, str]]) -> Room:
    room = Room()
    for kind, key, maximum, counted, _ in usage:
        holding = counted if (kind, key) in locked else maximum
        if kind == "queue":
            room.queue = maximum - holding
        elif kind == "agent":
            # One for the agent's own name and one for its kind may both be set.
            room.agent = min(maximum - holding, room.agent if room.agent is not None else maximum)
        else:
            room.keys[key] = maximum - holding
    return room
