"""What became of a branch's work: an ordered table over what history shows, first match wins.

The facts are read from git elsewhere; nothing here looks at a repository. A verdict is about
history: what landed stays landed, however the lines were edited later. "Unknown" never counts as
landed, and never as empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Landed(StrEnum):
    """How far a branch's work got towards its target."""

    MISSING = "missing"
    UNKNOWN = "unknown"
    EMPTY = "empty"
    REVERTED = "reverted"
    MERGED = "merged"
    NO_CHANGE = "no-change"
    SQUASHED = "squashed"
    REBASED = "rebased"
    EQUIVALENT = "equivalent"
    PARTLY = "partly"
    CONFLICTING = "conflicting"
    OPEN = "open"

    @property
    def is_in(self) -> bool:
        """Whether the target holds the branch's own work, whole."""
        return self in {Landed.MERGED, Landed.SQUASHED, Landed.REBASED}


class Pushed(StrEnum):
    """Whether the remote has the branch, by the remote's own word.

    YES: at the same commit. OTHER: at another one. NO: not at all. UNKNOWN: it wasn't asked, or
    didn't answer.
    """

    YES = "yes"
    OTHER = "other"
    NO = "no"
    UNKNOWN = "unknown"


class Way(StrEnum):
    """How a whole change came into the target other than by a merge."""

    SQUASH = "squash"
    REBASE = "rebase"
    OTHERS = "others"  # somebody else made the same change


class Trial(StrEnum):
    """What merging the branch into the target now would come to."""

    NOTHING = "nothing"  # the target's tree already
    CHANGES = "changes"
    CONFLICTS = "conflicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What history shows of one branch.

    Attributes:
        exists: there is a commit to judge.
        unknown: why history can't tell; empty where it can.
        empty: it has no commit that its base hasn't.
        contained: the target leads to its tip.
        net_change: its tree differs from the one it began from.
        way: how its whole change came into the target; None where no commit there has it.
        parts: how many of its changes the target's commits have.
        reverted: how many of the changes that landed were taken out again.
        of: how many changes it has.
        trial: None where nobody had to try.
    """

    exists: bool = True
    unknown: str = ""
    empty: bool = False
    contained: bool = False
    net_change: bool = True
    way: Way | None = None
    parts: int = 0
    reverted: int = 0
    of: int = 0
    trial: Trial | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingRule:
    """One row: when it applies, the verdict, and why in one sentence."""

    verdict: Landed
    applies: Callable[[History], bool]
    why: str


def _landed(history: History) -> bool:
    return history.contained or history.way is not None


LANDING_RULES: tuple[LandingRule, ...] = (
    LandingRule(
        verdict=Landed.MISSING,
        applies=lambda h: not h.exists,
        why="There is no such branch here, and no commit of it is on record.",
    ),
    LandingRule(
        verdict=Landed.UNKNOWN,
        applies=lambda h: bool(h.unknown),
        why="The history that would tell isn't here; the reason says which part.",
    ),
    LandingRule(
        verdict=Landed.EMPTY,
        applies=lambda h: h.empty,
        why="It has no commit that the commit which it began from doesn't lead to.",
    ),
    LandingRule(
        verdict=Landed.REVERTED,
        applies=lambda h: _landed(h) and h.of > 0 and h.reverted == h.of,
        why="All of it came into the target, and all of it was reverted there since.",
    ),
    LandingRule(
        verdict=Landed.PARTLY,
        applies=lambda h: _landed(h) and h.reverted > 0,
        why="All of it came into the target, and some of it was reverted there since.",
    ),
    LandingRule(
        verdict=Landed.MERGED,
        applies=lambda h: h.contained,
        why="The target leads to its tip.",
    ),
    LandingRule(
        verdict=Landed.NO_CHANGE,
        applies=lambda h: not h.net_change,
        why="Its commits undo each other or change nothing; they are in no target, so it stays.",
    ),
    LandingRule(
        verdict=Landed.SQUASHED,
        applies=lambda h: h.way is Way.SQUASH,
        why="One commit of the target makes the branch's whole change, byte for byte.",
    ),
    LandingRule(
        verdict=Landed.REBASED,
        applies=lambda h: h.way is Way.REBASE,
        why="The target has a copy of each of its commits, by rebase or cherry-pick.",
    ),
    LandingRule(
        verdict=Landed.EQUIVALENT,
        applies=lambda h: h.way is Way.OTHERS,
        why="Somebody else's commit in the target makes the same change.",
    ),
    LandingRule(
        verdict=Landed.EQUIVALENT,
        applies=lambda h: h.trial is Trial.NOTHING,
        why="Merging it would change nothing, though no commit of the target is a copy of it.",
    ),
    LandingRule(
        verdict=Landed.PARTLY,
        applies=lambda h: h.parts > 0,
        why="The target has some of its changes and not the others.",
    ),
    LandingRule(
        verdict=Landed.CONFLICTING,
        applies=lambda h: h.trial is Trial.CONFLICTS,
        why="It isn't in the target, and a merge would conflict.",
    ),
    LandingRule(
        verdict=Landed.OPEN,
        applies=lambda h: h.trial is Trial.CHANGES,
        why="It isn't in the target, and a merge would be clean.",
    ),
    LandingRule(
        verdict=Landed.UNKNOWN,
        applies=lambda _: True,
        why="Nobody could try the merge.",
    ),
)


def judge_landing(history: History) -> LandingRule:
    """The first row that applies."""
    return next(rule for rule in LANDING_RULES if rule.applies(history))
