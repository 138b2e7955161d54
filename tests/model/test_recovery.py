from __future__ import annotations

from dataclasses import replace

import pytest

from lessor.model.lease import LeaseEnd
from lessor.model.lifecycle import TRANSITIONS, TaskEvent, TaskState
from lessor.model.recovery import RECOVERY_RULES, EndedLease, decide_recovery, is_charged
from lessor.model.task import Effects

ORDINARY = EndedLease(
    end=LeaseEnd.LAPSED, effects=Effects.WORKSPACE, charged=1, max_attempts=3, same_error_limit=3
)

# One row of design §5's table each: what differs from an ordinary lapse, and the rule that decides.
CASES = [
    (
        {"cancelled": True, "unsettled_unsafe": True, "charged": 9},
        "cancelled",
        TaskEvent.CANCEL,
    ),
    ({"ad_hoc": True, "charged": 9, "effects": Effects.UNDECLARED}, "ad hoc", TaskEvent.CANCEL),
    ({"unsettled_unsafe": True, "credential_missing": True}, "unsettled effect", TaskEvent.SUSPECT),
    ({"credential_missing": True, "charged": 9}, "credential missing", TaskEvent.BLOCK),
    ({"charged": 3}, "spent", TaskEvent.QUARANTINE),
    ({"same_errors": 3}, "spent", TaskEvent.QUARANTINE),
    ({"effects": Effects.READ_ONLY}, "read-only", TaskEvent.RETRY),
    ({}, "workspace", TaskEvent.RETRY),
    (
        {"effects": Effects.IDEMPOTENT, "idempotency_key": True},
        "idempotent with a key",
        TaskEvent.RETRY,
    ),
    ({"effects": Effects.IDEMPOTENT}, "anything else", TaskEvent.SUSPECT),
    ({"effects": Effects.BROKERED}, "brokered, nothing announced", TaskEvent.RETRY),
    ({"effects": Effects.BROKERED, "announced": True}, "announced, all settled", TaskEvent.RETRY),
    ({"effects": Effects.UNSAFE, "announced": True}, "announced, all settled", TaskEvent.RETRY),
    ({"effects": Effects.UNSAFE}, "anything else", TaskEvent.SUSPECT),
    ({"effects": Effects.UNDECLARED}, "anything else", TaskEvent.SUSPECT),
]


@pytest.mark.parametrize(("differs", "name", "event"), CASES, ids=[name for _, name, _ in CASES])
def test_the_first_rule_that_applies_decides(differs: dict, name: str, event: TaskEvent) -> None:
    rule = decide_recovery(replace(ORDINARY, **differs))
    assert (rule.name, rule.event) == (name, event)


def test_every_rule_decides_some_case() -> None:
    assert {name for _, name, _ in CASES} == {rule.name for rule in RECOVERY_RULES}


def test_every_rule_leads_somewhere_from_running() -> None:
    for rule in RECOVERY_RULES:
        assert (TaskState.RUNNING, rule.event) in TRANSITIONS


@pytest.mark.parametrize(
    "end",
    [LeaseEnd.GONE, LeaseEnd.REWOUND, LeaseEnd.RELEASED, LeaseEnd.FORCED, LeaseEnd.ASKED],
)
def test_a_stop_a_death_a_lost_store_and_a_question_spend_no_attempt(end: LeaseEnd) -> None:
    assert not is_charged(end)


def test_a_failure_and_a_lapse_spend_an_attempt() -> None:
    assert is_charged(LeaseEnd.FAILED)
    assert is_charged(LeaseEnd.LAPSED)
