"""Text for people: safe on a terminal, as wide as it looks, in colours where they are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

_UNPRINTABLE = re.compile(r"[^ -~]")
_JOINER = "\u200d"  # emoji are joined by it
_ELLIPSIS = "…"
_NARROWEST = 8
_NONE: frozenset[int] = frozenset()


class Tone(StrEnum):
    """What a piece of text means; the colours are the terminal's own."""

    PLAIN = ""
    STRONG = "1"
    FAINT = "2"
    GOOD = "32"
    WARN = "33"
    BAD = "31"
    NAME = "36"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a line."""

    text: str
    tone: Tone = Tone.PLAIN


Line = Sequence["Piece | str"]


def shown(text: str) -> str:
    r"""`text` with everything that could steer a terminal made visible, on one line.

    Control characters become their pictures (␛, ␊), other invisible ones `\u202e`, and bytes that
    aren't UTF-8 `\xff`.
    """
    return _UNPRINTABLE.sub(_visible, text)


def width(text: str) -> int:
    """How many columns `text` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, columns: int) -> str:
    """`text` cut to `columns`, with an ellipsis where something is missing."""
    if width(text) <= columns:
        return text
    kept = text[: max(columns - 1, 0)]
    while kept and width(kept) > columns - 1:
        kept = kept[:-1]
    return f"{kept.rstrip()}{_ELLIPSIS}" if columns > 0 else ""


def pad(text: str, columns: int) -> str:
    """`text` cut or filled to exactly `columns`."""
    cut = fit(text, columns)
    return cut + " " * (columns - width(cut))


def wrap(text: str, columns: int) -> list[str]:
    """`text` in lines of at most `columns`, broken between words where there are any."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width(lines[-1]) + 1 + width(word) <= columns:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [fit(line, columns) for line in lines] or [""]


def row(*cells: Piece | str) -> list[Piece | str]:
    """Cells of a table's row."""
    return list(cells)


def table(
    rows: Iterable[Sequence[Piece | str]],
    *,
    columns: int,
    gap: int = 2,
    whole: frozenset[int] = _NONE,
) -> list[Line]:
    """Rows as lines of aligned columns; the widest column gives way where they don't fit.

    Args:
        whole: columns that are never cut, as what is in them is copied.
    """
    cells = [[piece if isinstance(piece, Piece) else Piece(piece) for piece in row] for row in rows]
    shown_rows = [[Piece(shown(piece.text), piece.tone) for piece in row] for row in cells]
    count = max((len(row) for row in shown_rows), default=0)
    widths = [
        max((width(row[n].text) for row in shown_rows if n < len(row)), default=0)
        for n in range(count)
    ]
    givers = [n for n in range(count) if n not in whole]
    while sum(widths) + gap * (count - 1) > columns and givers:
        widest = max(givers, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return [_row(row, widths, gap=gap) for row in shown_rows]


def _row(row: Sequence[Piece], widths: Sequence[int], *, gap: int) -> Line:
    line: list[Piece] = []
    for n, piece in enumerate(row):
        last = n == len(row) - 1
        text = fit(piece.text, widths[n]) if last else pad(piece.text, widths[n])
        line.append(Piece(text, piece.tone))
        if not last:
            line.append(Piece(" " * gap))
    return line


def painted(line: Line, *, colour: bool) -> str:
    """A line as it is written, without what is invisible at its end."""
    pieces = [piece if isinstance(piece, Piece) else Piece(piece) for piece in line]
    if not colour:
        return "".join(shown(piece.text) for piece in pieces).rstrip()
    return "".join(
        f"\x1b[{piece.tone}m{shown(piece.text)}\x1b[0m" if piece.tone else shown(piece.text)
        for piece in pieces
    )


def _visible(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character.isprintable() or character == _JOINER:
        return character
    if code < 0x20:  # noqa: PLR2004 - the C0 controls have pictures, one for one
        return chr(0x2400 + code)
    if code == 0x7F:  # noqa: PLR2004
        return "\u2421"
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - a byte, as surrogateescape decodes it
        return f"\\x{code - 0xDC00:02x}"
    return " " if character.isspace() else f"\\u{code:04x}"
