"""Where work lies: recorded before it is made, moved by its own epoch alone, never deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from builders import Yard, zombie
from held import holding, until_waiting
from lessor.errors import (
    ConflictError,
    InvalidError,
    LeaseLostError,
    NotFoundError,
    TransitionRefusedError,
)
from lessor.model.grant import Grant
from lessor.model.workspace import WORKSPACE_MOVES, Workspace, WorkspaceState

BASE = "a" * 40
S = WorkspaceState


def reserve(yard: Yard, grant: Grant, path: str = "/trees/1-e1") -> Workspace:
    """A workspace recorded for the grant."""
    workspaces = yard.lessor.workspaces
    number = workspaces.reserve(
        grant.holder, host_id="host_1", path=path, branch=grant.branch or "", base=BASE
    )
    return workspaces.get(number)


def next_epoch(yard: Yard, grant: Grant) -> Grant:
    """The same task at its next epoch."""
    yard.lessor.leases.end_gone(grant.task, epoch=grant.epoch, proof="it is gone")
    return yard.claim_one(task=grant.task)


def test_a_workspace_is_recorded_before_it_is_made(yard: Yard) -> None:
    grant = yard.running("src")
    made = reserve(yard, grant)
    assert (made.task, made.epoch, made.state) == (grant.task, 1, S.RESERVED)
    assert (made.host_id, made.path, made.base) == ("host_1", "/trees/1-e1", BASE)
    assert yard.lessor.leases.lease(grant.lease).workspace == made.id
    assert yard.kinds(grant.task)[-1] == "workspace"


def test_only_the_live_holder_reserves(yard: Yard) -> None:
    grant = yard.running("src")
    for changed in ({"token": "another"}, {"epoch": 2}, {"worker": yard.other.id}):
        with pytest.raises(LeaseLostError):
            reserve(yard, replace(grant, holder=zombie(grant.holder, **changed)))
    yard.lessor.leases.release(grant.holder)
    with pytest.raises(LeaseLostError):
        reserve(yard, grant)
    assert yard.lessor.workspaces.of_task(grant.task) == []


def test_a_path_of_a_host_is_one_workspaces(yard: Yard) -> None:
    first, second = yard.running("src"), yard.running("docs")
    reserve(yard, first)
    with pytest.raises(ConflictError) as refused:
        reserve(yard, second)
    assert refused.value.facts["task"] == first.task
    other_host = yard.lessor.workspaces.reserve(
        second.holder, host_id="host_2", path="/trees/1-e1", branch="ai/2", base=BASE
    )
    assert yard.lessor.workspaces.get(other_host).host_id == "host_2"


def test_a_workspace_that_is_reserved_again_is_the_same(yard: Yard) -> None:
    """The answer may have been lost; the directory is still to be made."""
    grant = yard.running("src")
    made = reserve(yard, grant)
    before = yard.store.contents()
    assert reserve(yard, grant) == made
    assert yard.store.contents() == before


def test_what_setup_left_is_kept_with_it(yard: Yard) -> None:
    made = reserve(yard, yard.running("src"))
    marks = {"build/a": (3, 1_700_000_000_000_000_001), "caf\u00e9 \u2028\n": (0, 0)}
    assert yard.lessor.workspaces.move(made, S.PRESENT, snapshot=marks)
    assert yard.lessor.workspaces.get(made.id).snapshot == marks
    assert yard.lessor.workspaces.move(made, S.DIRTY)
    assert yard.lessor.workspaces.get(made.id).snapshot == marks


def test_a_name_outside_of_utf8_is_kept_with_it(yard: Yard) -> None:
    made = reserve(yard, yard.running("src"))
    marks = {"build/\udcff": (1, 2)}
    yard.lessor.workspaces.move(made, S.PRESENT, snapshot=marks)
    assert yard.lessor.workspaces.get(made.id).snapshot == marks


def test_the_next_epoch_adopts_it(yard: Yard) -> None:
    first = yard.running("src")
    made = reserve(yard, first)
    second = next_epoch(yard, first)
    yard.lessor.workspaces.adopt(second.holder, made.id)
    taken = yard.lessor.workspaces.get(made.id)
    assert (taken.epoch, taken.state, taken.path) == (2, S.PRESENT, made.path)
    assert yard.lessor.leases.lease(second.lease).workspace == made.id
    assert yard.kinds(first.task)[-1] == "adopted"


def test_only_the_live_holder_adopts(yard: Yard) -> None:
    first = yard.running("src")
    made = reserve(yard, first)
    next_epoch(yard, first)
    with pytest.raises(LeaseLostError):
        yard.lessor.workspaces.adopt(first.holder, made.id)
    assert yard.lessor.workspaces.get(made.id).epoch == 1


def test_a_workspace_of_another_task_isnt_adopted(yard: Yard) -> None:
    made = reserve(yard, yard.running("src"))
    other = yard.running("docs")
    with pytest.raises(NotFoundError):
        yard.lessor.workspaces.adopt(other.holder, made.id)
    assert yard.lessor.workspaces.get(made.id) == made


def test_one_that_is_gone_isnt_adopted(yard: Yard) -> None:
    first = yard.running("src")
    made = reserve(yard, first)
    yard.lessor.workspaces.move(made, S.GONE)
    second = next_epoch(yard, first)
    with pytest.raises(TransitionRefusedError):
        yard.lessor.workspaces.adopt(second.holder, made.id)


@pytest.mark.parametrize("state", [S.DIRTY, S.SALVAGED, S.QUARANTINED, S.GONE])
def test_the_word_of_an_earlier_epoch_moves_nothing(yard: Yard, state: WorkspaceState) -> None:
    first = yard.running("src")
    made = reserve(yard, first)
    second = next_epoch(yard, first)
    yard.lessor.workspaces.adopt(second.holder, made.id)
    before = yard.store.contents()
    assert yard.lessor.workspaces.move(made, state, why="late") is False
    assert yard.store.contents() == before


@pytest.mark.parametrize("state", list(S))
def test_only_the_tables_moves_are_taken(yard: Yard, state: WorkspaceState) -> None:
    paths = {
        S.RESERVED: (),
        S.PRESENT: (S.PRESENT,),
        S.DIRTY: (S.DIRTY,),
        S.SALVAGED: (S.PRESENT, S.SALVAGED),
        S.QUARANTINED: (S.PRESENT, S.QUARANTINED),
        S.GONE: (S.GONE,),
    }
    for number, to in enumerate(S):
        made = reserve(yard, yard.running(f"src/{number}"), path=f"/trees/{number}")
        for step in paths[state]:
            yard.lessor.workspaces.move(made, step)
        if to is state or to in WORKSPACE_MOVES[state]:
            assert yard.lessor.workspaces.move(made, to)
        else:
            with pytest.raises(TransitionRefusedError):
                yard.lessor.workspaces.move(made, to)
            assert yard.lessor.workspaces.get(made.id).state is state


def test_each_move_has_its_event_and_staying_has_none(yard: Yard) -> None:
    grant = yard.running("src")
    made = reserve(yard, grant)
    yard.lessor.workspaces.move(made, S.PRESENT)
    yard.lessor.workspaces.move(made, S.PRESENT)
    yard.lessor.workspaces.move(made, S.DIRTY, why="no result")
    moves = [e for e in yard.lessor.tasks.history(grant.task) if e.facts.get("state")]
    assert [(e.facts["state"], e.facts["why"]) for e in moves] == [
        ("present", ""),
        ("dirty", "no result"),
    ]


def test_they_are_listed_by_task_and_by_host(yard: Yard) -> None:
    first, second = yard.running("src"), yard.running("docs")
    a, b = reserve(yard, first), reserve(yard, second, path="/trees/2-e1")
    workspaces = yard.lessor.workspaces
    assert [w.id for w in workspaces.of_task(first.task)] == [a.id]
    assert [w.id for w in workspaces.on_host("host_1")] == [a.id, b.id]
    assert workspaces.on_host("host_2") == []
    workspaces.move(a, S.GONE)
    assert workspaces.of_task(first.task) == []
    assert [w.state for w in workspaces.of_task(first.task, gone=True)] == [S.GONE]
    other = yard.lessor.registry.add_repository("github.com/acme/other")
    assert workspaces.on_host("host_1", repository=other.id) == []


def test_what_was_saved_is_listed_in_its_order(yard: Yard) -> None:
    grant = yard.running("src")
    made = reserve(yard, grant)
    note = yard.lessor.salvages.note
    note(made, ref="refs/lessor/salvage/1/1/1", archive=None, files=2)
    note(made, ref=None, archive="/archive/1.tar", files=1)
    saved = yard.lessor.salvages.of_task(grant.task)
    assert [(s.epoch, s.n, s.ref, s.archive, s.files) for s in saved] == [
        (1, 1, "refs/lessor/salvage/1/1/1", None, 2),
        (1, 2, None, "/archive/1.tar", 1),
    ]


def test_what_two_save_at_once_has_a_number_each(yard: Yard) -> None:
    made = reserve(yard, yard.running("src"))
    note = yard.lessor.salvages.note
    with ThreadPoolExecutor(2) as aside:
        with holding(yard, "SELECT * FROM task FOR UPDATE"):
            futures = [
                aside.submit(note, made, ref=ref, archive=None, files=1) for ref in ("a", "b")
            ]
            until_waiting(yard, 2)
        for future in futures:
            future.result(timeout=30)
    saved = yard.lessor.salvages.of_task(made.task)
    assert [s.n for s in saved] == [1, 2]
    assert {s.ref for s in saved} == {"a", "b"}


def test_what_was_saved_is_listed_by_repository_the_newest_task_first(yard: Yard) -> None:
    first, second = yard.running("src"), yard.running("docs")
    for grant, path in ((first, "/trees/1-e1"), (second, "/trees/2-e1")):
        made = reserve(yard, grant, path=path)
        yard.lessor.salvages.note(made, ref=f"r{grant.number}", archive=None, files=1)
    salvages = yard.lessor.salvages
    repository = yard.lessor.tasks.task(first.task).repository
    found = salvages.of_repository(repository)
    assert [(s.task, s.ref, s.path) for s in found] == [
        (second.task, f"r{second.number}", "/trees/2-e1"),
        (first.task, f"r{first.number}", "/trees/1-e1"),
    ]
    assert [s.host_id for s in found] == ["host_1", "host_1"]
    assert [s.task for s in salvages.of_repository(repository, most=1)] == [second.task]
    other = yard.lessor.registry.add_repository("github.com/acme/other")
    assert salvages.of_repository(other.id) == []


def test_what_was_dropped_is_listed_no_more_and_its_number_never_again(yard: Yard) -> None:
    grant = yard.running("src")
    made = reserve(yard, grant)
    salvages = yard.lessor.salvages
    for ref in ("r1", "r2"):
        salvages.note(made, ref=ref, archive=None, files=1)
    last = salvages.of_task(grant.task)[-1]
    salvages.drop(last, actor="dana", reason="seen")
    assert [s.n for s in salvages.of_task(grant.task)] == [1]
    assert yard.kinds(grant.task)[-1] == "dropped"
    before = yard.store.contents()
    with pytest.raises(NotFoundError):
        salvages.drop(last)
    assert yard.store.contents() == before
    salvages.note(made, ref="r3", archive=None, files=1)
    assert [s.n for s in salvages.of_task(grant.task)] == [1, 3]


def test_what_isnt_there_is_said(yard: Yard) -> None:
    with pytest.raises(NotFoundError):
        yard.lessor.workspaces.get(999)
    made = reserve(yard, yard.running("src"))
    with pytest.raises(NotFoundError):
        yard.lessor.workspaces.move(replace(made, id=999), S.DIRTY)
    with pytest.raises(NotFoundError):
        yard.lessor.workspaces.adopt(yard.running("docs").holder, 999)


@pytest.mark.parametrize("wrong", ["", "  ", "a\0b", "\ud800", "x" * 70_000, 5, None, b"x", ["x"]])
def test_texts_that_cant_be_kept_are_refused_and_nothing_changes(yard: Yard, wrong: object) -> None:
    grant = yard.running("src")
    made = reserve(yard, grant)
    good = {"host_id": "host_1", "path": "/trees/2", "branch": "ai/1", "base": BASE}
    before = yard.store.contents()
    for name in good:
        with pytest.raises(InvalidError):
            yard.lessor.workspaces.reserve(grant.holder, **{**good, name: wrong})
    with pytest.raises(InvalidError):
        yard.lessor.workspaces.on_host(wrong)
    if wrong is not None:
        with pytest.raises(InvalidError):
            yard.lessor.salvages.note(made, ref=wrong, archive=None, files=1)
    assert yard.store.contents() == before


@pytest.mark.parametrize("wrong", [None, 1, "1", object()])
def test_what_is_no_workspace_is_refused(yard: Yard, wrong: object) -> None:
    with pytest.raises(InvalidError):
        yard.lessor.workspaces.move(wrong, S.DIRTY)
    with pytest.raises(InvalidError):
        yard.lessor.salvages.note(wrong, ref="r", archive=None, files=1)


@pytest.mark.parametrize("wrong", ["gone for good", None, 5, "DIRTY"])
def test_a_state_that_isnt_one_is_refused(yard: Yard, wrong: object) -> None:
    made = reserve(yard, yard.running("src"))
    with pytest.raises(InvalidError):
        yard.lessor.workspaces.move(made, wrong)


@pytest.mark.parametrize("wrong", [-1, 0, 2**63, 1.5, "1", None, True])
def test_a_number_that_isnt_one_is_refused(yard: Yard, wrong: object) -> None:
    grant = yard.running("src")
    made = reserve(yard, grant)
    with pytest.raises(InvalidError):
        yard.lessor.workspaces.get(wrong)
    with pytest.raises(InvalidError):
        yard.lessor.workspaces.adopt(grant.holder, wrong)
    if wrong != 0:
        with pytest.raises(InvalidError):
            yard.lessor.salvages.note(made, ref="r", archive=None, files=wrong)


def test_a_move_is_written_only_over_the_state_that_it_was_judged_by(yard: Yard) -> None:
    grant = yard.running("src")
    made = reserve(yard, grant)
    moved = {"workspace_id": made.id, "epoch": 1, "state": S.SALVAGED, "snapshot": None}
    adopted = {"workspace_id": made.id, "epoch": 2, "state": S.PRESENT}
    write = yard.lessor.store.write
    before = yard.store.contents()
    assert write(lambda tx: tx.rows("set_workspace", from_state=S.DIRTY, **moved)) == []
    for was in (
        {"from_state": S.DIRTY, "from_epoch": 1},
        {"from_state": made.state, "from_epoch": 2},
    ):
        assert write(lambda tx, was=was: tx.rows("adopt_workspace", **was, **adopted)) == []
    assert yard.store.contents() == before
