"""What is asked for, and what is seen afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A task as it is asked for; `before` names needs by their place in the batch."""

    place: int
    queue: str = "default"
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    strict: bool = False
    progress: bool = True
    priority: int = 0
    delay: int = 0
    needs: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    unique: str | None = None
    limit_key: str | None = None
    agent: str | None = None
    capability: str | None = None
    effects: str = "workspace"
    keyed: bool = False
    max_attempts: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A claim; `place` is None for any repository or none."""

    actor: str
    worker: int
    request: str
    secret: str
    wanted: int
    ttl: int
    hold: int | None = None
    queue: str = "default"
    place: int | None = None
    task: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the store shows after an operation: its rows by id, and what was granted, in order."""

    leases: Mapping[int, Row]
    tasks: Mapping[int, Row]
    granted: Sequence[int] = ()
    tokens: Sequence[str] = field(default=(), repr=False)
