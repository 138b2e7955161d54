"""Answers as the journal has them: row numbers instead of ids, and only what the checker judges by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lessor.errors import LeaseLostError
from lessor.model.grant import ClaimRequest, Ended, Grant, Renewed
from lessor.model.lease import Holder
from lessor.service.naming import Naming


def request_asked(request: ClaimRequest) -> dict[str, Any]:
    """A claim."""
    return {"request": request.request_id, "wanted": request.wanted, "ttl": request.ttl_ms}


def leases_asked(naming: Naming, holders: Sequence[Holder]) -> list[list[int]]:
    """Leases by task and epoch."""
    return [[naming.task_row(holder.task), holder.epoch] for holder in holders]


def grants_told(naming: Naming, grants: Sequence[Grant]) -> list[dict[str, Any]]:
    """What a claim was granted."""
    return [
        {
            "task": naming.task_row(grant.task),
            "epoch": grant.epoch,
            "fence": grant.fence,
            "repository": naming.repository_row(grant.repository) if grant.repository else 0,
            "writes": grant.scopes,
            "reads": grant.reads,
            "ttl": grant.ttl_ms,
            "expires": grant.expires_ms,
        }
        for grant in grants
    ]


def ends_told(answers: Sequence[Ended | LeaseLostError]) -> dict[str, Any]:
    """What came of endings."""
    return {
        "leases": [
            {"no": one.code}
            if isinstance(one, LeaseLostError)
            else {"ok": 1, "repeated": one.repeated}
            for one in answers
        ]
    }


def renewals_told(answers: Sequence[Renewed | LeaseLostError]) -> dict[str, Any]:
    """What came of renewals."""
    return {
        "leases": [
            {"no": one.code}
            if isinstance(one, LeaseLostError)
            else {"ok": 1, "version": one.version, "expires": one.expires_ms, "ttl": one.ttl_ms}
            for one in answers
        ]
    }
