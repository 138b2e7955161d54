"""Whether an agent on this machine gets on, as far as its supervisor's report and the system tell.

For people alone: nothing is decided by it. Its supervisor warns, and ends it, by rules of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lessor.runner.proctable import descendants, process_row, process_table
from lessor.runner.report import Event, EventKind, read_report

_OVER = frozenset({EventKind.STOPPING, EventKind.EXITED, EventKind.GONE, EventKind.UNPROVEN})
_GOES_ON = frozenset({EventKind.MOVED, EventKind.THAWED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Why an agent doesn't seem to get on.

    Attributes:
        stopped: the process of it that a signal has stopped; 0 where none is.
        quiet_ms: how long there has been no sign of progress; 0 before its supervisor has warned.
        limit_ms: after how long it is ended for that.
    """

    stopped: int = 0
    quiet_ms: int = 0
    limit_ms: int = 0


def halt_of(run_dir: Path, *, host_id: str, wall_ms: int) -> Halt | None:
    """What keeps the agent whose run is in `run_dir`; None where nothing is known to.

    Args:
        host_id: this machine's; another one's processes can't be seen.
        wall_ms: now, for people.
    """
    reports = sorted(run_dir.glob("report-*.jsonl"), key=_round)
    events = read_report(str(reports[-1])) if reports else []
    if not events or any(event.kind in _OVER for event in events):
        return None
    quiet = _quiet(events, wall_ms)
    stopped = 0 if _held(events) else _stopped(events, host_id)
    return (
        Halt(stopped=stopped, quiet_ms=quiet[0], limit_ms=quiet[1]) if stopped or quiet[0] else None
    )


def _round(report: Path) -> int:
    number = report.stem.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _quiet(events: Sequence[Event], wall_ms: int) -> tuple[int, int]:
    last = next(
        (one for one in reversed(events) if one.kind in {EventKind.QUIET_WARNING, *_GOES_ON}), None
    )
    if last is None or last.kind is not EventKind.QUIET_WARNING:
        return 0, 0
    quiet = int(last.facts.get("quiet_ms", 0))
    return max(quiet, wall_ms - last.at_ms + quiet), int(last.facts.get("limit_ms", 0))


def _held(events: Sequence[Event]) -> bool:
    """Whether its supervisor holds it still."""
    last = next(
        (one for one in reversed(events) if one.kind in {EventKind.FROZEN, EventKind.THAWED}), None
    )
    return last is not None and last.kind is EventKind.FROZEN


def _stopped(events: Sequence[Event], host_id: str) -> int:
    began = next((one for one in reversed(events) if one.kind is EventKind.STARTED), None)
    identity: dict[str, Any] = (began.facts.get("identity") or {}) if began else {}
    row = process_row(int(identity.get("pid", 0))) if identity.get("host_id") == host_id else None
    if row is None or row.start_ticks != identity.get("start_ticks"):
        return 0
    tree = (row, *descendants(row.pid, process_table()))
    return next((one.pid for one in tree if one.stopped), 0)
