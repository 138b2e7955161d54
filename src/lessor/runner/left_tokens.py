"""Token files that a crash left behind: removed once their lease is over, never while it lives.

A claimer or a runner that was killed can't remove its token. The store says whether the lease is
over; a lease that this store doesn't know is another store's, and its token stays.
"""

from __future__ import annotations

import re
from contextlib import suppress
from heapq import nsmallest
from pathlib import Path

from lessor.errors import InvalidError, NotFoundError
from lessor.model.lease import MINUTE
from lessor.runner.lease_file import forget_holder
from lessor.service.leases import Leases
from lessor.service.reading import LeaseRecord

UNTOUCHED_MS = 15 * MINUTE
"""Renewing writes a token anew: one that was touched since is somebody's."""
LAPSED_MS = 60 * MINUTE
MOST_AT_ONCE = 200
_TOKEN = re.compile(r"(?P<draft>\.)?(?P<lease>lease_\w+)\.(?:json|\w+\.pgpass)(?(draft)\.\w+|)")


def forget_left(leases: Leases, folder: Path, *, now_ms: int) -> int:
    """Remove tokens of leases that are over, the longest untouched first; how many were.

    Args:
        now_ms: this machine's wall clock, by which files are dated.

    Raises:
        StoreError: the store can't be asked.
    """
    removed = 0
    for _, path in nsmallest(MOST_AT_ONCE, _untouched(folder, now_ms=now_ms)):
        found = _TOKEN.fullmatch(path.name)
        # A draft is nobody's once it is old: its writer puts it in its place at once.
        if found and (found["draft"] or _is_over(leases, found["lease"])):
            forget_holder(path)
            removed += 1
    return removed


def _untouched(folder: Path, *, now_ms: int) -> list[tuple[float, Path]]:
    files: list[tuple[float, Path]] = []
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):  # its holder was first
                changed_ms = path.lstat().st_mtime * 1_000
                if now_ms - changed_ms >= UNTOUCHED_MS:
                    files.append((changed_ms, path))
    return files


def _is_over(leases: Leases, lease: str) -> bool:
    try:
        found: LeaseRecord = leases.lease(lease)
    except (NotFoundError, InvalidError):
        return False
    return found.ended_ms is not None or found.now_ms - found.expires_ms >= LAPSED_MS
