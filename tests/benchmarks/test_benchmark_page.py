"""The page of a run: readable whatever the figures and names are."""

from __future__ import annotations

import copy
import json
import math
import re
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from drawing import DARK, LIGHT, width_of
from page import draw, verdict

DOCS = Path(__file__).resolve().parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
REFUSED = {"completion": False, "renewal": False}
TAKEN = {"completion": True, "renewal": True}

Box = tuple[float, float, float, float]


def contestant(name: str, one: float | None, batch: float | None, **more: Any) -> dict[str, Any]:
    told = {"name": name, "version": "1.2.3", "kind": "peer", "note": "", "stale": TAKEN, **more}
    for mode, ratio in (("one", one), ("batch", batch)):
        if ratio is not None:
            told[mode] = {"ratio": ratio, "per_s": ratio * 2_000, "ratio_rounds": [ratio]}
    return told


def series(name: str, *points: tuple[float, float]) -> dict[str, Any]:
    shown = [list(point) for point in points]
    return {"name": name, "points": shown, "exponent": 0.012, "largest_to_smallest": 1.05}


def a_run() -> dict[str, Any]:
    section = {
        "engine": "PostgreSQL 18.4",
        "raw_per_s": {"one": 2012.3, "batch": 30211.1},
        "absent": {"gone": "not installed: npm is not on PATH"},
        "contestants": [
            contestant("Lessor", 0.33, 0.22, kind="lessor", stale=REFUSED),
            contestant("Lessor, with a path", 0.27, 0.12, kind="lessor", stale=REFUSED),
            contestant("fast", 1.9, 1.08),
            contestant("slow", 0.0004, None, stale={"completion": None, "renewal": None}),
        ],
    }
    curve = {
        "x": "stored tasks",
        "y": "ms a claim, median",
        "series": [
            series("SQLite", *((10.0**k, 1.2 + k / 20) for k in range(3, 8))),
            series("PostgreSQL", *((10.0**k, 1.9 + k / 50) for k in range(3, 8))),
        ],
    }
    workers = [(2.0**k, 300 * 1.4**k) for k in range(7)]
    made = dict.fromkeys(("lessor", "postgres", "sqlite", "git", "python", "system"), "1.2.3")
    return {
        "made": {
            **made,
            "date": "2026-01-02",
            "size": "small",
            "rounds": 3,
            "tasks": 600,
            "cores": 2,
            "load": [0.1, 2.5],
        },
        "peers": {"postgres": section, "sqlite": copy.deepcopy(section)},
        "curves": [
            curve,
            {"x": "workers", "y": "tasks a second", "series": [series("bare SQL", *workers)]},
            {"x": "branches", "y": "s", "series": [series("waited", (100, 0.1), (10_000, 9.7))]},
        ],
    }


def shown(text: ET.Element) -> str:
    return "".join(text.itertext())


def texts(page: str) -> list[str]:
    return [shown(text) for text in ET.fromstring(page).iter(f"{SVG}text")]


def box(text: ET.Element) -> Box:
    """About what a text covers, in a font of usual width."""
    size = float(text.attrib["font-size"])
    width = 0.9 * width_of(text.text or "", size)
    for beside in text:
        width += float(beside.attrib["dx"])
        width += 0.9 * width_of(beside.text or "", float(beside.attrib["font-size"]))
    part = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.attrib.get("text-anchor", "start")]
    left = float(text.attrib["x"]) - part * width
    bottom = float(text.attrib["y"])
    return left, bottom - 0.75 * size, left + width, bottom + 0.2 * size


def boxes(page: str) -> dict[str, Box]:
    found = ET.fromstring(page).iter(f"{SVG}text")
    return {f"{n} {shown(text)}": box(text) for n, text in enumerate(found)}


def meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def broken(page: str) -> list[Any]:
    """Texts that lie over one another or over the page's edge, and bars that lie over text."""
    root = ET.fromstring(page)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    found = boxes(page)
    wrong: list[Any] = [
        (a, b) for (a, one), (b, other) in combinations(found.items(), 2) if meet(one, other)
    ]
    wrong += [a for a, b in found.items() if b[0] < 0 or b[1] < 0 or b[2] > width or b[3] > height]
    for bar in root.findall(f"{SVG}rect[@rx]"):
        left, top = float(bar.attrib["x"]), float(bar.attrib["y"])
        right = left + float(bar.attrib["width"])
        covered = (left, top, right, top + float(bar.attrib["height"]))
        wrong += [(a, "bar") for a, b in found.items() if meet(b, covered)]
    return wrong


