"""Claiming where the repository is fenced: a lease is handed on only once it is ready."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from lessor.clock import Clock, SystemClock
from lessor.errors import GitError, LessorError, NotARepositoryError, RemoteUnreachableError
from lessor.model.grant import Grant
from lessor.publish.fencing import make_ready
from lessor.publish.recovering import recover
from lessor.service.lessor import Lessor

LOOK_MS = 2_000
"""How often a claim that waits asks what became of the pushes of dead holders."""


def claim_ready(
    lessor: Lessor,
    cwd: Path | None,
    repository: str | None,
    claim: Callable[[int], Sequence[Grant]],
    *,
    give_back: Callable[[Grant, str], object],
    wait_ms: int = 0,
    clock: Clock | None = None,
) -> list[Grant]:
    """What `claim` grants, each lease fenced; what can't be fenced is given back.

    Before, and again while nothing is granted, the pushes of dead holders are recovered: their
    paths wait for that.

    Args:
        cwd: a directory of a clone; None where there is none on this machine.
        claim: waits for so many milliseconds; may be called again, and a grant that it makes again
            is the same.
        give_back: ends a grant that nobody gets, with the reason.
        wait_ms: how long to wait for something to be granted.

    Raises:
        RemoteUnreachableError: the remote can't be asked, and the repository isn't set to grant
            leases all the same.
        GitError: the remote refuses what a fence needs.
        NotARepositoryError: the repository is fenced, and there is no clone to reach its remote from.
    """
    if repository is None:
        return list(claim(wait_ms))
    if cwd is None:
        grants = list(claim(wait_ms))
    else:
        grants = _claimed(lessor, cwd, repository, claim, wait_ms, clock or SystemClock())
    known = lessor.registry.repository(repository)
    if grants and known.fence_remote is not None:
        _fence(lessor, cwd, grants, unfenced=known.unfenced, give_back=give_back)
    return grants


def _claimed(
    lessor: Lessor,
    cwd: Path,
    repository: str,
    claim: Callable[[int], Sequence[Grant]],
    wait_ms: int,
    clock: Clock,
) -> list[Grant]:
    """Claim in short waits: a push whose holder dies meanwhile isn't found by the store alone."""
    until = clock.boottime_ms() + wait_ms
    recover(lessor, cwd, repository)
    left = wait_ms
    while True:
        grants = claim(min(left, LOOK_MS))
        settled = not grants and recover(lessor, cwd, repository)
        left = max(0, until - clock.boottime_ms())
        if grants or not (left or settled):
            return list(grants)


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
        remote = shlex.quote(str(refused.facts.get("remote", "REMOTE")))
        refused.next_step = (
            f"{refused.next_step} To work without it meanwhile: lessor repo fence {remote} --unfenced."
            if isinstance(refused, RemoteUnreachableError)
            else refused.next_step
        )
        raise
