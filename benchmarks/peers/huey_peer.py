"""huey: `dequeue` and `execute`, the calls that its consumer makes, with `fsync` on.

Usage: huey_peer.py FOLDER     an empty folder; asked through `serve`
"""

from __future__ import annotations

import sys
from pathlib import Path

from huey import SqliteHuey
from serve import rate, serve


class Calls:
    def __init__(self, folder: str) -> None:
        self.huey = SqliteHuey(filename=str(Path(folder, "huey.db")), fsync=True)
        self.noop = self.huey.task()(lambda: None)

    def one(self, count: int) -> dict:
        for _ in range(count):
            self.noop()
        return rate(count, lambda: self._drain(count))

    def _drain(self, count: int) -> None:
        for _ in range(count):
            self.huey.execute(self.huey.dequeue())

    def batch(self, count: int) -> None:
        """No call of it takes several."""

    def stale(self) -> dict:
        """Taking a task deletes it: no second holder ever comes."""
        return {"completion": None, "renewal": None}


serve(Calls(sys.argv[1]))
