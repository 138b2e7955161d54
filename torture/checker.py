"""Judges a run by the logs of its processes and by the remote's reflogs; no rule asks the product.

A rule says what may not have happened, and yields one line for each time that it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from torture import holding, promises, recovering, register, remote
from torture.log import History, Move, read_log

Rule = Callable[[History], Iterator[str]]

RULES: tuple[Rule, ...] = (
    register.unexplained_tasks,
    promises.double_accepts,
    promises.second_grants,
    promises.shrinking_epochs,
    promises.shrinking_fences,
    promises.overtaken_writes,
    promises.lost_acknowledgements,
    holding.overlapping_beliefs,
    remote.disordered_moves,
    remote.lost_pushes,
    remote.unknown_pushes,
    recovering.late_recoveries,
)
SHOWN = 5


def find_violations(history: History, *rules: Rule) -> dict[str, list[str]]:
    """The rules that were broken, each with its first violations."""
    found = {rule.__name__: list(islice(rule(history), SHOWN)) for rule in rules or RULES}
    return {name: lines for name, lines in found.items() if lines}


def load_history(logs: Path, remote_folder: Path | None, *, ttl_ms: int, margin_ms: int) -> History:
    """Read all logs of a run, and the reflogs of its remote."""
    history = History(calls=[], ttl_ms=ttl_ms, margin_ms=margin_ms)
    for path in sorted(logs.glob("*.jsonl")):
        calls, faults = read_log(path)
        history.calls += calls
        history.faults += faults
    history.calls.sort(key=lambda call: call.at)
    for call in history.calls:
        if call.op == "read" and call.ok is not None:
            history.last = call.ok
    if remote_folder is not None:
        history.moves = list(_moves(remote_folder / "logs"))
    return history


def _moves(logs: Path) -> Iterator[Move]:
    """The moves of the places' branches; of each in its own order."""
    for path in sorted((logs / "refs" / "heads" / "area").glob("*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            old, new, *_ = line.split(" ")
            yield Move(ref=path.relative_to(logs).as_posix(), old=old, new=new)
