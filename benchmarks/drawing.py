"""Shapes and text of an SVG page that reads on light and on dark backgrounds."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
WIDEST = 0.62
"""Width of a letter by its size, in the widest of these fonts."""
LIGHT = {
    "page": "#ffffff",
    "ink": "#1f2328",
    "soft": "#59636e",
    "rule": "#d8dee4",
    "own": "#0f766e",
    "own2": "#5eaaa3",
    "other": "#9aa7b5",
    "limit": "#b45309",
    "yes": "#15803d",
    "no": "#b42318",
}
DARK = {
    "page": "#0d1117",
    "ink": "#e6edf3",
    "soft": "#9198a1",
    "rule": "#30363d",
    "own": "#2dd4bf",
    "own2": "#1f8f83",
    "other": "#66758a",
    "limit": "#f0a04b",
    "yes": "#4ade80",
    "no": "#ff8577",
}
"""What each class is drawn in."""


def width_of(text: str, size: float) -> float:
    """About how wide a text is; more in most fonts than it will be."""
    return len(text) * size * WIDEST


def cut(text: str, room: float, size: float) -> str:
    """`text`, shortened to what fits."""
    letters = max(1, int(room / (size * WIDEST)))
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


class Drawing:
    """A page of a width; its height is what was drawn. Text is data: it is escaped, never markup."""

    def __init__(self, width: int, title: str, told: str) -> None:
        self.width = width
        self._body: list[ET.Element] = []
        self._title, self._told = title, told

    def text(
        self,
        x: float,
        y: float,
        said: str,
        *,
        size: float = 13,
        kind: str = "ink",
        anchor: str = "start",
        bold: bool = False,
        after: str = "",
    ) -> None:
        """`said` with its baseline at y, and `after` behind it in smaller, softer letters."""
        attributes = {"x": _number(x), "y": _number(y), "font-size": _number(size), "class": kind}
        if anchor != "start":
            attributes["text-anchor"] = anchor
        if bold:
            attributes["font-weight"] = "600"
        drawn = self._add("text", attributes)
        drawn.text = _printable(said)
        if after:
            small = {"dx": "6", "font-size": _number(size - 2), "class": "soft"}
            beside = ET.SubElement(drawn, "tspan", {**small, "font-weight": "400"})
            beside.text = _printable(after)

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        place = {"x": _number(x), "y": _number(y), "rx": "2", "class": kind}
        self._add("rect", {**place, "width": _number(width), "height": _number(height)})

    def line(self, points: list[tuple[float, float]], kind: str, *, dashed: bool = False) -> None:
        drawn = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        attributes = {"points": drawn, "class": f"line {kind}-line"}
        if dashed:
            attributes["stroke-dasharray"] = "3 3"
        self._add("polyline", attributes)

    def dot(self, x: float, y: float, kind: str, radius: float = 3) -> None:
        place = {"cx": _number(x), "cy": _number(y), "r": _number(radius)}
        self._add("circle", {**place, "class": kind})

    def svg(self, height: float) -> str:
        size = {"width": str(self.width), "height": _number(height)}
        root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {self.width} {_number(height)}",
                **size,
                "role": "img",
                "aria-labelledby": "title told",
                "font-family": FONT,
            },
        )
        for name, said in (("title", self._title), ("desc", self._told)):
            node = ET.SubElement(root, name, {"id": "told" if name == "desc" else name})
            node.text = said
        ET.SubElement(root, "style").text = _style()
        ET.SubElement(root, "rect", {**size, "class": "page"})
        root.extend(self._body)
        for node in root:
            node.tail = "\n"
        return ET.tostring(root, encoding="unicode") + "\n"

    def _add(self, name: str, attributes: dict[str, str]) -> ET.Element:
        self._body.append(ET.Element(name, attributes))
        return self._body[-1]


def _printable(said: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in said)


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place on a page.")
    return f"{value:.1f}".removesuffix(".0")


def _style() -> str:
    return (
        "\n.line{fill:none;stroke-width:1.6;stroke-linejoin:round}\n"
        + _rules(LIGHT)
        + "@media (prefers-color-scheme: dark){\n"
        + _rules(DARK)
        + "}\n"
    )


def _rules(colours: dict[str, str]) -> str:
    return "".join(
        f".{kind}{{fill:{colour}}}.{kind}-line{{stroke:{colour}}}\n"
        for kind, colour in colours.items()
    )
