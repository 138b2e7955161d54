"""PGMQ: `read` and `delete`, the SQL functions behind each of its clients, prepared.

Usage: pgmq_peer.py DSN     an empty database; asked through `serve`
"""

from __future__ import annotations

import sys
import time

import psycopg
from pgmq.install import get_embedded_install_sql
from serve import rate, serve

READ = "SELECT msg_id FROM pgmq.read('q', %s, %s)"


class Calls:
    def __init__(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute(get_embedded_install_sql())
            db.execute("SELECT pgmq.create('q')")
        self.db = psycopg.connect(dsn, autocommit=True, prepare_threshold=1)

    def one(self, count: int) -> dict:
        self._fill(count)
        return rate(count, lambda: self._one(count))

    def _one(self, count: int) -> None:
        for _ in range(count):
            ((message,),) = self._read(60, 1)
            self.db.execute("SELECT pgmq.delete('q', %s::bigint)", (message,)).fetchall()

    def batch(self, count: int) -> dict:
        self._fill(count)
        return rate(count, lambda: self._batch(count))

    def _batch(self, count: int) -> None:
        for _ in range(count // 100):
            messages = [row[0] for row in self._read(60, 100)]
            self.db.execute("SELECT pgmq.delete('q', %s::bigint[])", (messages,)).fetchall()

    def _read(self, seconds: int, size: int) -> list:
        return self.db.execute(READ, (seconds, size)).fetchall()

    def _fill(self, count: int) -> None:
        self.db.execute("SELECT pgmq.purge_queue('q')")
        for start in range(0, count, 1000):
            bodies = ["{}"] * min(1000, count - start)
            self.db.execute("SELECT pgmq.send_batch('q', %s::jsonb[])", (bodies,))

    def stale(self) -> dict:
        self._fill(1)
        ((first,),) = self._read(1, 1)
        time.sleep(1.5)
        ((second,),) = self._read(30, 1)
        assert first == second
        db = self.db
        (until,) = db.execute("SELECT vt FROM pgmq.q_q").fetchone()
        (renewed,) = db.execute(
            "SELECT vt FROM pgmq.set_vt('q', %s::bigint, 300)", (first,)
        ).fetchone()
        (gone,) = db.execute("SELECT pgmq.delete('q', %s::bigint)", (first,)).fetchone()
        return {"completion": gone, "renewal": renewed > until}


serve(Calls(sys.argv[1]))
