"""What the specification is about: tasks, leases, repositories, queues and workers, as plain records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from territory import covered, overlap

Paths = list[tuple[str, str]]
"""Scopes as they are written, each with "w" or "r"."""


@dataclass(slots=True, kw_only=True)
class Task:
    """A task: what was asked for, and where it is."""

    id: int
    place: int
    queue: str
    priority: int
    paths: Paths
    strict: bool
    progress: bool
    effects: str
    keyed: bool
    max_attempts: int
    agent: str | None
    capability: str | None
    limit_key: str | None
    unique: str | None
    run_at: int
    due: bool
    needs: set[int] = field(default_factory=set)
    state: str = "queued"
    epoch: int = 0
    attempts: int = 0
    charged: int = 0
    error: str | None = None
    same_errors: int = 0
    stage: str = "none"
    waiting_on: int | None = None
    parked: tuple[int, int] | None = None
    history: list[str] = field(default_factory=lambda: ["submitted"])


@dataclass(slots=True, kw_only=True)
class Lease:
    """A lease, a reservation or a hold, and the rows that block its paths."""

    id: int
    kind: str
    task: int
    place: int
    epoch: int
    fence: int
    granted: int
    expires: int
    until: int
    ttl: int
    worker: int | None = None
    token: str = ""
    queue: str = ""
    agents: tuple[str, ...] = ()
    limit_key: str | None = None
    priority: int = 0
    version: int = 1
    renewal: str | None = None
    ended: int | None = None
    end: str | None = None
    digest: tuple[str, ...] | None = None
    drained: bool = False
    acknowledged: bool = False
    rows: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def blocks(self) -> Paths:
        """What its rows block."""
        return [(text, mode) for text, mode, _ in self.rows]


@dataclass(slots=True, kw_only=True)
class Place:
    """A repository; 0 stands for none."""

    fence: int = 0
    floor: int = 0
    taken: list[tuple[int, int, str, str]] = field(default_factory=list)  # fence, task, path, mode


@dataclass(slots=True, kw_only=True)
class Queue:
    """A queue's settings."""

    paused: bool = False
    overtakes: int = 20
    overtake_ms: int = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Who claims."""

    id: int
    agent: str
    kind: str
    capability: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What somebody shows as the proof that it holds a lease."""

    task: int
    epoch: int
    worker: int
    token: str
    version: int = 1


def clash(some: Paths, others: Paths) -> bool:
    """Whether two sets of scopes can't be held side by side."""
    return any(
        "w" in (mode, other_mode) and overlap(text, other)
        for text, mode in some
        for other, other_mode in others
    )


def settle(texts: Iterable[str]) -> list[str]:
    """Scopes without those that lie inside another literal one, each once."""
    unique = list(dict.fromkeys(texts))
    return [
        text
        for text in unique
        if not any(is_inside(text, other) for other in unique if other != text)
    ]


def is_inside(text: str, other: str) -> bool:
    return "*" not in other and "?" not in other and covered(text) <= covered(other)
