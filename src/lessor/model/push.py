"""Whether a reference may be moved by a push, by who pushes and whose the branch is.

A push shows that it is an announced one (`lessor push`), or nothing. What is shown has to be of a
live lease, whatever is pushed. A branch belongs to the live lease that has it; while its task isn't
finished, to nobody but the next holder; a result that hasn't landed may only be gone on from. Every
other reference is nobody's, and goes by the repository's own policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lessor.model.lifecycle import TaskState, is_terminal

BRANCHES = "refs/heads/"
OWN = "refs/lessor/"
_STATES = {
    TaskState.NEEDS_PERSON: "waits for a person",
    TaskState.QUARANTINED: "is quarantined",
    TaskState.RECONCILING: "may have had effects that nobody has looked at",
}


class Unleased(StrEnum):
    """What becomes of a push to a reference that belongs to no lease."""

    ALLOW = "allow"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefUpdate:
    """One reference of a push; None where it isn't there before, or afterwards."""

    ref: str
    old: str | None
    new: str | None

    @property
    def branch(self) -> str | None:
        """The branch's name; None for any other reference."""
        return self.ref.removeprefix(BRANCHES) if self.ref.startswith(BRANCHES) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The announced push that a push shows itself to be.

    Attributes:
        live: whether its lease was live when it was read.
        settled: whether its outcome is on record already.
        ended: why the lease is over, in words; empty where it isn't.
    """

    lease: str
    number: int
    epoch: int
    ref: str
    old: str | None
    new: str
    live: bool
    settled: bool
    ended: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whose a branch is.

    Attributes:
        number: the task's.
        lease: the lease that hasn't ended; None where there is none.
        live: whether it hasn't run out either.
        head: the commit of a result that hasn't landed; None where there is none.
    """

    number: int
    title: str
    state: TaskState
    epoch: int
    lease: str | None
    agent: str
    live: bool
    head: str | None


def refuse_push(shown: Shown | None) -> str | None:
    """Why a push that shows something is refused as a whole; None where it isn't.

    Args:
        shown: what it shows; None where nobody announced that.
    """
    if shown is None:
        return "it shows itself to be a push that nobody announced"
    if not shown.live:
        over = f": {shown.ended}" if shown.ended else ""
        return f"it is #{shown.number}'s at epoch {shown.epoch}, and that lease is over{over}"
    if shown.settled:
        return f"it is a push of #{shown.number} that was settled already"
    return None


def refuse_update(
    update: RefUpdate,
    standing: Standing | None,
    shown: Shown | None,
    *,
    unleased: Unleased,
    goes_on: bool,
) -> str | None:
    """Why one reference isn't moved; None where it is.

    Args:
        update: what is asked for.
        standing: whose the branch is; None where it is nobody's.
        shown: an announced push of a live lease, or None.
        unleased: the repository's policy for what is nobody's.
        goes_on: whether the new commit leads to the result's.
    """
    name = update.branch or update.ref
    if standing is not None and standing.lease is not None:
        return _refuse_leased(update, standing, shown, name)
    if standing is not None and not is_terminal(standing.state):
        said = _STATES.get(standing.state, f"is {standing.state}")
        return f"{name} is #{standing.number}'s, which {said}: nobody holds it now"
    if standing is not None and standing.head is not None:
        if update.new is not None and goes_on:
            return None
        what = "deleted" if update.new is None else "moved to commits without it"
        return f"{name} holds the result of #{standing.number}, and would be {what}"
    if unleased is Unleased.ALLOW or update.ref.startswith(OWN):
        return None
    return f"{name} belongs to no lease, and this repository takes only what is leased"


def _refuse_leased(
    update: RefUpdate, standing: Standing, shown: Shown | None, name: str
) -> str | None:
    holder = f"{standing.agent} holds it at epoch {standing.epoch}"
    if not standing.live:
        return f"{name} is #{standing.number}'s, and the lease of {standing.agent} has run out"
    if shown is None:
        return f"{name} is leased: #{standing.number}, {holder}"
    if shown.lease != standing.lease:
        return (
            f"this push is #{shown.number}'s at epoch {shown.epoch}, and {name} is "
            f"#{standing.number}'s: {holder}"
        )
    if (update.ref, update.new) != (shown.ref, shown.new):
        return f"this isn't what #{shown.number} announced for {name}"
    return None
