"""Recovering a publish whose holder is gone: fence the remote, read it, settle.

Fencing comes first. A push that was sent may still be under way in the remote's own process; once
the lease's fence reference is closed it can't land any more, and what is read then stays true. So
it does where Lessor's hooks ask about every push. Anywhere else a branch that is as before says
nothing yet: only once a push has had its time is it taken for one that didn't land, and it is said
that nothing there would refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from lessor.errors import (
    GitError,
    LessorError,
    OutcomeUnknownError,
    RemoteUnreachableError,
    TransitionRefusedError,
)
from lessor.git.fence import close_fence, fence_ref
from lessor.git.push import remote_tips
from lessor.git.remote import place_of
from lessor.git.repository import find_repository
from lessor.git.server_hooks import has_server_hooks
from lessor.model.intent import UNDER_WAY_MS, Intent, Outcome, outcome_of
from lessor.service.lessor import Lessor

_WORDS = {
    Outcome.DONE: "the remote has taken it",
    Outcome.FAILED: "the remote hasn't taken it, and won't any more",
    Outcome.CONFLICT: "the remote has neither what was there before nor what was pushed",
}
_UNSHUT = "the remote hasn't taken it, and it has had its time; nothing there would refuse it now"


def recover(
    lessor: Lessor,
    cwd: Path,
    repository: str,
    *,
    tell: Callable[[Intent, LessorError], object] = lambda _intent, _why: None,
) -> list[Intent]:
    """Settle the pushes of ended leases that nobody knows the outcome of; those that were settled.

    One whose remote can't be asked, or would still take it, stays as it is, and so do the paths that
    wait for it. A remote that didn't answer isn't asked again: whoever claims waits for this.

    Args:
        tell: called with each that was asked about and stays, and why.
    """
    settled = []
    silent: set[str] = set()
    for intent in _in_doubt(lessor, repository):
        if intent.publish.remote in silent:
            continue
        try:
            recover_one(lessor, cwd, intent)
            settled.append(intent)
        except RemoteUnreachableError as unanswered:
            silent.add(intent.publish.remote)
            tell(intent, unanswered)
        except (GitError, TransitionRefusedError) as refused:
            tell(intent, refused)
    return settled


def _in_doubt(lessor: Lessor, repository: str) -> Iterator[Intent]:
    """All of them: those that stay so don't keep later ones from being listed."""
    after = 0
    while some := lessor.intents.unsettled(repository, after=after):
        yield from some
        after = some[-1].id


def recover_one(
    lessor: Lessor, cwd: Path, intent: Intent, *, under_way_ms: int = UNDER_WAY_MS
) -> Outcome:
    """Fence, read and settle one push of a lease that has ended.

    Args:
        under_way_ms: how long since its announcement it may take, where nothing would refuse it.

    Raises:
        OutcomeUnknownError: the remote doesn't have it and would still take it.
        RemoteUnreachableError: the remote can't be asked.
        GitError: it can't be fenced.
        TransitionRefusedError: the lease hasn't ended.
    """
    publish = intent.publish
    fence, shut = None, publish.fence is not None
    if publish.fence is not None and publish.next_fence is not None:
        values = [publish.fence, publish.next_fence]
        fence = close_fence(cwd, publish.remote, fence_ref(intent.lease), values)
        lessor.fences.closed([intent.lease], remote=publish.remote)
    tip = remote_tips(cwd, publish.remote, publish.ref).get(publish.ref)
    shut = shut or _is_asked_about(cwd, publish.remote)
    waited = intent.age_ms >= under_way_ms
    outcome = outcome_of(publish, fence=fence, tip=tip, shut=shut or waited)
    if outcome is None:
        raise OutcomeUnknownError(
            f"A push of #{intent.number} may still be under way, and {publish.remote} would take it.",
            next_step="A remote that refuses what is late is known at once: lessor repo fence NAME.",
            remote=publish.remote,
            ref=publish.ref,
        )
    words = _UNSHUT if outcome is Outcome.FAILED and not shut else _WORDS[outcome]
    lessor.intents.recover(intent.id, outcome, response=f"found later: {words}")
    return outcome


def _is_asked_about(cwd: Path, remote: str) -> bool:
    """Whether Lessor's hooks are seen to be there: on another machine nobody can look."""
    try:
        place = place_of(cwd, remote)
        return place is not None and has_server_hooks(find_repository(place))
    except GitError:
        return False
