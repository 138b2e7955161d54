"""The exponents that the curves are told by."""

from __future__ import annotations

import pytest
from fit import exponent, largest_to_smallest


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_a_power_law_is_told_by_its_exponent(power: float) -> None:
    points = [(float(n), 3.5 * n**power) for n in (10, 100, 1_000, 10_000)]
    assert exponent(points) == pytest.approx(power, abs=1e-9)


def test_points_beside_the_line_are_weighed_by_least_squares() -> None:
    # worked out by hand, in powers of ten: x 0 1 2, y 0 1 1; slope (1·1 + 0·0) / 2
    assert exponent([(1, 1), (10, 10), (100, 10)]) == pytest.approx(0.5)


def test_the_order_of_the_points_says_nothing() -> None:
    points = [(100, 7), (1, 2), (10, 5)]
    assert exponent(points) == pytest.approx(exponent(sorted(points)))
    assert largest_to_smallest(points) == 3.5


@pytest.mark.parametrize("points", [[], [(10, 1)], [(10, 1), (10, 2)], [(10, 1), (100, 0)]])
def test_what_has_no_exponent_gets_none(points: list[tuple[float, float]]) -> None:
    assert exponent(points) is None


def test_one_size_has_no_ratio() -> None:
    assert largest_to_smallest([(10, 1)]) is None
    assert largest_to_smallest([(10, 0), (100, 1)]) is None
