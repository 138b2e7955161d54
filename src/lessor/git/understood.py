"""What git said and nobody can read: an error of its own, not whatever a parser stumbled over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lessor.errors import GitError


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Read what git said about `what`.

    Raises:
        GitError: A field isn't there, or isn't what it has to be: another git, or a broken file.
    """
    try:
        yield
    except (LookupError, ValueError, StopIteration, RecursionError) as error:
        raise GitError(
            f"What git says about {what} can't be read.",
            next_step="See whether `git fsck` finds the repository whole, and which git this is: git version.",
            what=what,
        ) from error
