"""What a command says: one record or several, for people or for programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TextIO

from lessor.cli.text import Line, Tone, painted

Record = Mapping[str, Any]

NARROW = 80
_RAW = re.compile(r"[^ -~]")
_HIGHEST_SHORT = 0xFFFF
_PIECE = 4_096
_PLAINER = str.maketrans({"…": "...", "·": "|", "−": "-", "–": "-", "✓": "+"})  # noqa: RUF001


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"  # JSON is YAML 1.2: the same text serves both


def columns() -> int:
    """How wide lines may be: the terminal's width, 80 anywhere else."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return max(shutil.get_terminal_size((NARROW, 24)).columns, 40)
    return NARROW


def wants_colour(stream: TextIO) -> bool:
    """Whether to write colours: NO_COLOR and TERM=dumb say no, FORCE_COLOR yes, else a terminal."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def write_lines(lines: Iterable[Line], stream: TextIO | None = None) -> None:
    """Write lines for people, to standard output unless told otherwise."""
    target = stream or sys.stdout
    colour = wants_colour(target)
    text = "".join(f"{painted(line, colour=colour)}\n" for line in lines)
    _write(_written(text, target.encoding or "utf-8"), target)


def _written(text: str, encoding: str) -> str:
    """`text` with plainer signs for those of our own that a terminal's encoding doesn't have."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAINER)
    return text


def write_record(record: Record, form: Format) -> None:
    """Write one record for programs."""
    write_json(record, indent=None if form is Format.JSONL else 2)


def write_records(records: Sequence[Record], form: Format) -> None:
    """Write records for programs: a list, or one a line."""
    if form is Format.JSONL:
        for record in records:
            write_json(record, indent=None)
    else:
        write_json(records, indent=2)


def write_json(value: object, *, indent: int | None, stream: TextIO | None = None) -> None:
    """Write a value as JSON that is readable and can't steer a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)
    _write(_escaped(text) + "\n", stream or sys.stdout)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _escaped(text: str) -> str:
    # Only inside strings can such characters be: JSON's own line ends are the one exception.
    return _RAW.sub(
        lambda m: (
            m[0]
            if m[0] == "\n" or m[0].isprintable() or ord(m[0]) > _HIGHEST_SHORT
            else f"\\u{ord(m[0]):04x}"
        ),
        text,
    )


def _write(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    safe = text.encode(encoding, "backslashreplace").decode(encoding)
    # Piece by piece: when a reader goes away in the middle of one large write, Python 3.11 takes
    # the part that got through for the whole, and nobody hears of the closed pipe.
    stream.writelines(safe[start : start + _PIECE] for start in range(0, len(safe), _PIECE))
    stream.flush()


__all__ = [
    "Format",
    "Line",
    "Record",
    "Tone",
    "columns",
    "wants_colour",
    "write_json",
    "write_lines",
    "write_record",
    "write_records",
]
