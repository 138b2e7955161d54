"""How a cost grows: the exponent of the power law that fits best, and what the ends differ by."""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, float]


def exponent(points: Sequence[Point]) -> float | None:
    """The slope of log y over log x by least squares: 0 stays, 1 grows in proportion.

    None where nothing can be fitted: fewer than two sizes, or a value that has no logarithm.
    """
    usable = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(usable) < len(points) or len({x for x, _ in usable}) < 2:
        return None
    mean_x = math.fsum(x for x, _ in usable) / len(usable)
    mean_y = math.fsum(y for _, y in usable) / len(usable)
    across = math.fsum((x - mean_x) * (y - mean_y) for x, y in usable)
    return across / math.fsum((x - mean_x) ** 2 for x, _ in usable)


def largest_to_smallest(points: Sequence[Point]) -> float | None:
    """The value at the largest size, divided by that at the smallest."""
    if len(points) < 2:
        return None
    (_, first), (_, last) = min(points), max(points)
    return last / first if first else None
