"""fleetwright: `claim` and `finish`, with the token that is optional there.

Usage: fleetwright_peer.py FOLDER     an empty folder; asked through `serve`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import fleetwright
from serve import rate, serve


class Calls:
    def __init__(self, folder: str) -> None:
        self.db = fleetwright.connect(Path(folder, "work.db"))
        (synchronous,) = self.db.execute("PRAGMA synchronous").fetchone()
        assert synchronous == 2, "not FULL"
        self.made = 0

    def one(self, count: int) -> dict:
        return self._work(count, 1)

    def batch(self, count: int) -> dict:
        return self._work(count, 100)

    def _work(self, count: int, size: int) -> dict:
        fleetwright.add(self.db, "noop", [f"u{self.made + n}" for n in range(count)])
        self.made += count

        def work() -> None:
            done = 0
            while done < count:
                units = fleetwright.claim(self.db, "noop", worker="w", n=size)
                for unit in units:
                    assert fleetwright.finish(self.db, unit.unit_id, worker="w", token=unit.token)
                done += len(units)

        return rate(count, work)

    def stale(self) -> dict:
        fleetwright.add(self.db, "stale", ["u"])
        (first,) = fleetwright.claim(self.db, "stale", worker="w", lease=0.3)
        time.sleep(0.5)
        fleetwright.reclaim(self.db)
        (second,) = fleetwright.claim(self.db, "stale", worker="w", lease=30)
        assert first.unit_id == second.unit_id
        renewed = fleetwright.heartbeat(self.db, [first.unit_id], worker="w", lease=60)
        with_token = fleetwright.finish(self.db, first.unit_id, worker="w", token=first.token)
        by_name = fleetwright.finish(self.db, first.unit_id, worker="w")
        return {"completion": with_token, "renewal": bool(renewed), "without_token": by_name}


serve(Calls(sys.argv[1]))
