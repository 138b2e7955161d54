"""The process table: who descends from whom, and what each has used.

On Linux it is read from /proc. Elsewhere psutil reads it, which costs more and is imported only
there: a supervisor on Linux stays small.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LINUX = sys.platform.startswith("linux")
PROC = Path("/proc")
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
ENDED_STATES = frozenset("ZXx")
STOPPED_STATES = frozenset("Tt")

# Positions in /proc/<pid>/stat, counted from the field after the last ")": proc(5) minus 3.
_STATE, _PPID, _SESSION, _UTIME, _CSTIME, _START = 0, 1, 3, 11, 14, 19


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One process as the table shows it.

    Attributes:
        state: the letter of proc(5): R, S, D running or waiting, T stopped, Z ended.
        start_ticks: when it started, in ticks since boot on Linux, in 10 ms elsewhere; with the
            pid it names one process of one boot.
        cpu_ms: processor time, with that of the children it has waited for.
    """

    pid: int
    ppid: int
    session: int
    state: str
    start_ticks: int
    cpu_ms: int

    @property
    def ended(self) -> bool:
        """Whether it has ended and only waits for its parent to collect it."""
        return self.state in ENDED_STATES

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped it."""
        return self.state in STOPPED_STATES


def parse_stat(text: str) -> ProcessRow:
    """A row from the text of /proc/<pid>/stat.

    The command stands in parentheses and may hold spaces and parentheses itself, so the fields
    are counted from the last one.
    """
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return ProcessRow(
        pid=int(head.partition(" ")[0]),
        ppid=int(fields[_PPID]),
        session=int(fields[_SESSION]),
        state=fields[_STATE],
        start_ticks=int(fields[_START]),
        cpu_ms=int(sum(int(field) for field in fields[_UTIME : _CSTIME + 1]) * TICK_MS),
    )


def process_row(pid: int) -> ProcessRow | None:
    """The row of `pid`, or None when it is gone or can't be read; the two aren't told apart."""
    if not LINUX:
        return _portable_rows().get(pid)
    try:
        return parse_stat((PROC / str(pid) / "stat").read_text(errors="replace"))
    except OSError:
        return None


def process_table() -> Mapping[int, ProcessRow]:
    """All processes that can be read, by pid; processes come and go while it is read."""
    if not LINUX:
        return _portable_rows()
    rows = (process_row(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdecimal())
    return {row.pid: row for row in rows if row is not None}


def descendants(root: int, table: Mapping[int, ProcessRow]) -> Iterator[ProcessRow]:
    """Everything below `root` in `table`, parents before their children."""
    children: dict[int, list[ProcessRow]] = {}
    for row in table.values():
        children.setdefault(row.ppid, []).append(row)
    level = [root]
    while level:
        found = [row for parent in level for row in children.pop(parent, ())]
        yield from found
        level = [row.pid for row in found]


def has_environment(pid: int, entry: str) -> bool:
    """Whether `pid` was started with `entry` ("NAME=value"); False when it can't be read."""
    if not LINUX:
        return _portable_environment(pid, entry)
    try:
        return os.fsencode(entry) in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _portable_rows() -> dict[int, ProcessRow]:
    import psutil  # noqa: PLC0415 - costs 4 MB and 20 ms, and Linux never needs it

    rows = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError), process.oneshot():
            times = process.cpu_times()
            rows[process.pid] = ProcessRow(
                pid=process.pid,
                ppid=process.ppid(),
                session=os.getsid(process.pid),
                state=_portable_state(process.status()),
                start_ticks=round(process.create_time() * 100),
                cpu_ms=int((times.user + times.system) * 1000),
            )
    return rows


def _portable_state(status: str) -> str:
    return {"zombie": "Z", "dead": "X", "stopped": "T", "tracing-stop": "t"}.get(status, "S")


def _portable_environment(pid: int, entry: str) -> bool:
    import psutil  # noqa: PLC0415 - see _portable_rows

    name, _, value = entry.partition("=")
    with suppress(psutil.Error, OSError):
        return bool(psutil.Process(pid).environ().get(name) == value)
    return False
