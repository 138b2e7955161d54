"""A lease: one acquisition of a task, and the durations that keep it honest.

A lease is `(task, epoch)`. It is live while the store's clock reads less than `expires_ms`: the
interval is half-open and one predicate serves renewing, completing, releasing and lapsing. Its id
is for people and never an authority: a holder proves itself by task, epoch, worker and token.

What a lease does *not* promise: that a paused holder notices. A holder that slept past its
deadline goes on believing until it looks. Every write it then tries is refused here; a resource
outside (a git remote, a database) refuses it only when that resource compares fences.
The shape of `LeaseTerms` is Kubernetes client-go's `leaderelection` (lease > renew deadline >
retry period), counted from the moment a request was *sent* as in Chubby.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from lessor.errors import TermsInvalidError

LeaseId = NewType("LeaseId", str)
Epoch = NewType("Epoch", int)
Fence = NewType("Fence", int)

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
YEAR = 366 * 24 * HOUR


class LeaseKind(StrEnum):
    """Why scope rows exist."""

    LEASE = "lease"
    RESERVATION = "reservation"  # a starved task's turn; blocks the same or lower priority only
    HOLD = "hold"  # the scope of a task that needs a person
    SHADOW = "shadow"  # the scope of a verified result that hasn't landed


class LeaseEnd(StrEnum):
    """Why a lease ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    RELEASED = "released"
    ASKED = "asked"
    CANCELLED = "cancelled"
    LAPSED = "lapsed"
    GONE = "gone"  # the host's own witness proved the process tree gone
    REWOUND = "rewound"  # the store was restored or promoted; its holder may live and not know
    FORCED = "forced"  # a person, with a reason and what was checked
    GRANTED = "granted"  # a reservation or a hold whose task got its lease
    LANDED = "landed"  # a shadow whose result is in the target
    DISCARDED = "discarded"  # a shadow whose result a person gave up


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """Durations of a class of holders, in milliseconds.

    Attributes:
        ttl_ms: how long a grant or a renewal lasts, from the store's clock after all locks.
        margin_ms: how much earlier the holder stops, from the moment it *sent* the request.
        renew_every_ms: how often it renews, before jitter of ±10 %.
        renew_attempts: failed attempts in a row after which it stops.
        max_hold_ms: the longest total hold of one lease, renewals or not.
    """

    ttl_ms: int = 300 * SECOND
    margin_ms: int = 15 * SECOND
    renew_every_ms: int = 100 * SECOND
    renew_attempts: int = 3
    max_hold_ms: int = 12 * HOUR

    def __post_init__(self) -> None:
        for name in ("ttl_ms", "margin_ms", "renew_every_ms", "renew_attempts", "max_hold_ms"):
            if not 0 < getattr(self, name) <= YEAR:
                raise TermsInvalidError(
                    f"{name} is {getattr(self, name)}.",
                    next_step="Give a duration between 1 ms and a year.",
                    name=name,
                )
        # 1.1: a jittered renewal must still be sent before authority ends.
        if self.renew_every_ms * 1.1 + self.margin_ms >= self.ttl_ms:
            raise TermsInvalidError(
                f"Renewing every {self.renew_every_ms} ms with a margin of {self.margin_ms} ms "
                f"doesn't fit into a lease of {self.ttl_ms} ms.",
                next_step="Renew at a third of the lease or sooner.",
                ttl_ms=self.ttl_ms,
                renew_every_ms=self.renew_every_ms,
                margin_ms=self.margin_ms,
            )
        if self.max_hold_ms < self.ttl_ms:
            raise TermsInvalidError(
                f"The longest hold ({self.max_hold_ms} ms) is shorter than one lease ({self.ttl_ms} ms).",
                next_step="Raise max_hold_ms or lower ttl_ms.",
                ttl_ms=self.ttl_ms,
                max_hold_ms=self.max_hold_ms,
            )


def terms_for(ttl_ms: object, *, max_hold_ms: int | None = None) -> LeaseTerms:
    """Terms that keep the usual proportions for a lease of `ttl_ms`.

    Raises:
        TermsInvalidError: `ttl_ms` isn't between 20 ms and a year, or is above `max_hold_ms`.
    """
    if isinstance(ttl_ms, bool) or not isinstance(ttl_ms, int) or not 20 <= ttl_ms <= YEAR:  # noqa: PLR2004
        raise TermsInvalidError(
            f"A lease can't last {ttl_ms} ms.",
            next_step="Give a duration between 20 ms and a year.",
            ttl_ms=str(ttl_ms),
        )
    return LeaseTerms(
        ttl_ms=ttl_ms,
        margin_ms=max(1, min(15 * SECOND, ttl_ms // 20)),
        renew_every_ms=max(1, ttl_ms // 3),
        max_hold_ms=max(12 * HOUR, ttl_ms) if max_hold_ms is None else max_hold_ms,
    )


HEARTBEAT_TERMS = LeaseTerms()
"""For holders whose heartbeat is a process of its own."""

MANUAL_TERMS = terms_for(900 * SECOND)
"""For holders who renew by hand, or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """What a holder shows at each of its writes; the token is a secret.

    Attributes:
        version: the lease's version that the holder knows; a renewal of another version is refused.
    """

    task: str
    epoch: int
    worker: str
    token: str = field(repr=False)
    lease: str = ""
    version: int = 1


def is_live(*, now: int, expires_ms: int, ended_ms: int | None) -> bool:
    """The one predicate: not ended, and strictly before the deadline."""
    return ended_ms is None and now < expires_ms


def time_left(*, now: int, expires_ms: int, ttl_ms: int) -> int:
    """For how many milliseconds a holder may believe in its lease, from when it asked; never negative.

    A store's clock that was put back shows more than the term. Put forward again, as such clocks are,
    it ends the lease long before: a term is all that anybody is told of.
    """
    return max(0, min(ttl_ms, expires_ms - now))
