"""What a worktree's hooks know of the lease that it is for: a file beside them.

A commit may be made by a person, or by a tool that passes no variables on, so the environment of
the agent isn't enough. There is no secret in it: the token lies in a file that goes with the lease.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from lessor.errors import HostError

FILE = "lease.json"


class Posted(NamedTuple):
    """The lease of a worktree.

    Attributes:
        store: the store's URL without a password, which lies in a file beside the token.
        lease_file: where the token lies while the lease lives.
        base: the commit that the task's work began from.
    """

    store: str
    lease_file: str
    lease: str
    task: str
    number: int
    epoch: int
    label: str
    base: str


def posted_text(posted: Posted) -> str:
    """The file's text."""
    return json.dumps(posted._asdict())


def read_posted(path: Path) -> Posted:
    """What the file says.

    Raises:
        HostError: it isn't there, or isn't one.
    """
    try:
        return Posted(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise HostError(
            f"{path} doesn't say which lease this worktree is for.",
            next_step="Claim the task again: lessor run.",
            path=str(path),
        ) from error
