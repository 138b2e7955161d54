"""Who has stopped waiting for git: a person who asks a run once more to stop."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

HURRIED_S = 30.0
"""How long a command may take that begins when somebody wants the end already: it saves what there is."""


def nobody_stops() -> int:
    """Most of what runs git is ended with its process."""
    return 0


wishes_to_stop: ContextVar[Callable[[], int]] = ContextVar("wishes_to_stop", default=nobody_stops)
"""How often somebody has wanted the end until now; each time ends the commands that are waited for. Set for
one thread's commands, and those of a run's slots."""
