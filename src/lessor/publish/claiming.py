"""Claiming where the repository is fenced: a lease is handed on only once it is ready."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

from lessor.clock import Clock, SystemClock
from lessor.errors import (
    GitError,
    LessorError,
    NotARepositoryError,
    RemoteUnreachableError,
    TransitionRefusedError,
)
from lessor.model.grant import Grant
from lessor.publish.fencing import make_ready
from lessor.publish.recovering import recover
from lessor.service.fences import FenceRef, FenceState
from lessor.service.lessor import Lessor

LOOK_MS = 2_000
"""How often a claim that waits asks what became of the pushes of dead holders."""


GIVEN_BACK = "given_back"
"""The fact in a refusal whose request was granted leases and gave them back: a repeat gets none."""


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
    # Of a lease that a try announced before, that try may have handed it on unfenced: only it knows.
    tried = unfenced and any(_found(lessor, grant.lease) is not None for grant in grants)
    ready: set[str] = set()
    try:
        for grant in grants:
            make_ready(lessor, _clone(cwd), grant.holder)
            ready.add(grant.lease)
    except GitError as refused:
        if unfenced and isinstance(refused, RemoteUnreachableError):
            return
        if not tried and _give_back(
            lessor, grants, refused.message, ready=ready, give_back=give_back
        ):
            refused.facts = {**refused.facts, GIVEN_BACK: True}
        remote = shlex.quote(str(refused.facts.get("remote", "REMOTE")))
        refused.next_step = (
            f"{refused.next_step} To work without it meanwhile: lessor repo fence {remote} --unfenced."
            if isinstance(refused, RemoteUnreachableError)
            else refused.next_step
        )
        raise
    except TransitionRefusedError:
        raise  # the same request's other process makes them ready, and hands them on
    except (LessorError, KeyboardInterrupt) as stopped:
        # Nobody hears of these leases; of Ctrl-C the note said that it stops this.
        why = "the claim was stopped before its lease was ready"
        back = not tried and _give_back(lessor, grants, why, ready=ready, give_back=give_back)
        if back and isinstance(stopped, LessorError):
            stopped.facts = {**stopped.facts, GIVEN_BACK: True}
        raise


def _clone(cwd: Path | None) -> Path:
    if cwd is None:
        raise NotARepositoryError(
            "The repository is fenced at a remote, and no clone of it is known here.",
            next_step="Run this inside of a clone, or name it: --repo PATH.",
        )
    return cwd


def _give_back(
    lessor: Lessor,
    grants: Sequence[Grant],
    why: str,
    *,
    ready: AbstractSet[str],
    give_back: Callable[[Grant, str], object],
) -> bool:
    """Give back what nobody gets, if that is so; where a repeat of the request made one ready, it hands on all.

    Args:
        ready: the leases that this process made ready.
    """
    with suppress(LessorError):
        if any(_is_open(lessor, grant.lease) for grant in grants if grant.lease not in ready):
            return False
        for grant in grants:
            with suppress(LessorError):
                give_back(grant, why)
        return True
    return False


def _is_open(lessor: Lessor, lease: str) -> bool:
    fence = _found(lessor, lease)
    return fence is not None and fence.state is FenceState.OPEN


def _found(lessor: Lessor, lease: str) -> FenceRef | None:
    """What is on record of the lease's reference at the remote that its repository is fenced at."""
    repository = lessor.leases.lease(lease).repository
    remote = None if repository is None else lessor.registry.repository(repository).fence_remote
    return None if remote is None else lessor.fences.at(lease, remote)
