"""Absurd: its Python SDK's `work_batch`, which claims so many tasks and completes one after another.

Usage: absurd_peer.py DSN     an empty database; asked through `serve`
"""

from __future__ import annotations

import sys
import time

import psycopg
from absurd_sdk import Absurd
from absurdctl import BUNDLED_SCHEMA_SQL
from serve import rate, serve


class Calls:
    def __init__(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute(BUNDLED_SCHEMA_SQL)
        self.db = psycopg.connect(dsn, autocommit=True, prepare_threshold=1)
        self.app = Absurd(self.db, queue_name="q")
        self.app.register_task(name="noop")(lambda _params, _context: None)

    def one(self, count: int) -> dict:
        return self._work(count, 1)

    def batch(self, count: int) -> dict:
        return self._work(count, 100)

    def _work(self, count: int, size: int) -> dict:
        self._fill(count)

        def work() -> None:
            for _ in range(count // size):
                self.app.work_batch(batch_size=size)

        answer = rate(count, work)
        left = "SELECT count(*) FROM absurd.t_q WHERE state <> 'completed'"
        assert self.db.execute(left).fetchone() == (0,)
        return answer

    def _fill(self, count: int) -> None:
        if "q" in self.app.list_queues():
            self.app.drop_queue("q")
        self.app.create_queue("q")
        self.db.execute(
            "SELECT count(*) FROM generate_series(1, %s) AS i,"
            " LATERAL absurd.spawn_task('q', 'noop', to_jsonb(i))",
            (count,),
        )

    def stale(self) -> dict:
        self._fill(1)
        (first,) = self.app.claim_tasks(claim_timeout=1, worker_id="a")
        time.sleep(1.5)
        second = []
        while not second:  # the first claim after the deadline ends the run, a later one gets it
            second = self.app.claim_tasks(claim_timeout=30, worker_id="b")
            time.sleep(0.1)
        assert first["task_id"] == second[0]["task_id"]
        return {
            "renewal": self._accepted("SELECT absurd.extend_claim('q', %s, 60)", first),
            "completion": self._accepted("SELECT absurd.complete_run('q', %s, '{}')", first),
        }

    def _accepted(self, statement: str, run: dict) -> bool:
        try:
            self.db.execute(statement, (run["run_id"],))
        except psycopg.Error:
            return False
        return True


serve(Calls(sys.argv[1]))
