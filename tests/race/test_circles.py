"""Nobody waits for one who waits for him: what the races found, told step by step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from builders import Yard
from held import holding, until_waiting
from lessor.errors import CycleError
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


@pytest.mark.parametrize("apart", ["without a repository", "in two repositories"])
def test_of_two_amendments_that_close_a_circle_at_once_one_is_refused(
    yard: Yard, apart: str
) -> None:
    """They touch no common task: each changes one end of what the other doesn't look at."""
    other = yard.lessor.registry.add_repository("github.com/acme/docs").id
    here, there = (yard.repository.id, other) if "two" in apart else (None, None)
    second = yard.add("second", repository=there).task
    before = yard.add("before", repository=here, needs=(second,)).task
    first = yard.add("first", repository=here).task
    after = yard.add("after", repository=there, needs=(first,)).task
    wishes = {first: before, second: after}
    with ThreadPoolExecutor(2) as aside:
        with holding(yard, "SELECT * FROM submission FOR UPDATE"):
            futures = [
                aside.submit(
                    yard.lessor.tasks.amend, task, yard.asked("x", repository=None, needs=(need,))
                )
                for task, need in wishes.items()
            ]
            until_waiting(yard, 2)
        refused = [future.exception(timeout=30) for future in futures]
    assert [type(error) for error in refused if error is not None] == [CycleError]
    assert {yard.lessor.tasks.needs(first) == [], yard.lessor.tasks.needs(second) == []} == {
        True,
        False,
    }
