"""Pushing a leased branch: announced, sent with its fence, settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import (
    ConflictError,
    GitError,
    InvalidError,
    LeaseLostError,
    OutcomeUnknownError,
    PushRefusedError,
    RemoteUnreachableError,
    ScopeHeldError,
)
from lessor.git.changes import pushed_touches
from lessor.git.command import run_git
from lessor.git.fence import ask_fence, fence_ref, next_fence
from lessor.git.push import (
    Fate,
    Pushed,
    RefChange,
    push,
    refuse_several_places,
    remote_tips,
)
from lessor.git.quoting import shown_path
from lessor.git.repository import Repository, packages_at
from lessor.ids import new_token
from lessor.model.intent import Intent, Outcome, Publish, outcome_of
from lessor.model.lease import Holder
from lessor.publish.fencing import make_ready
from lessor.service.fences import FenceRef
from lessor.service.lessor import Lessor

_ANCESTOR, _NOT_ANCESTOR = 0, 1
_HEAD = "HEAD"
_MOST_LISTED = 5

REFUSED = "lessor: refused:"
"""What Lessor's hooks begin a refusal with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A branch as the remote has it now.

    Attributes:
        moved: False where the remote had the commit already.
        fenced: whether the push was compared with the lease's fence reference.
        said: what the remote said; data.
    """

    remote: str
    ref: str
    commit: str
    moved: bool
    fenced: bool
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What is to be pushed.

    Attributes:
        repo: the clone that has the commit.
        ref: the full name at the remote.
        judged: its paths were judged already, and the lease was widened over them.
        hooks: run the clone's own pre-push hook.
        told: show the push by an option; False where the remote is known to take none.
    """

    repo: Repository
    remote: str
    ref: str
    commit: str
    judged: bool = False
    hooks: bool = False
    told: bool = True

    @property
    def cwd(self) -> Path:
        """Where git is run: a remote's relative path counts from there."""
        return self.repo.root


def default_remote(repo: Repository) -> str:
    """The remote that a person's own `git push` would most likely go to.

    Raises:
        InvalidError: there is none, or there are several and none is told apart.
    """
    usual = repo.git(["config", "--get", "remote.pushDefault"], check=False)
    names = repo.git(["remote"]).lines
    choice = usual.text if usual.code == 0 else "origin" if "origin" in names else ""
    if choice or len(names) == 1:
        return choice or names[0]
    if not names:
        raise InvalidError(
            "This repository has no remote.",
            next_step="Give it one: git remote add origin URL. Or name a URL or a path: --remote.",
        )
    raise InvalidError(
        "Which remote is meant isn't clear.",
        next_step=f"Name one: --remote {' or '.join(names)}.",
    )


def publish(lessor: Lessor, holder: Holder, errand: Errand) -> Published:
    """Push a commit to a remote's reference as the holder of its lease.

    Raises:
        LeaseLostError: the lease is over; nothing was sent, or nobody may say so any more.
        ConflictError: the remote has commits there that this one doesn't lead to.
        RemoteUnreachableError: the remote can't be asked; nothing was sent.
        GitError: its name leads to several places; nothing was sent.
        PushRefusedError: the remote took nothing, with its own words.
        OutcomeUnknownError: nobody knows; the next push or the next claim asks the remote.
    """
    refuse_several_places(errand.cwd, errand.remote)
    _settle_last(lessor, holder, errand)
    fence = make_ready(lessor, errand.cwd, holder)
    if fence is not None and fence.remote != errand.remote:
        raise InvalidError(
            f"The repository is fenced at {fence.remote}: nothing compares a push to {errand.remote}.",
            next_step=f"Push to {fence.remote}, or fence another remote: lessor repo fence NAME.",
            remote=errand.remote,
            fence_remote=fence.remote,
        )
    tips = remote_tips(errand.cwd, errand.remote, errand.ref, _HEAD)
    old = tips.get(errand.ref)
    if old == errand.commit:
        if not lessor.leases.watch(holder).live:
            raise LeaseLostError("The lease is over.", next_step="Stop, and keep your work.")
        return _published(errand, fence, moved=False)
    _refuse_backward(errand, old)
    if not errand.judged:
        _admit(lessor, holder, errand, known=[tip for tip in (old, tips.get(_HEAD)) if tip])
    wish = _wish(lessor, holder, errand, fence, old)
    secret = new_token()
    intent = lessor.intents.announce(holder, wish, secret=secret)
    pushed = _send(lessor, holder, errand, wish, intent, option=f"lessor={intent}.{secret}")
    return _settled(lessor, holder, errand, wish, intent, pushed)


