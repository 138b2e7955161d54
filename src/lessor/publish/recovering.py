"""Recovering a publish whose holder is gone: fence the remote, read it, settle.

Fencing comes first. A push that was sent may still be under way in the remote's own process; once
the lease's fence reference is closed it can't land any more, and what is read then stays true.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from lessor.errors import GitError, TransitionRefusedError
from lessor.git.fence import close_fence, fence_ref
from lessor.git.push import remote_tips
from lessor.model.intent import Intent, Outcome, outcome_of
from lessor.service.lessor import Lessor

_WORDS = {
    Outcome.DONE: "the remote has taken it",
    Outcome.FAILED: "the remote hasn't taken it, and won't any more",
    Outcome.CONFLICT: "the remote has neither what was there before nor what was pushed",
}


def recover(lessor: Lessor, cwd: Path, repository: str) -> list[Intent]:
    """Settle the pushes of ended leases that nobody knows the outcome of; those that were settled.

    One whose remote can't be asked stays as it is, and so do the paths that wait for it.
    """
    settled = []
    for intent in lessor.intents.unsettled(repository):
        with suppress(GitError, TransitionRefusedError):
            recover_one(lessor, cwd, intent)
            settled.append(intent)
    return settled


def recover_one(lessor: Lessor, cwd: Path, intent: Intent) -> Outcome:
    """Fence, read and settle one push of a lease that has ended.

    Raises:
        RemoteUnreachableError: the remote can't be asked.
        GitError: it can't be fenced.
        TransitionRefusedError: the lease hasn't ended.
    """
    publish = intent.publish
    fence = None
    if publish.fence is not None and publish.next_fence is not None:
        values = [publish.fence, publish.next_fence]
        fence = close_fence(cwd, publish.remote, fence_ref(intent.lease), values)
        lessor.fences.closed([intent.lease], remote=publish.remote)
    tip = remote_tips(cwd, publish.remote, publish.ref).get(publish.ref)
    outcome = outcome_of(publish, fence=fence, tip=tip)
    lessor.intents.recover(intent.id, outcome, response=f"found later: {_WORDS[outcome]}")
    return outcome
