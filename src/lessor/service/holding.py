"""What a holder may ask about its own lease."""

from __future__ import annotations

from dataclasses import dataclass

from lessor.errors import LeaseLostError, TransitionRefusedError
from lessor.model.lease import Holder, LeaseEnd, is_live
from lessor.service.naming import Naming
from lessor.service.proof import guard
from lessor.service.refusing import lease_lost
from lessor.service.rows import pack_facts
from lessor.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Whether a lease is still its holder's.

    Attributes:
        ttl_ms: what is left from the moment the question was sent; 0 when it isn't live.
        end: why it ended, where it did.
    """

    live: bool
    version: int
    ttl_ms: int
    end: LeaseEnd | None


def watch(store: Store, naming: Naming, holder: Holder) -> Watched:
    """Look at the lease without writing.

    Raises:
        LeaseLostError: no lease was ever granted to this worker, token and epoch.
    """
    rows = store.read("holder_lease", **guard(naming, holder))
    if not rows:
        raise _lost(store, naming, holder, "watched")
    _, version, expires_ms, _, ended_ms, end_reason, _, now = rows[0]
    live = is_live(now=now, expires_ms=expires_ms, ended_ms=ended_ms)
    return Watched(
        live=live,
        version=version,
        ttl_ms=max(0, expires_ms - now) if live else 0,
        end=LeaseEnd(end_reason) if end_reason else None,
    )


def acknowledge(store: Store, naming: Naming, holder: Holder) -> LeaseEnd:
    """Record that the holder noticed the end of its lease and has stopped; why it ended.

    Said again, it changes nothing.

    Raises:
        LeaseLostError: this worker, token and epoch never had the lease.
        TransitionRefusedError: the lease hasn't ended.
    """
    rows = store.once(
        "acknowledge", **guard(naming, holder), facts=pack_facts(worker=holder.worker)
    )
    if not rows:
        watch(store, naming, holder)
        raise TransitionRefusedError(
            "The lease hasn't ended: there is nothing to acknowledge.",
            next_step="Complete or release it instead.",
            task=holder.task,
        )
    return LeaseEnd(rows[0][1])


def _lost(store: Store, naming: Naming, holder: Holder, verb: str) -> LeaseLostError:
    return lease_lost(store, naming, holder, verb=verb, mine=False, end_reason=None, expired=False)
