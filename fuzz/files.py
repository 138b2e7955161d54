"""Files that lie beside a run: a lease's token, which lease a worktree is for, a supervisor's report."""

from __future__ import annotations

import os
from pathlib import Path

from fuzz.promise import asked
from lessor.runner.lease_file import read_holder
from lessor.runner.posted import read_posted
from lessor.runner.report import read_report

_PLACE = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp")


def one(data: bytes) -> None:
    """One input."""
    place = _PLACE / f"lessor-fuzz-{os.getpid()}.json"
    place.write_bytes(data)
    try:
        holder = asked(lambda: read_holder(place))
        assert holder is None or repr(holder)
        asked(lambda: read_posted(place))
        events = read_report(str(place))
        assert all(isinstance(event.at_ms, int) for event in events)
    finally:
        place.unlink()