def _wish(
    lessor: Lessor, holder: Holder, errand: Errand, fence: FenceRef | None, old: str | None
) -> Publish:
    following = None
    if fence is not None:
        lease = lessor.leases.lease(holder.lease)
        # Never the same twice: a second try must not look like the first one's success.
        why = f"push {errand.commit} to {errand.ref}\n\n{new_token()[:16]}"
        following = next_fence(
            errand.cwd, after=fence.oid, why=why, label=lease.label, at_ms=lease.granted_ms
        )
    return Publish(
        remote=errand.remote,
        ref=errand.ref,
        old=old,
        new=errand.commit,
        fence=None if fence is None else fence.oid,
        next_fence=following,
    )


def _send(
    lessor: Lessor, holder: Holder, errand: Errand, wish: Publish, intent: int, *, option: str
) -> Pushed:
    changes = [RefChange(ref=wish.ref, expected=wish.old, new=wish.new)]
    if wish.fence is not None:
        ref = fence_ref(holder.lease)
        changes.append(RefChange(ref=ref, expected=wish.fence, new=wish.next_fence))
    try:
        return push(
            errand.cwd,
            errand.remote,
            changes,
            option=option,
            told=errand.told,
            hooks=errand.hooks,
        )
    except RemoteUnreachableError as silent:
        lessor.intents.settle(holder, intent, Outcome.FAILED, response=silent.message)
        raise


def _settled(
    lessor: Lessor, holder: Holder, errand: Errand, wish: Publish, intent: int, pushed: Pushed
) -> Published:
    fates = set(pushed.fates.values())
    if Fate.UNKNOWN in fates:
        # What hooks refuse under git's lock ends without an answer for each reference, but not unsaid.
        shut = wish.fence is not None or any(REFUSED in line for line in pushed.said)
        outcome = _find_out(lessor, holder, errand, intent, shut=shut)
    elif fates & {Fate.STALE, Fate.REFUSED}:
        outcome = Outcome.FAILED
        _settle_refused(lessor, holder, errand, intent, pushed)
    else:
        outcome = Outcome.DONE
        lessor.intents.settle(holder, intent, outcome, fence=wish.next_fence)
    if outcome is Outcome.DONE:
        return Published(
            remote=errand.remote,
            ref=errand.ref,
            commit=errand.commit,
            moved=True,
            fenced=wish.fence is not None,
            said=pushed.said,
        )
    raise PushRefusedError(
        f"{errand.remote} took nothing: {pushed.why}",
        next_step="Read what it says; what is committed here stays as it is.",
        remote=errand.remote,
        ref=errand.ref,
        said=list(pushed.said),
    )


def _settle_refused(
    lessor: Lessor, holder: Holder, errand: Errand, intent: int, pushed: Pushed
) -> None:
    try:
        said = "\n".join(pushed.said)
        lessor.intents.settle(holder, intent, Outcome.FAILED, response=said)
    except LeaseLostError as lost:
        raise LeaseLostError(
            f"{errand.remote} took nothing: the lease is over. {lost.message}",
            next_step=lost.next_step,
            **{**lost.facts, "remote": errand.remote, "said": list(pushed.said)},
        ) from lost


def _find_out(
    lessor: Lessor, holder: Holder, errand: Errand, intent: int, *, shut: bool
) -> Outcome:
    """What became of the holder's own push, asked of the remote now; it is settled by that.

    Args:
        shut: as in `outcome_of`.
    """
    found = next(i for i in lessor.intents.of_task(holder.task) if i.id == intent)
    try:
        return _resolve(lessor, holder, errand.cwd, found, shut=shut)
    except GitError as silent:
        raise OutcomeUnknownError(
            f"Nobody knows whether {errand.remote} took the push: {silent.message}",
            next_step="Run `lessor push` again: it asks the remote first.",
            remote=errand.remote,
            ref=errand.ref,
        ) from silent


