"""A checked claim: rows instead of ids, terms instead of wishes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from lessor.ids import token_hash
from lessor.model.grant import ClaimRequest
from lessor.model.lease import LeaseTerms
from lessor.model.worker import Worker
from lessor.service import requests
from lessor.service.rows import pack, pack_facts

Lane = tuple[str, int, str, tuple[str, ...]]
"""Queue, repository, kind and capabilities: claims of one lane see the same ready tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one attempt to claim goes by.

    Attributes:
        asked: what beside the request itself a repeat has to come with again.
        queue: the request's, or that of the task that is asked for.
        only: (rank, task): where the scan starts when one task is asked for.
        begins_work: what is claimed begins on some commit; paths acquired without a task don't.
        careful: look whether the names of new branches are free; one claim was refused for one.
    """

    request: ClaimRequest
    worker: Worker
    worker_row: int
    terms: LeaseTerms
    queue: str
    repository: int
    only: tuple[int, int] | None
    asked: str = ""
    careful: bool = False
    begins_work: bool = True

    @property
    def digest(self) -> str:
        """What the same request id has to come with again: its tokens are derived from the secret."""
        r = self.request
        asked = [r.worker, r.queue, r.repository, r.task, r.wanted, r.ttl_ms, r.max_hold_ms]
        return requests.digest("claim", [*asked, token_hash(r.secret), self.asked])

    @property
    def lane(self) -> Lane:
        """Which tasks this claim can see."""
        return self.queue, self.repository, self.worker.kind, self.worker.capabilities

    def token(self, place: int) -> str:
        """The token of the `place`-th grant: from the caller's secret, so that a retry has it too.

        Keyed BLAKE2b, as HMAC takes four times as long: two tokens a grant are a part of its cost.
        """
        key = hashlib.blake2b(self.request.secret.encode()).digest()
        text = f"{self.request.request_id}:{place}".encode()
        return hashlib.blake2b(text, key=key, digest_size=32).hexdigest()

    def identity(self) -> dict[str, object]:
        """The values by which statements know who claims, and under which request."""
        return {
            "queue": self.queue,
            "worker_id": self.worker_row,
            "agent": self.worker.agent,
            "kind": self.worker.kind,
            "capabilities": pack(self.worker.capabilities),
            "actor": self.request.worker,
            "request_id": self.request.request_id,
            "digest": self.digest,
            "facts": pack_facts(worker=self.request.worker, agent=self.worker.agent),
        }
