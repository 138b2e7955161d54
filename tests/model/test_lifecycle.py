from __future__ import annotations

import itertools

import pytest

from lessor.errors import TransitionRefusedError
from lessor.model.lifecycle import TERMINAL, TRANSITIONS, TaskEvent, TaskState, next_state
from lessor.model.workspace import WORKSPACE_MOVES, WorkspaceState, check_move


def test_every_pair_outside_the_table_is_refused_and_names_what_is_allowed() -> None:
    for state, event in itertools.product(TaskState, TaskEvent):
        if (state, event) in TRANSITIONS:
            assert next_state(state, event) is TRANSITIONS[state, event]
            continue
        with pytest.raises(TransitionRefusedError) as refused:
            next_state(state, event)
        allowed = {e.value for s, e in TRANSITIONS if s is state}
        assert set(refused.value.facts["allowed"]) == allowed


def test_nothing_leads_out_of_a_terminal_state() -> None:
    assert {state for state, _ in TRANSITIONS} == set(TaskState) - TERMINAL


def test_every_state_can_be_reached_from_queued() -> None:
    reached, frontier = {TaskState.QUEUED}, [TaskState.QUEUED]
    while frontier:
        here = frontier.pop()
        for (state, _), to in TRANSITIONS.items():
            if state is here and to not in reached:
                reached.add(to)
                frontier.append(to)
    assert reached == set(TaskState)


def test_every_unfinished_state_can_be_cancelled_by_a_person() -> None:
    for state in set(TaskState) - TERMINAL:
        assert next_state(state, TaskEvent.CANCEL) is TaskState.CANCELLED


def test_only_a_claim_makes_a_task_run() -> None:
    leading = {event for (_, event), to in TRANSITIONS.items() if to is TaskState.RUNNING}
    assert leading == {TaskEvent.CLAIM}


def test_a_workspace_that_is_gone_never_comes_back() -> None:
    for state in set(WorkspaceState) - {WorkspaceState.GONE}:
        with pytest.raises(TransitionRefusedError):
            check_move(WorkspaceState.GONE, state)
    assert all(WorkspaceState.GONE in moves for state, moves in WORKSPACE_MOVES.items() if moves)
