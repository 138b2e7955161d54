"""What the players of a push race write down: a JSON object a line, times in ms of this machine's clock."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TAKEN = "taken"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A lease was handed on: from now on nobody else may move its branch."""

    lease: str
    task: str
    epoch: int
    branch: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A push that was sent, or that nobody sent because the branch had moved.

    Attributes:
        what: "taken", else the refusal's code.
        replayed: it was sent around the product, after the lease was lost.
    """

    lease: str
    commit: str
    began_ms: int
    answered_ms: int
    what: str
    said: str
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A claim that failed: no push."""

    what: str
    said: str


Entry = Handed | Tried | Missed
_KINDS: dict[str, type[Entry]] = {kind.__name__: kind for kind in (Handed, Tried, Missed)}


class Journal:
    """One player's, appended to."""

    def __init__(self, place: Path) -> None:
        self._file = place.open("a", buffering=1)

    def note(self, entry: Entry) -> None:
        self._file.write(json.dumps({"kind": type(entry).__name__, **asdict(entry)}) + "\n")


def read_journals(folder: Path) -> Iterator[Entry]:
    for place in sorted(folder.glob("*.jsonl")):
        for line in place.read_text().splitlines():
            found: dict[str, Any] = json.loads(line)
            yield _KINDS[found.pop("kind")](**found)
