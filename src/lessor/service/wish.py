"""A checked claim: rows instead of ids, terms instead of wishes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

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
        first_token: `token(0)`, which most claims need twice, and no more of.
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
    first_token: str = field(repr=False)
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
        """The token of the `place`-th grant: from the caller's secret, so that a retry has it too."""
        return self.first_token if place == 0 else token_of(self.request, place)

    def identity(self) -> dict[str, object]:
        """The values by which statements know who claims, and under which request."""
        return {
            "queue": self.queue,
            "worker_id": self.worker_row,
            "agent": self.worker.agent,
            "kind": self.worker.kind,
            "capabilities": _capabilities(self.worker.capabilities),
            "actor": self.request.worker,
            "request_id": self.request.request_id,
            "digest": self.digest,
            "facts": _facts(self.request.worker, self.worker.agent),
        }


def token_of(request: ClaimRequest, place: int) -> str:
    """The token that `request` has for its `place`-th grant.

    Keyed BLAKE2b, as HMAC takes four times as long: a token is a part of what a grant costs.
    """
    key = hashlib.blake2b(request.secret.encode()).digest()
    text = f"{request.request_id}:{place}".encode()
    return hashlib.blake2b(text, key=key, digest_size=32).hexdigest()


# The same at every claim of a worker, and a claim's Python is a quarter of what it costs.
@lru_cache(maxsize=256)
def _capabilities(capabilities: tuple[str, ...]) -> str:
    return pack(capabilities)


@lru_cache(maxsize=256)
def _facts(worker: str, agent: str) -> str:
    return pack_facts(worker=worker, agent=agent)
