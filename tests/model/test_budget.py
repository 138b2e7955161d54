"""A budget reports and proposes: the oldest that a person may name, and no more than is over."""

from __future__ import annotations

import pytest

from lessor.model.budget import Budget, Measure, Stay, judge_budget

NOW = 1_000_000


def stay(number: int, *, age: int, size: int = 10, named: bool = True) -> Stay:
    return Stay(id=number, bytes=size, at_ms=NOW - age, may_be_named=named)


STAYS = [
    stay(1, age=50),
    stay(2, age=300, size=60),
    stay(3, age=200),
    stay(4, age=400, named=False),
]


@pytest.mark.parametrize(
    ("budget", "excesses", "proposed"),
    [
        (Budget(), [], ()),
        (Budget(count=4, bytes=90, age_ms=400), [], ()),
        (Budget(count=3), [(Measure.COUNT, 4, 3)], (2,)),
        (Budget(count=2), [(Measure.COUNT, 4, 2)], (2, 3)),
        (Budget(count=0), [(Measure.COUNT, 4, 0)], (2, 3, 1)),
        (Budget(bytes=89), [(Measure.BYTES, 90, 89)], (2,)),
        (Budget(bytes=25), [(Measure.BYTES, 90, 25)], (2, 3)),
        (Budget(age_ms=200), [(Measure.AGE, 2, 200)], (2,)),
        (Budget(age_ms=199), [(Measure.AGE, 3, 199)], (2, 3)),
        (Budget(count=3, age_ms=199), [(Measure.COUNT, 4, 3), (Measure.AGE, 3, 199)], (2, 3)),
    ],
)
def test_what_is_over_is_said_and_the_oldest_proposed(budget, excesses, proposed) -> None:
    found = judge_budget(budget, STAYS, now_ms=NOW)
    assert [(e.measure, e.have, e.most) for e in found.excesses] == excesses
    assert found.proposed == proposed


def test_nothing_is_over_where_nothing_stays() -> None:
    found = judge_budget(Budget(count=0, bytes=1, age_ms=1), [], now_ms=NOW)
    assert (found.excesses, found.proposed) == ((), ())
