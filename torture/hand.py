"""A lease in a worker's hand, and what is written down when it is asked for, renewed and ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lessor.clock import SystemClock
from lessor.ids import new_request_id
from lessor.model.grant import ClaimRequest, Ended, Grant, Renewed
from lessor.model.lease import Holder, LeaseTerms
from lessor.runner.authority import Authority
from torture.arena import leaves_of


@dataclass(slots=True, kw_only=True)
class Held:
    """A lease, its holder's belief in it, and how long the work takes.

    Attributes:
        fences: what each place was granted under.
        renewal: the request id of a renewal that nobody has answered yet.
    """

    grant: Grant
    holder: Holder
    authority: Authority
    ready_at_ms: int
    fences: dict[str, int]
    renewal: str = ""

    def renew_request(self) -> str:
        """The same for each try of one renewal."""
        self.renewal = self.renewal or new_request_id()
        return self.renewal

    def renewed(self, answer: Renewed, *, sent_ms: int) -> None:
        """Take an accepted renewal."""
        self.renewal = ""
        self.authority.confirmed(sent_ms=sent_ms, version=answer.version, ttl_ms=answer.ttl_ms)
        self.holder = replace(self.holder, version=self.authority.version)


def take(
    grant: Grant, terms: LeaseTerms, *, sent_ms: int, work_ms: int, phase: float
) -> Held | None:
    """A lease just granted; None where so little of its term is left that it isn't worth beginning.

    A repeated claim is told what is left, counted from when the repetition was sent.
    """
    if grant.ttl_ms < 4 * terms.margin_ms:
        return None
    clock = SystemClock()
    left = replace(
        terms, ttl_ms=grant.ttl_ms, renew_every_ms=min(terms.renew_every_ms, grant.ttl_ms // 3)
    )
    return Held(
        grant=grant,
        holder=grant.holder,
        authority=Authority(
            left, clock=clock, version=grant.holder.version, sent_ms=sent_ms, phase=phase
        ),
        ready_at_ms=clock.boottime_ms() + work_ms,
        fences=dict.fromkeys(leaves_of(grant.scopes), grant.fence),
    )


def request_asked(request: ClaimRequest) -> dict[str, Any]:
    """A claim."""
    return {"request": request.request_id, "wanted": request.wanted, "ttl": request.ttl_ms}


def lease_asked(holder: Holder) -> dict[str, Any]:
    """A lease by task and epoch."""
    return {"task": holder.task, "epoch": holder.epoch}


def grant_told(grant: Grant) -> dict[str, Any]:
    """What was granted."""
    return {
        "task": grant.task,
        "epoch": grant.epoch,
        "term": grant.term,
        "fence": grant.fence,
        "repository": grant.repository or "",
        "paths": list(grant.scopes),
        "ttl": grant.ttl_ms,
    }


def renewal_told(renewed: Renewed) -> dict[str, Any]:
    """What a renewal was answered."""
    return {"version": renewed.version, "ttl": renewed.ttl_ms}


def end_told(ended: Ended) -> dict[str, Any]:
    """What an ending was answered."""
    return {"repeated": ended.repeated, "state": str(ended.state)}
