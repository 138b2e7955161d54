"""One page of a run: bars of Lessor and its peers beside bare SQL, and a small chart for each curve.

Usage: page.py JSON SVG     as benchmarks/bench.py wrote it; draws it again
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from charts import CHART_HEIGHT, chart
from drawing import Drawing, cut

WIDTH, EDGE = 1080, 36
NAMES, COLUMN, BAR, FIGURE = 196, 308, 156, 46
"""Width of the names, of a column of bars with their figures, of its longest bar, of a ratio."""
ROW = 27
SECTIONS = {
    "postgres": "Tasks on PostgreSQL",
    "sqlite": "Tasks on SQLite",
    "paths": "A path, leased and given back, on SQLite",
}
MODES = {"one": "one at a time", "batch": "a hundred at a time"}
READ = (
    "Both axes are logarithmic: a slope is an exponent.",
    "n^0 stays the same whatever the size, n^1 grows",
    "in proportion. Times: the value at the largest",
    "size, divided by that at the smallest.",
)


def draw(run: dict) -> str:
    """The page of a run, as SVG."""
    page = Drawing(
        WIDTH,
        "Lessor beside its peers",
        "Bars: tasks a second as a share of what bare guarded SQL does. Charts: how costs grow.",
    )
    page.text(EDGE, 52, "Lessor beside its peers", size=26, bold=True)
    page.text(
        EDGE,
        76,
        "The same durable work on one server and disk. Bars: tasks a second as a share of bare"
        " guarded SQL, the dashed line. Thin lines: all rounds.",
        kind="soft",
    )
    y = 106.0
    for name, title in SECTIONS.items():
        if run.get("peers", {}).get(name):
            y = _section(page, y, title, run["peers"][name])
    curves = [curve for curve in run.get("curves", ()) if curve["series"]]
    if curves:
        y = _curves(page, y, curves)
    return page.svg(_footer(page, y, run["made"]))


def _section(page: Drawing, top: float, title: str, section: dict) -> float:
    page.line([(EDGE, top), (WIDTH - EDGE, top)], "rule")
    page.text(EDGE, top + 30, title, size=17, bold=True)
    page.text(WIDTH - EDGE, top + 30, section["engine"], kind="soft", anchor="end")
    shown = [one for one in section["contestants"] if any(mode in one for mode in MODES)]
    rows = sorted(shown, key=_rank)
    first = top + 78
    for number, mode in enumerate(MODES):
        left = EDGE + NAMES + number * COLUMN
        limit = section["raw_per_s"].get(mode)
        heading = f"{MODES[mode]}, 1 = {_rate(limit)}" if _usable(limit) else MODES[mode]
        page.text(left, top + 56, heading, size=12, kind="soft")
        longest = max([1.0, *(_ratio(one, mode) for one in rows)])
        mark = left + BAR / longest
        ends = [(mark, first - 14), (mark, first - 14 + ROW * len(rows))]
        page.line(ends, "limit", dashed=True)
        for row, one in enumerate(rows):
            _bar(page, left, first + row * ROW, one, mode, longest)
    last = EDGE + NAMES + 2 * COLUMN
    page.text(last, top + 56, "an old holder that comes late", size=12, kind="soft")
    for row, one in enumerate(rows):
        _named(page, first + row * ROW, one)
        _verdict(page, last, first + row * ROW, one)
    y = first + ROW * len(rows)
    for name, why in section["absent"].items():
        told = cut(f"{name}: {why}", WIDTH - 2 * EDGE, 12)
        page.text(EDGE, y + 2, told, size=12, kind="soft")
        y += 20
    return y + 12


def _rank(one: dict) -> tuple[bool, float]:
    """Lessor first, as it came; then who is fastest one at a time."""
    return (False, 0) if one["kind"] == "lessor" else (True, -_ratio(one, "one"))


def _named(page: Drawing, y: float, one: dict) -> None:
    if one["kind"] == "lessor":
        page.text(EDGE, y + 4, cut(one["name"], NAMES - 8, 13), bold=True)
        return
    version = cut(one["version"], 60, 11)
    page.text(EDGE, y + 4, cut(one["name"], NAMES - 74, 13), after=version)


def _bar(page: Drawing, left: float, y: float, one: dict, mode: str, longest: float) -> None:
    if not _ratio(one, mode):
        page.text(left, y + 4, "no such call", size=12, kind="soft")
        return
    own = one["kind"] == "lessor"
    page.bar(
        left, y - 8, max(2.0, BAR * _ratio(one, mode) / longest), 16, "own" if own else "other"
    )
    rounds = [ratio for ratio in one[mode].get("ratio_rounds", ()) if _usable(ratio)]
    if len(rounds) > 1:  # what goes beyond the longest bar is cut there
        ends = [left + BAR * min(ratio / longest, 1.0) for ratio in (min(rounds), max(rounds))]
        page.line([(ends[0], y), (ends[1], y)], "ink")
    after = left + BAR + 10
    page.text(after + FIGURE, y + 4, _share(_ratio(one, mode)), bold=own, anchor="end")
    if _usable(one[mode].get("per_s")):
        page.text(after + FIGURE + 8, y + 4, _rate(one[mode]["per_s"]), size=11, kind="soft")


def _verdict(page: Drawing, left: float, y: float, one: dict) -> None:
    kind, said = verdict(one.get("stale", {}))
    if kind == "yes":
        page.line([(left, y), (left + 4, y + 4), (left + 11, y - 5)], kind)
    elif kind == "no":
        page.line([(left + 1, y - 5), (left + 10, y + 4)], kind)
        page.line([(left + 1, y + 4), (left + 10, y - 5)], kind)
    else:
        page.line([(left + 1, y), (left + 10, y)], kind)
    page.text(left + 19, y + 4, said, size=12, kind="ink" if kind == "yes" else "soft")


def verdict(stale: dict) -> tuple[str, str]:
    """Whether late writes of an old holder are refused, as a mark and in words."""
    if stale.get("granted_beside_a_live_holder"):
        return "no", "two hold one path at once"
    completion, renewal = stale.get("completion"), stale.get("renewal")
    if completion:
        return "no", "completes all the same"
    if completion is None:
        return "soft", "no lease that could end" if renewal is None else "renewal only"
    if stale.get("without_token"):
        return "no", "refused only with a token"
    return ("no", "renews all the same") if renewal else ("yes", "is refused")


def _curves(page: Drawing, top: float, curves: list[dict]) -> float:
    page.line([(EDGE, top), (WIDTH - EDGE, top)], "rule")
    page.text(EDGE, top + 30, "How costs grow", size=17, bold=True)
    across, gap = 3, 30
    width = (WIDTH - 2 * EDGE - (across - 1) * gap) / across
    places = [
        (EDGE + n % across * (width + gap), top + 46 + n // across * CHART_HEIGHT)
        for n in range(len(curves) + 1)
    ]
    for (x, y), curve in zip(places, curves, strict=False):
        chart(page, x, y, width, curve)
    x, y = places[len(curves)]
    page.text(x, y + 22, "How to read them", bold=True)
    for number, line in enumerate(READ):
        page.text(x, y + 44 + 18 * number, line, size=12, kind="soft")
    return places[-1][1] + CHART_HEIGHT + 6


def _footer(page: Drawing, top: float, made: dict) -> float:
    page.line([(EDGE, top), (WIDTH - EDGE, top)], "rule")
    load = " to ".join(f"{value:.1f}" for value in made.get("load", ()) if _usable(value))
    lines = (
        (
            f"{made['date']} · a {made['size']} run of {made['rounds']} rounds of {made['tasks']} tasks,"
            f" medians · {made['cores']} cores, load {load or 'unknown'}"
        ),
        (
            f"Lessor {made['lessor']} · PostgreSQL {made['postgres']} · SQLite {made['sqlite']}"
            f" · git {made['git']} · Python {made['python']} · {made['system']}"
        ),
        (
            "Durable everywhere: fsync, synchronous_commit and full_page_writes on; synchronous=FULL."
            " Bare SQL by pgbench, and by apsw on SQLite."
        ),
    )
    for number, line in enumerate(lines):
        shown = cut(line, WIDTH - 2 * EDGE, 12)
        page.text(EDGE, top + 26 + 19 * number, shown, size=12, kind="soft")
    return top + 26 + 19 * len(lines) + 10


def _ratio(one: dict, mode: str) -> float:
    value = one.get(mode, {}).get("ratio")
    return float(value) if _usable(value) else 0.0


def _usable(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0


def _share(ratio: float) -> str:
    """A ratio with as many decimals as say something."""
    if ratio >= 0.095:
        return f"{ratio:.2f}"
    return f"{ratio:.2g}" if ratio >= 0.0095 else f"{ratio:.{-math.floor(math.log10(ratio))}f}"


def _rate(per_s: float) -> str:
    """Tasks a second with two or three figures that say something."""
    if per_s < 10:
        return f"{per_s:.1f}/s"
    digits = 10 ** max(0, int(math.log10(per_s)) - 2)
    return f"{round(per_s / digits) * digits:,}/s"


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(draw(json.loads(source.read_text(encoding="utf-8"))), encoding="utf-8")
