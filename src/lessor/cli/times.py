"""Time as people read it and as programs do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lessor.errors import InvalidError

_SECOND = 1_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def instant(milliseconds: int) -> str:
    """RFC 3339 in UTC: `2026-06-22T12:07:00Z`."""
    moment = datetime.fromtimestamp(milliseconds // 1_000, tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def clock_time(milliseconds: int, *, now: int) -> str:
    """A moment in the person's own zone: `12:04`, with the date where it isn't today."""
    moment = _local(milliseconds)
    today = _local(now).date()
    if moment.date() == today:
        return moment.strftime("%H:%M")
    return moment.strftime("%d %b %H:%M" if moment.year == today.year else "%Y-%m-%d %H:%M")


def lapse(milliseconds: int) -> str:
    """A stretch of time in its one or two largest units: `45 s`, `2 m 10 s`, `3 h 40 m`, `2 d`."""
    left = max(milliseconds, 0)
    if left < _MINUTE:
        return f"{left // _SECOND} s"
    if left < _HOUR:
        return _two(left // _MINUTE, "m", left % _MINUTE // _SECOND, "s")
    if left < _DAY:
        return _two(left // _HOUR, "h", left % _HOUR // _MINUTE, "m")
    return _two(left // _DAY, "d", left % _DAY // _HOUR, "h")


def stopwatch(milliseconds: int) -> str:
    """How long something has run: `0:04`, `2:10`, `1:02:10`."""
    seconds = max(milliseconds, 0) // _SECOND
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f"{hours}:{minutes:02}:{seconds % 60:02}"
    return f"{minutes}:{seconds % 60:02}"


def parse_instant(text: str, *, now: int) -> datetime:
    """An instant as people write it: `14:30` (the next one), or ISO 8601; local without a zone.

    Raises:
        InvalidError: it is no instant.
    """
    try:
        if "-" not in text:
            today = _local(now)
            time = datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 - a time of day
            moment = datetime.combine(today.date(), time, tzinfo=today.tzinfo)
            return moment if moment > today else moment + timedelta(days=1)
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise InvalidError(
            f"{text[:40]!r} is no time.",
            next_step="Write it as 14:30 or 2026-06-22T14:30.",
        ) from error


def _local(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1_000, tz=UTC).astimezone()


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large} {unit} {small} {small_unit}" if small else f"{large} {unit}"
