"""Claiming where the repository is fenced: a lease is handed on only once it is ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from lessor.errors import GitError, LessorError, NotARepositoryError, RemoteUnreachableError
from lessor.model.grant import Grant
from lessor.publish.fencing import make_ready
from lessor.publish.recovering import recover
from lessor.service.lessor import Lessor


def claim_ready(
    lessor: Lessor,
    cwd: Path | None,
    repository: str | None,
    claim: Callable[[], Sequence[Grant]],
    *,
    give_back: Callable[[Grant, str], object],
) -> list[Grant]:
    """What `claim` grants, each lease fenced; what can't be fenced is given back.

    Before, and again where nothing was granted, the pushes of dead holders are recovered: their
    paths wait for that.

    Args:
        cwd: a directory of a clone; None where there is none on this machine.
        claim: may be called twice; a grant that it makes twice is the same.
        give_back: ends a grant that nobody gets, with the reason.

    Raises:
        RemoteUnreachableError: the remote can't be asked, and the repository isn't set to grant
            leases all the same.
        GitError: the remote refuses what a fence needs.
        NotARepositoryError: the repository is fenced, and there is no clone to reach its remote from.
    """
    if repository is None:
        return list(claim())
    if cwd is not None:
        recover(lessor, cwd, repository)
    grants = list(claim())
    if not grants and cwd is not None and recover(lessor, cwd, repository):
        grants = list(claim())
    known = lessor.registry.repository(repository)
    if grants and known.fence_remote is not None:
        _fence(lessor, cwd, grants, unfenced=known.unfenced, give_back=give_back)
    return grants


def _fence(
    lessor: Lessor,
    cwd: Path | None,
    grants: Sequence[Grant],
    *,
    unfenced: bool,
    give_back: Callable[[Grant, str], object],
) -> None:
    try:
        if cwd is None:
            raise NotARepositoryError(
                "The repository is fenced at a remote, and no clone of it is known here.",
                next_step="Run this inside of a clone, or name it: --repo PATH.",
            )
        for grant in grants:
            make_ready(lessor, cwd, grant.holder)
    except GitError as refused:
        if unfenced and isinstance(refused, RemoteUnreachableError):
            return
        for grant in grants:
            with suppress(LessorError):
                give_back(grant, refused.message)
        refused.next_step = (
            f"{refused.next_step} To work without it meanwhile: lessor repo fence REMOTE --unfenced."
            if isinstance(refused, RemoteUnreachableError)
            else refused.next_step
        )
        raise
