"""pgqueuer: `dequeue` and `log_jobs`, the calls that its own worker makes, over asyncpg.

Usage: pgqueuer_peer.py DSN     an empty database; asked through `serve`
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from datetime import timedelta

import asyncpg
from pgqueuer.db import AsyncpgDriver
from pgqueuer.domain.types import QueueEntrypoint
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.queries import Queries
from serve import rate, serve

NOOP = {QueueEntrypoint("noop"): EntrypointExecutionParameter(0)}
LEASE = timedelta(seconds=30)
SHORT = timedelta(seconds=1)


class Calls:
    def __init__(self, dsn: str) -> None:
        self.loop = asyncio.Runner()
        self.me = uuid.uuid4()
        self.loop.run(self._open(dsn))

    async def _open(self, dsn: str) -> None:
        self.db = await asyncpg.connect(dsn)
        self.queries = Queries(AsyncpgDriver(self.db))
        await self.queries.install()

    def one(self, count: int) -> dict:
        return self._work(count, 1)

    def batch(self, count: int) -> dict:
        return self._work(count, 100)

    def _work(self, count: int, size: int) -> dict:
        self.loop.run(self._fill(count))
        return rate(count, lambda: self.loop.run(self._drain(count, size)))

    async def _fill(self, count: int) -> None:
        await self.queries.clear_queue()
        await self.queries.enqueue(["noop"] * count, [b""] * count, [0] * count)

    async def _drain(self, count: int, size: int) -> None:
        done = 0
        while done < count:
            jobs = await self.queries.dequeue(size, NOOP, self.me, None, LEASE)
            await self.queries.log_jobs([(job, "successful", None) for job in jobs])
            done += len(jobs)

    def stale(self) -> dict:
        return self.loop.run(self._stale())

    async def _stale(self) -> dict:
        await self._fill(1)
        (first,) = await self.queries.dequeue(1, NOOP, uuid.uuid4(), None, SHORT)
        await asyncio.sleep(1.5)
        (second,) = await self.queries.dequeue(1, NOOP, uuid.uuid4(), None, SHORT)
        assert first.id == second.id
        asked = "SELECT heartbeat FROM pgqueuer"
        before = await self.db.fetchval(asked)
        await self.queries.update_heartbeat([first.id])
        renewed = await self.db.fetchval(asked) > before
        await self.queries.log_jobs([(first, "successful", None)])
        left = await self.db.fetchval("SELECT count(*) FROM pgqueuer")
        return {"completion": left == 0, "renewal": renewed}


serve(Calls(sys.argv[1]))
