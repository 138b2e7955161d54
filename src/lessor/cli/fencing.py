"""What commands that begin or end leases see to where a repository is fenced at a remote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lessor.cli.invocation import Invocation
from lessor.errors import GitError, LessorError
from lessor.model.grant import Grant
from lessor.model.intent import Intent
from lessor.model.task import NewTask


def claim_fenced(
    invocation: Invocation, claim: Callable[[int], Sequence[Grant]], *, wait_ms: int = 0
) -> list[Grant]:
    """What `claim` grants in the repository that the command is about, each lease ready.

    Args:
        claim: waits for so many milliseconds, and may be called again.
    """
    from lessor.publish.claiming import claim_ready

    leases = invocation.lessor.leases
    return claim_ready(
        invocation.lessor,
        clone_of(invocation),
        invocation.repository,
        claim,
        give_back=lambda grant, why: leases.release(grant.holder, reason=why),
        wait_ms=wait_ms,
        clock=invocation.clock,
    )


def acquire_fenced(invocation: Invocation, task: NewTask, **more: Any) -> Grant:
    """Lease paths at once, the lease ready."""
    return claim_fenced(invocation, lambda _: [invocation.lessor.leases.acquire(task, **more)])[0]


def close_fences(invocation: Invocation) -> None:
    """Close the fence references of leases that have ended; what can't be is left to the next claim."""
    repository, clone = invocation.repository, clone_of(invocation)
    if repository is not None and clone is not None:
        from lessor.publish.fencing import close_ended

        with suppress(GitError):
            close_ended(invocation.lessor, clone, repository)


def recover_pushes(invocation: Invocation) -> None:
    """Ask remotes what became of the pushes that dead holders left; say of what nobody knows still why."""
    repository, clone = invocation.repository, clone_of(invocation)
    if repository is not None and clone is not None:
        from lessor.publish.recovering import recover

        def tell(intent: Intent, why: LessorError) -> None:
            invocation.note(f"#{intent.number} waits on: {why.message} {why.next_step}")

        recover(invocation.lessor, clone, repository, tell=tell)


def clone_of(invocation: Invocation) -> Path | None:
    """The clone that the command is about, where one is on this machine."""
    checkout = invocation.standing.checkout
    return None if checkout is None else checkout.repository.root
