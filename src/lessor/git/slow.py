"""Who is told of a git command that takes long, so that nobody looks at a terminal that says nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

SLOW_S = 5.0
"""How long a command runs before it is told of, once."""

Tell = Callable[[str, float], None]


def nobody(verb: str, left_s: float) -> None:
    """Most of what runs git has nobody who waits at a terminal."""


told_when_slow: ContextVar[Tell] = ContextVar("told_when_slow", default=nobody)
"""Called with a command's verb and the seconds that it may still take, in a thread of its own; set for one
thread's commands, and those of a run's slots."""
