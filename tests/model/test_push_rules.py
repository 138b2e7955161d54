"""Who may move which reference: every kind of pusher against every kind of branch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lessor.model.lifecycle import TaskState
from lessor.model.push import (
    RefUpdate,
    Shown,
    Standing,
    Unleased,
    refuse_push,
    refuse_update,
)

A, B, C = ("a" * 40, "b" * 40, "c" * 40)
REF = "refs/heads/ai/3-x"
UPDATE = RefUpdate(ref=REF, old=A, new=B)
SHOWN = Shown(lease="lease_1", number=3, epoch=2, ref=REF, old=A, new=B, live=True, settled=False)
LEASED = Standing(
    number=3,
    title="x",
    state=TaskState.RUNNING,
    epoch=2,
    lease="lease_1",
    agent="claude-1",
    live=True,
    head=None,
)
WAITING = replace(LEASED, state=TaskState.QUEUED, lease=None, live=False)
RESULT = replace(WAITING, state=TaskState.SUCCEEDED, head=A)
LANDED = replace(RESULT, head=None)


def refused(
    update: RefUpdate = UPDATE,
    standing: Standing | None = LEASED,
    shown: Shown | None = SHOWN,
    unleased: Unleased = Unleased.ALLOW,
    *,
    goes_on: bool = False,
) -> str | None:
    return refuse_update(update, standing, shown, unleased=unleased, goes_on=goes_on)


def test_the_live_holder_pushes_what_it_announced() -> None:
    assert refuse_push(SHOWN) is None
    assert refused() is None


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (None, "nobody announced"),
        (replace(SHOWN, live=False, ended="its time ran out"), "over: its time ran out"),
        (replace(SHOWN, settled=True), "settled already"),
    ],
)
def test_what_shows_itself_and_isnt_live_is_refused_whatever_it_pushes(
    shown: Shown | None, words: str
) -> None:
    assert words in (refuse_push(shown) or "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shown": None}, "is leased: #3, claude-1 holds it at epoch 2"),
        ({"shown": replace(SHOWN, lease="lease_2", number=7, epoch=1)}, "this push is #7's"),
        ({"shown": replace(SHOWN, new=C)}, "isn't what #3 announced"),
        ({"shown": replace(SHOWN, ref="refs/heads/other")}, "isn't what #3 announced"),
        ({"update": replace(UPDATE, new=None)}, "isn't what #3 announced"),
        ({"standing": replace(LEASED, live=False)}, "has run out"),
    ],
)
def test_a_leased_branch_is_nobody_elses(change: dict, words: str) -> None:
    assert words in (refused(**change) or "")


@pytest.mark.parametrize("state", [s for s in TaskState if s != "running"])
def test_a_branch_without_a_holder_waits_for_one_until_its_task_is_finished(
    state: TaskState,
) -> None:
    why = refused(standing=replace(WAITING, state=state), shown=None)
    finished = state in {TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED}
    assert (why is None) is finished
    assert finished or "nobody holds it" in why
    assert finished or "needs person" not in why


def test_a_result_is_gone_on_from_and_never_lost() -> None:
    assert refused(standing=RESULT, shown=None, goes_on=True) is None
    assert "without it" in (refused(standing=RESULT, shown=None) or "")
    gone = replace(UPDATE, new=None)
    assert "deleted" in (refused(gone, RESULT, None, goes_on=True) or "")
    assert refused(gone, LANDED, None) is None


@pytest.mark.parametrize("ref", ["refs/heads/mine", "refs/tags/v1", "refs/notes/commits"])
def test_what_is_nobodys_goes_by_the_repositorys_policy(ref: str) -> None:
    update = RefUpdate(ref=ref, old=None, new=B)
    assert refused(update, None, None) is None
    assert "no lease" in (refused(update, None, None, Unleased.REFUSE) or "")
    assert refused(update, None, SHOWN) is None


def test_lessors_own_references_are_never_what_a_policy_is_about() -> None:
    update = RefUpdate(ref="refs/lessor/fence/lease_1", old=None, new=B)
    assert refused(update, None, None, Unleased.REFUSE) is None