def _settle_last(lessor: Lessor, holder: Holder, errand: Errand) -> None:
    """Ask what became of an earlier push of this lease that was cut short."""
    for intent in lessor.intents.of_task(holder.task):
        if intent.lease == holder.lease and intent.outcome is None:
            # Of two pushes that begin at one commit the remote takes one: the next decides.
            _find_out(lessor, holder, errand, intent.id, shut=True)


def _resolve(lessor: Lessor, holder: Holder, cwd: Path, intent: Intent, *, shut: bool) -> Outcome:
    """Fence, read and settle: the fence moves on, so that what is still under way can't land."""
    wish = intent.publish
    values = [value for value in (wish.fence, wish.next_fence) if value is not None]
    found, moved = ask_fence(cwd, wish.remote, fence_ref(holder.lease), values)
    tip = remote_tips(cwd, wish.remote, wish.ref).get(wish.ref)
    outcome = outcome_of(wish, fence=found, tip=tip, shut=shut)
    if outcome is None:
        if not lessor.leases.watch(holder).live:
            raise LeaseLostError(
                f"The lease is over, and nobody knows yet whether {wish.remote} took the push.",
                next_step="Stop, and keep your work.",
            )
        raise GitError("it gave no answer, doesn't have it so far, and would still take it.")
    lessor.intents.settle(holder, intent.id, outcome, response="asked later", fence=moved)
    return outcome


def _admit(lessor: Lessor, holder: Holder, errand: Errand, *, known: Sequence[str]) -> None:
    """Widen the lease over the paths that the push touches, or say whose they are.

    Args:
        known: commits that the remote has: what they lead to is nobody's own.
    """
    common_dir = errand.repo.common_dir
    here = [tip for tip in known if _has(common_dir, tip)] or _tracked(errand)
    if not here:
        return  # an empty remote: all of history is new to it
    touched = pushed_touches(common_dir, errand.commit, known=here, target=here[-1], env={})
    commits = {touch.path: touch.commit for touch in touched}
    admission = lessor.leases.admit(
        holder,
        list(commits),
        packages=lambda: packages_at(common_dir, errand.commit),
        verb="pushed",
    )
    if not admission.refused:
        return
    why = [
        f"{shown_path(path)} ({commits[path][:12]}): {refusal.message}"
        for path, refusal in list(admission.refused.items())[:_MOST_LISTED]
    ]
    more = len(admission.refused) - _MOST_LISTED
    raise ScopeHeldError(
        "These paths can't be pushed under this lease:\n"
        + "\n".join([*why, *([f"and {more} more"] if more > 0 else [])]),
        next_step="Take them out of the branch, or wait until they are free.",
        paths=list(admission.refused),
    )


def _has(common_dir: Path, commit: str) -> bool:
    asked = ["cat-file", "-e", f"{commit}^{{commit}}"]
    return run_git(asked, cwd=common_dir, git_dir=common_dir, check=False).code == 0


def _tracked(errand: Errand) -> list[str]:
    """What was last fetched of a remote whose present commits aren't here."""
    below = f"refs/remotes/{errand.remote}/"
    return errand.repo.git(["for-each-ref", "--format=%(objectname)", below]).lines


def _refuse_backward(errand: Errand, old: str | None) -> None:
    """Refuse to overwrite commits that this one doesn't lead to: somebody pushed them."""
    if old is None:
        return
    asked = ["merge-base", "--is-ancestor", old, errand.commit]
    code = run_git(asked, cwd=errand.cwd, check=False).code
    if code == _ANCESTOR:
        return
    what = (
        "commits that yours doesn't lead to" if code == _NOT_ANCESTOR else "a commit from elsewhere"
    )
    name = errand.ref.removeprefix("refs/heads/")
    raise ConflictError(
        f"{errand.remote} has {what} on {name}: {old[:12]}.",
        next_step=f"Bring them in first: git fetch {errand.remote} {name} && git merge FETCH_HEAD.",
        remote=errand.remote,
        ref=errand.ref,
        theirs=old,
        yours=errand.commit,
    )


def _published(errand: Errand, fence: FenceRef | None, *, moved: bool) -> Published:
    return Published(
        remote=errand.remote,
        ref=errand.ref,
        commit=errand.commit,
        moved=moved,
        fenced=fence is not None,
    )
