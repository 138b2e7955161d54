"""Nobody waits for one who waits for him: what the races found, told step by step."""

from __future__ import annotations

import pytest

from builders import Yard
from lessor.model.waiting import Cause


def passed_by(yard: Yard, times: int) -> None:
    """Let others have their turns, one by one."""
    for n in range(times):
        yard.add("narrow", scopes=(f"lib/{n}",))
        yard.complete(yard.claim_one())


@pytest.mark.parametrize(("asked", "reserved"), [("src/a", "src"), ("src/*.py", "src/a.py")])
def test_a_turn_that_waits_for_a_held_scope_doesnt_keep_its_task_from_going_on(
    yard: Yard, asked: str, reserved: str
) -> None:
    """A question's scope is held for its task; a turn reserved behind it must not block the answer."""
    yard.lessor.registry.set_queue("default", overtake_limit=2)
    holder = yard.running(asked)
    broad = yard.add("broad", scopes=(reserved,), priority=1)
    yard.lessor.leases.ask(holder.holder, "which one?")
    passed_by(yard, 3)
    assert "reserved" in yard.kinds(broad.task)
    yard.lessor.tasks.answer(holder.task, "the first")
    assert yard.lessor.tasks.why(holder.task).cause is Cause.READY
    again = yard.claim_one()
    assert again.task == holder.task
    yard.complete(again)
    assert yard.claim_one().task == broad.task
