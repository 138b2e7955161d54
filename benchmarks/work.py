"""Tasks worked off through Lessor's public calls, one at a time, fused or in batches."""

from __future__ import annotations

import time
from collections.abc import Callable

from lessor import ClaimRequest, Lessor, NewTask, NewWorker, Result
from lessor.ids import new_request_id, new_token
from lessor.model.grant import Reach

BATCH = 100


class Bench:
    """A store with a worker, a repository, and tasks to work off.

    Args:
        scopes: each task writes one path of its own in a repository; else it has no repository.
    """

    def __init__(self, lessor: Lessor, *, scopes: bool) -> None:
        self.lessor = lessor
        self.scopes = scopes
        self.worker = lessor.registry.add_worker(
            NewWorker(agent="bench-1", kind="bench", heartbeat=True)
        ).id
        self.repository = (
            lessor.registry.add_repository("example.org/bench/repository").id if scopes else None
        )
        self.place = self.repository or Reach.NO_REPOSITORY
        self._made = 0

    def submit(self, count: int) -> None:
        """Add `count` tasks, each with a path of its own where there are scopes."""
        while count > 0:
            part = min(count, 5_000)
            self.lessor.tasks.submit([self._task() for _ in range(part)])
            count -= part

    def request(self, wanted: int = 1) -> ClaimRequest:
        return ClaimRequest(
            worker=self.worker,
            request_id=new_request_id(),
            secret=new_token(),
            repository=self.place,
            wanted=wanted,
        )

    def one(self, count: int) -> float:
        """Claim, complete, claim, complete: two commits a task."""
        leases = self.lessor.leases

        def work() -> None:
            for _ in range(count):
                (grant,) = leases.claim(self.request())
                leases.complete_one(grant.holder, Result())

        return count / seconds(work)

    def fused(self, count: int) -> float:
        """Complete the last and claim the next in one call: one commit a task."""
        leases = self.lessor.leases

        def work() -> None:
            held = leases.claim(self.request())
            for _ in range(count - 1):
                items = [(grant.holder, Result()) for grant in held]
                _, held = leases.complete_and_claim(items, self.request())
            leases.complete_one(held[0].holder, Result())

        return count / seconds(work)

    def batch(self, count: int) -> float:
        """Claim a hundred, complete a hundred."""
        leases = self.lessor.leases

        def work() -> None:
            done = 0
            while done < count:
                held = leases.claim(self.request(BATCH))
                answers = leases.complete([(grant.holder, Result()) for grant in held])
                assert all(hasattr(answer, "state") for answer in answers)
                done += len(held)

        return count / seconds(work)

    def fused_batch(self, count: int) -> float:
        """Complete a hundred and claim the next hundred in one call."""
        leases = self.lessor.leases

        def work() -> None:
            held = leases.claim(self.request(BATCH))
            for _ in range(count // BATCH - 1):
                items = [(grant.holder, Result()) for grant in held]
                _, held = leases.complete_and_claim(items, self.request(BATCH))
            leases.complete([(grant.holder, Result()) for grant in held])

        return count / seconds(work)

    def _task(self) -> NewTask:
        self._made += 1
        n = self._made
        if not self.scopes:
            return NewTask(title=f"task {n}")
        path = f"services/s{n // 1000}/module{n}"
        return NewTask(title=f"task {n}", repository=self.repository, scopes=(path,))


def seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def percentiles(times_s: list[float]) -> dict[str, float]:
    """p50 and p99 in milliseconds."""
    ordered = sorted(times_s)
    return {
        "p50_ms": round(1e3 * ordered[len(ordered) // 2], 3),
        "p99_ms": round(1e3 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 3),
    }
