"""A suspend of the machine that holds the store is an outage of the store: it extends leases.

BOOTTIME minus MONOTONIC is what the machine has slept since it booted. The store keeps the last
value that was accounted for; the first write after a longer sleep adds the growth to every live
lease, before anything is judged by time. Another boot starts from nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from lessor.clock import Clock

if TYPE_CHECKING:
    from lessor.store.sqlite.store import SqliteTransaction

NOTICED_MS = 1_000


class Suspension:
    """What this process knows of the mark in the store."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._boot_id = clock.boot_id()
        self._seen: int | None = None

    def needs_mark(self, db: apsw.Connection) -> bool:
        """Whether the store's mark is missing or of another boot."""
        row = db.execute("SELECT value FROM meta WHERE key = 'boot_id'").fetchone()
        return row is None or row[0] != self._boot_id

    def was_unseen(self, db: apsw.Connection) -> bool:
        """Whether the machine slept and no write has accounted for it yet; reads only."""
        slept = self._clock.suspended_ms()
        if self._seen is None:
            row = db.execute("SELECT value FROM meta WHERE key = 'slept_ms'").fetchone()
            self._seen = slept if row is None else int(row[0])
        return slept - self._seen >= NOTICED_MS

    def extend_leases(self, tx: SqliteTransaction) -> int | None:
        """Account for sleep that nobody has accounted for; one comparison when there was none.

        What it returns belongs to `accounted`, once the transaction is committed: rolled back, the
        leases weren't extended.
        """
        slept = self._clock.suspended_ms()
        if self._seen is not None and slept - self._seen < NOTICED_MS:
            return None
        tx.rows("extend_for_suspend", boot_id=self._boot_id, slept=slept, noticed=NOTICED_MS)
        return slept

    def accounted(self, slept: int | None) -> None:
        """Remember what a committed transaction accounted for."""
        if slept is not None:
            self._seen = slept

    def note_boot(self, tx: SqliteTransaction, *, host_id: str) -> None:
        """Record this boot; leases of `host_id`'s earlier boots are over, with that as the proof."""
        tx.rows(
            "note_boot", host_id=host_id, boot_id=self._boot_id, slept=self._clock.suspended_ms()
        )
