from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lessor.model.claiming import Ground, ground_of
from lessor.model.shadow import Shadow, Unlanded, foundation


def shadow(task: int, *below: int) -> Shadow:
    return Shadow(lease=100 + task, task=task, branch=f"b/{task}", head=f"{task:040}", below=below)


def test_nothing_is_founded_on_nothing() -> None:
    assert foundation([]) is None


def test_one_result_is_the_foundation() -> None:
    assert foundation([shadow(1)]) == shadow(1)


def test_two_results_beside_each_other_are_none() -> None:
    assert foundation([shadow(1), shadow(2)]) is None
    assert foundation([shadow(1), shadow(2, 1), shadow(3, 1)]) is None


@given(st.permutations([1, 2, 3, 4]), st.sets(st.integers(1, 4), min_size=1))
def test_of_a_chain_the_top_is_the_foundation_whichever_are_met(
    order: list[int], met: set[int]
) -> None:
    chain = {n: shadow(n, *range(n - 1, 0, -1)) for n in order}
    assert foundation([chain[n] for n in order if n in met]) == chain[max(met)]


@given(st.lists(st.integers(1, 5), unique=True, min_size=1), st.booleans())
def test_a_task_begins_or_waits_but_never_both(tasks: list[int], fresh: bool) -> None:
    shadows = [shadow(n) for n in tasks]
    for setting in Unlanded:
        ground = ground_of(shadows, setting, fresh=fresh)
        assert ground.stand is None or ground.wait is None
    assert ground_of(shadows, Unlanded.IGNORE, fresh=fresh) == Ground()
    assert ground_of(shadows, Unlanded.WAIT, fresh=fresh).wait in shadows
    stacked = ground_of(shadows, Unlanded.STACK, fresh=fresh)
    assert (stacked.stand is not None) == (fresh and len(tasks) == 1)
    assert (stacked.wait is not None) == (fresh and len(tasks) > 1)
