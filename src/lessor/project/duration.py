"""Durations as people write them."""

from __future__ import annotations

import re

from lessor.errors import InvalidError

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
LONGEST_MS = 10 * 366 * _UNITS["d"]

_PART = re.compile(r"([0-9]{1,12})(ms|[smhdw])")
_WHOLE = re.compile(r"(?:[0-9]{1,12}(?:ms|[smhdw]))+|[0-9]{1,12}")


def parse_duration(text: str) -> int:
    """Milliseconds of `90s`, `20m`, `1h30m`, `4h`, `2d`; a bare number counts seconds.

    Raises:
        InvalidError: it is no duration, or one of more than ten years.
    """
    plain = text.strip().lower()
    if not _WHOLE.fullmatch(plain):
        raise InvalidError(
            f"{text[:40]!r} is no duration.",
            next_step="Write it as 90s, 20m, 4h or 1h30m.",
        )
    parts = _PART.findall(plain) or [(plain, "s")]
    milliseconds = sum(int(number) * _UNITS[unit] for number, unit in parts)
    if milliseconds > LONGEST_MS:
        raise InvalidError(
            f"{text[:40]!r} is longer than ten years.", next_step="Give a shorter time."
        )
    return milliseconds
