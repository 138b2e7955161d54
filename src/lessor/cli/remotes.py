"""Which remote a command is about."""

from __future__ import annotations

from pathlib import Path

from lessor.cli.invocation import Invocation
from lessor.cli.repositories import Checkout
from lessor.errors import InvalidError


def usual_remote(invocation: Invocation, checkout: Checkout) -> str:
    """The remote that the repository is fenced at, else where its own pushes would go.

    Raises:
        InvalidError: there is none, or there are several and none is told apart.
    """
    from lessor.publish.pushing import default_remote

    repository = invocation.repository
    if repository is not None:
        fenced_at = invocation.lessor.registry.repository(repository).fence_remote
        if fenced_at is not None:
            return fenced_at
    return default_remote(checkout.repository)


def named_remote(checkout: Checkout, remote: str) -> str:
    """A remote as it is kept: a name, a URL, or a path that holds from everywhere.

    Raises:
        InvalidError: it is none of them, or holds credentials.
    """
    from lessor.service.registry import refuse_credentials

    refuse_credentials(remote)
    names = checkout.repository.git(["remote"]).lines
    if remote in names:
        return remote
    place = checkout.cwd / Path(remote).expanduser()
    if place.exists():
        # Relative to where the person is, and the next command may be somewhere else.
        return str(place.resolve())
    if ":" not in remote:
        raise InvalidError(
            f"There is no remote {remote!r} here.",
            next_step=f"It has: {', '.join(names) or 'none'}. A URL or a path goes, too.",
            remote=remote,
        )
    return remote
