from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessor.errors import CycleError, InvalidError
from lessor.model.dependencies import check_acyclic


def test_tasks_that_wait_for_each_other_are_refused_and_named() -> None:
    with pytest.raises(CycleError) as refused:
        check_acyclic([(1,), (2,), (0,), ()])
    assert refused.value.facts["places"] == ["1", "2", "3", "1"]


def test_a_task_that_waits_for_itself_is_refused() -> None:
    with pytest.raises(CycleError):
        check_acyclic([(0,)])


@pytest.mark.parametrize("place", [-1, 2, True, "0", None])
def test_a_place_outside_the_batch_is_refused(place: object) -> None:
    with pytest.raises(InvalidError):
        check_acyclic([(), (place,)])


def test_a_chain_deeper_than_the_stack_is_fine() -> None:
    check_acyclic([(), *((place,) for place in range(20_000))])


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=8, max_size=8))
def test_refused_is_exactly_what_can_not_be_ordered(needs: list[list[int]]) -> None:
    left = dict(enumerate(map(set, needs)))
    while ready := [place for place, waits in left.items() if not waits & left.keys()]:
        for place in ready:
            del left[place]
    try:
        check_acyclic(needs)
        refused = False
    except CycleError:
        refused = True
    assert refused == bool(left)
