"""What an ended lease leads to: an ordered table over recorded facts, first match wins.

Only facts that the store already has are read, so a claim can apply the table without asking git
or a host. The rows are design §5's, from Microsoft's compensating-transaction advice and the
at-least-once literature; `docs/recovery.md` is generated from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lessor.model.lease import LeaseEnd
from lessor.model.lifecycle import TaskEvent
from lessor.model.task import Effects

UNCHARGED = frozenset(
    {LeaseEnd.GONE, LeaseEnd.REWOUND, LeaseEnd.RELEASED, LeaseEnd.FORCED, LeaseEnd.ASKED}
)
"""Ends that spend no attempt: a person's stop, a reboot, a killed process, a lost store, a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedLease:
    """The recorded facts about a lease that ended without a result.

    Attributes:
        charged: attempts that count, this one included where it counts.
        same_errors: failures in a row with this one's fingerprint, this one included.
        ad_hoc: the task only stood for paths that were acquired or held.
        credential_missing: the end was blamed on a missing or revoked credential.
        unsettled_unsafe: an announced unsafe effect or a publish has no outcome yet.
        announced: whether any effect was announced at all.
    """

    end: LeaseEnd
    effects: Effects
    charged: int
    max_attempts: int
    same_errors: int = 0
    same_error_limit: int = 3
    idempotency_key: bool = False
    cancelled: bool = False
    ad_hoc: bool = False
    credential_missing: bool = False
    unsettled_unsafe: bool = False
    announced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRule:
    """One row: a name, when it applies, the event that follows, and why in one sentence."""

    name: str
    applies: Callable[[EndedLease], bool]
    event: TaskEvent
    why: str


def _spent(ended: EndedLease) -> bool:
    return ended.charged >= ended.max_attempts or ended.same_errors >= ended.same_error_limit


RECOVERY_RULES: tuple[RecoveryRule, ...] = (
    RecoveryRule(
        name="cancelled",
        applies=lambda e: e.cancelled,
        event=TaskEvent.CANCEL,
        why="An ended lease never undoes a person's decision.",
    ),
    RecoveryRule(
        name="ad hoc",
        applies=lambda e: e.ad_hoc,
        event=TaskEvent.CANCEL,
        why="The task only stood for its paths: nobody asked for work that another could do.",
    ),
    RecoveryRule(
        name="unsettled effect",
        applies=lambda e: e.unsettled_unsafe,
        event=TaskEvent.SUSPECT,
        why="What was announced may have happened; somebody has to look before it is tried again.",
    ),
    RecoveryRule(
        name="credential missing",
        applies=lambda e: e.credential_missing,
        event=TaskEvent.BLOCK,
        why="Another worker wouldn't have the credential either.",
    ),
    RecoveryRule(
        name="spent",
        applies=_spent,
        event=TaskEvent.QUARANTINE,
        why="It failed as often as it may, or the same way each time.",
    ),
    RecoveryRule(
        name="read-only",
        applies=lambda e: e.effects is Effects.READ_ONLY,
        event=TaskEvent.RETRY,
        why="Nothing was changed; the abandoned attempt is recorded.",
    ),
    RecoveryRule(
        name="workspace",
        applies=lambda e: e.effects is Effects.WORKSPACE,
        event=TaskEvent.RETRY,
        why="All effects are in the worktree, which is salvaged before the next epoch starts.",
    ),
    RecoveryRule(
        name="idempotent with a key",
        applies=lambda e: e.effects is Effects.IDEMPOTENT and e.idempotency_key,
        event=TaskEvent.RETRY,
        why="The same key makes the repetition the same action.",
    ),
    RecoveryRule(
        name="brokered, nothing announced",
        applies=lambda e: e.effects is Effects.BROKERED and not e.announced,
        event=TaskEvent.RETRY,
        why="Effects happen only after they were announced, and none was.",
    ),
    RecoveryRule(
        name="announced, all settled",
        applies=lambda e: e.effects in {Effects.UNSAFE, Effects.BROKERED} and e.announced,
        event=TaskEvent.RETRY,
        why="Every outcome is known and handed on.",
    ),
    RecoveryRule(
        name="anything else",
        applies=lambda _: True,
        event=TaskEvent.SUSPECT,
        why="An undeclared class with access outside may have done anything.",
    ),
)


def decide_recovery(ended: EndedLease) -> RecoveryRule:
    """The first rule that applies; the last one always does."""
    return next(rule for rule in RECOVERY_RULES if rule.applies(ended))


def is_charged(end: LeaseEnd) -> bool:
    """Whether an end of this kind counts against `max_attempts`."""
    return end not in UNCHARGED
