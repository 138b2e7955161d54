"""The high-water file: how far the store has granted, kept outside of it.

A restored copy of the store would hand out lease ids and fences a second time. The file beside it
remembers the highest lease id; a store that is behind it at open has been rewound, and gets a new
term before its first grant. The file is written after each grant's commit without fsync (a second
fsync would halve the speed) and synced now and then: after a power loss it may be behind the
store, which is harmless, as only a file that is *ahead* means something.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from lessor.store.sqlite.place import unavailable

_WIDTH = 20
_SYNC_EVERY = 64


class HighWater:
    """The number in `<store>.high-water`."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(store.name + ".high-water")
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unavailable(path, error) from error
        self._known = self.read()
        self._unsynced = 0

    def read(self) -> int:
        """The highest lease id on record; 0 for an empty or unreadable file."""
        text = os.pread(self._fd, _WIDTH, 0).decode("ascii", errors="replace").strip()
        return int(text) if text.isdigit() else 0

    def raise_to(self, lease_id: int) -> None:
        """Record `lease_id` if it is higher than what this process knows.

        The grant is committed by now: a full disk doesn't take it back, the next one tries again.
        """
        if lease_id <= self._known:
            return
        try:
            os.pwrite(self._fd, f"{lease_id:<{_WIDTH}}".encode(), 0)
        except OSError:
            return
        self._known = lease_id
        self._unsynced += 1
        if self._unsynced >= _SYNC_EVERY:
            self.sync()

    def sync(self) -> None:
        """Bring it to the disk."""
        if self._unsynced:
            with suppress(OSError):
                os.fsync(self._fd)
            self._unsynced = 0

    def close(self) -> None:
        """Sync and close."""
        if self._fd >= 0:
            self.sync()
            os.close(self._fd)
            self._fd = -1