def test_nothing_lies_over_a_text() -> None:
    assert broken(draw(a_run())) == []


def test_nothing_lies_over_a_text_where_names_are_long_and_figures_extreme() -> None:
    run = a_run()
    for one in run["peers"]["postgres"]["contestants"]:
        one["name"] += " with a name that goes on and on"
        one["version"] = "2026.12.31rc1.post2+local.build"
    run["peers"]["postgres"]["absent"] = {f"gone {n}": "because " * 60 for n in range(5)}
    run["peers"]["postgres"]["raw_per_s"] = {"one": 9_999_999.4, "batch": 0.004}
    contestants = run["peers"]["postgres"]["contestants"]
    contestants[0]["one"] = {"ratio": 4321.0, "per_s": 98_765_432.1}
    contestants[1]["one"] = {"ratio": 0.00001234, "per_s": 0.00004}
    for curve in run["curves"]:
        curve["x"] = curve["y"] = "a measure of something " * 9
        for one in curve["series"]:
            one["name"] *= 12
            one["exponent"], one["largest_to_smallest"] = -12.3456, 123_456_789.1
    run["curves"][0]["series"][0]["points"] = [[1, 1e-9], [2, 1e12]]
    assert broken(draw(run)) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0, None])
def test_a_figure_that_is_none_is_never_drawn(value: float | None) -> None:
    run = a_run()
    first = run["peers"]["postgres"]["contestants"][2]
    first["one"] = {"ratio": value, "per_s": value}
    run["peers"]["postgres"]["raw_per_s"]["batch"] = value
    run["curves"][0]["series"][0]["points"][1][1] = value
    run["curves"][1]["series"][0] |= {"exponent": None, "largest_to_smallest": None}
    run["made"]["load"] = [value]
    page = draw(run)
    outside = re.sub(r"<style>.*</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf|none)\b", outside, re.IGNORECASE)
    assert broken(page) == []


def test_a_run_of_one_part_is_a_page() -> None:
    for part in ("peers", "curves"):
        run = a_run()
        del run[part]
        assert broken(draw(run)) == []
    assert broken(draw({"made": a_run()["made"]})) == []


def test_text_is_never_markup() -> None:
    run = a_run()
    evil = "<script>&\"'</text>\x1b\x00\n"
    run["peers"]["sqlite"]["contestants"][2]["name"] = evil
    run["peers"]["sqlite"]["absent"] = {evil: evil}
    run["made"]["system"] = evil
    run["curves"][0]["y"] = evil
    page = draw(run)
    assert "<script" not in page
    assert "<script>&\"'</text>   " in texts(page)


def test_who_refuses_an_old_holder_is_told_apart() -> None:
    assert verdict(REFUSED) == ("yes", "is refused")
    taken = [
        TAKEN,
        {"completion": False, "renewal": True},
        {**REFUSED, "without_token": True},
        {"completion": None, "renewal": False, "granted_beside_a_live_holder": True},
    ]
    assert [verdict(one)[0] for one in taken] == ["no"] * 4
    assert verdict({"completion": None, "renewal": None})[0] == "soft"
    assert verdict({})[0] == "soft"


def test_the_page_says_when_and_on_what_it_was_made() -> None:
    footer = " ".join(texts(draw(a_run()))[-3:])
    for said in ("2026-01-02", "small", "2 cores", "load 0.1 to 2.5", "PostgreSQL 1.2.3"):
        assert said in footer


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_its_background(colours: dict[str, str]) -> None:
    ground = luminance(colours["page"])
    for kind, least in (("ink", 7.0), ("soft", 4.5), ("own", 3.0), ("yes", 3.0), ("no", 3.0)):
        other = luminance(colours[kind])
        contrast = (max(ground, other) + 0.05) / (min(ground, other) + 0.05)
        assert contrast >= least, (kind, contrast)


def test_the_page_in_the_documentation_is_drawn_from_the_figures_beside_it() -> None:
    run = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))
    page = (DOCS / "benchmarks.svg").read_text(encoding="utf-8")
    assert page == draw(run)
    assert broken(page) == []
