"""A small chart of a curve: both axes logarithmic, one line a series, its exponent beside its name."""

from __future__ import annotations

import math

from drawing import Drawing, cut

CHART_HEIGHT = 276
KINDS = {"bare SQL": "limit"}
OTHERS = ("own", "other", "own2")
LINES = 3
"""Most series of a chart, one below the other above it."""
TICKS = 5


def chart(page: Drawing, left: float, top: float, width: float, curve: dict) -> None:
    """Draw `curve` into a place of that width and of `CHART_HEIGHT`."""
    series = [(one, kind, usable(one["points"])) for one, kind in kinds(curve["series"])]
    points = [point for *_, found in series for point in found]
    page.text(left, top + 22, cut(curve["y"], width, 13), bold=True)
    head = top + 42
    for number, (one, kind, _) in enumerate(series):
        y = head + 17 * number
        page.bar(left, y - 6, 14, 4, kind)
        page.text(left + 21, y, cut(told(one), width - 21, 11), size=11, kind="soft")
    if not points:
        return
    area = _Area(
        left=left + 40,
        right=left + width - 12,
        top=head + 17 * LINES,
        bottom=top + CHART_HEIGHT - 56,
        across=_span([x for x, _ in points]),
        up=_rounded([y for _, y in points]),
    )
    for value in nice(*area.up):
        y = area.y(value)
        page.line([(area.left, y), (area.right, y)], "rule")
        page.text(area.left - 7, y + 4, short(value), size=11, kind="soft", anchor="end")
    for x in sorted({x for x, _ in points}):
        page.text(area.x(x), area.bottom + 17, short(x), size=11, kind="soft", anchor="middle")
    middle = (area.left + area.right) / 2
    label = cut(curve["x"], width, 11)
    page.text(middle, area.bottom + 34, label, size=11, kind="soft", anchor="middle")
    for _, kind, found in series:
        drawn = [(area.x(x), area.y(y)) for x, y in found]
        page.line(drawn, kind)
        for x, y in drawn:
            page.dot(x, y, kind)


def kinds(series: list[dict]) -> list[tuple[dict, str]]:
    """Each series with what it is drawn as: bare SQL as everywhere, the others in turn."""
    others = iter(OTHERS)
    return [(one, KINDS.get(one["name"]) or next(others)) for one in series[:LINES]]


def told(series: dict) -> str:
    """A series by its name, the exponent that fits, and what its ends differ by."""
    said = [series["name"]]
    if series.get("exponent") is not None:
        said.append(f"n^{series['exponent']:.2f}".replace("-0.00", "0.00"))
    if series.get("largest_to_smallest") is not None:
        said.append(f"{times(series['largest_to_smallest'])} times")
    return " · ".join(said)


def times(ratio: float) -> str:
    """A ratio in two or three figures."""
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"


def usable(points: list) -> list[tuple[float, float]]:
    """The points that have a place on logarithmic axes."""
    return [
        (x, y)
        for x, y in points
        if all(isinstance(v, int | float) and math.isfinite(v) and v > 0 for v in (x, y))
    ]


def nice(low: float, high: float) -> list[float]:
    """Values to name between two: 1, 2 and 5 times a power of ten, or powers alone where that is enough."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [n * 10.0**p for p in powers for n in steps]
        found = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(found) <= TICKS:
            return found
    return found[:: math.ceil(len(found) / TICKS)]


def short(value: float) -> str:
    """A size in few letters: 1k, 10M, 0.2."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"


def _span(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if low < high else (low / 2, high * 2)


def _rounded(values: list[float]) -> tuple[float, float]:
    """From a nice value below all to one above; at least a power of ten, so that little looks little."""
    low, high = min(values) / 1.15, max(values) * 1.15
    if high / low < 10:
        middle = math.sqrt(low * high)
        low, high = min(low, middle / 3.2), max(high, middle * 3.2)
    return _step(low, down=True), _step(high, down=False)


def _step(value: float, *, down: bool) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    steps = [n * power for n in (1, 2, 5, 10)]
    if down:
        return max(step for step in steps if step <= value * 1.000001)
    return min(step for step in steps if step >= value * 0.999999)


class _Area:
    """Where values lie: a rectangle of the page, and the ends of both axes."""

    def __init__(
        self,
        *,
        left: float,
        right: float,
        top: float,
        bottom: float,
        across: tuple[float, float],
        up: tuple[float, float],
    ) -> None:
        self.left, self.right, self.top, self.bottom = left, right, top, bottom
        self.across, self.up = across, up

    def x(self, value: float) -> float:
        return self.left + 10 + (self.right - self.left - 20) * _part(value, *self.across)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * _part(value, *self.up)


def _part(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)
