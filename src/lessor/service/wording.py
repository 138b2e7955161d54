"""Texts that come in from outside: checked for shape and size, never for meaning."""

from __future__ import annotations

from typing import Any

from lessor.errors import InvalidError

LONGEST_TITLE = 500
LONGEST_PROMPT = 4 * 1024 * 1024
LONGEST_NAME = 200
LONGEST_TEXT = 64 * 1024
MOST_ROWS = 100_000


def check_text(value: object, what: str, *, longest: int, empty: bool = True) -> str:
    """`value` as text that every store can keep and give back.

    Raises:
        InvalidError: not text, empty where that isn't allowed, too long, with a NUL or half a
            surrogate pair (PostgreSQL and UTF-8 can't keep them).
    """
    if not isinstance(value, str):
        raise InvalidError(
            f"The {what} has to be text, not {type(value).__name__}.",
            next_step="Give text.",
            what=what,
        )
    if not empty and not value.strip():
        raise InvalidError(f"The {what} is empty.", next_step=f"Say a {what}.", what=what)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidError(
            f"The {what} isn't valid Unicode.", next_step="Send it as UTF-8.", what=what
        ) from None
    if size > longest:
        raise InvalidError(
            f"The {what} has {size} bytes; {longest} are allowed.",
            next_step="Shorten it, or name a file in the repository.",
            what=what,
            size=size,
            longest=longest,
        )
    if "\0" in value:
        raise InvalidError(f"The {what} has a NUL character.", next_step="Take it out.", what=what)
    return value


def check_name(value: object, what: str) -> str:
    """A short name: one line, no control characters.

    Raises:
        InvalidError: see `check_text`; also for control characters and surrounding blanks.
    """
    text = check_text(value, what, longest=LONGEST_NAME, empty=False)
    if not text.isprintable() or text != text.strip():
        raise InvalidError(
            f"The {what} {text!r} has control characters or blanks around it.",
            next_step="Use printable characters on one line.",
            what=what,
        )
    return text


def check_title(value: object) -> str:
    """A title: one line of at most 500 bytes."""
    text = check_text(value, "title", longest=LONGEST_TITLE, empty=False)
    if not text.isprintable():
        raise InvalidError(
            "The title has control characters or several lines.",
            next_step="Put the details into the prompt.",
            what="title",
        )
    return text


def check_count(value: object, what: str, *, low: int, high: int) -> int:
    """A whole number between `low` and `high`; InvalidError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidError(
            f"The {what} has to be a whole number from {low} to {high}, not {str(value)[:40]!r}.",
            next_step="Give a number in that range.",
            what=what,
            low=low,
            high=high,
        )
    return value


def check_duration(value: object, what: str, *, low_ms: int, high_ms: int) -> int:
    """Milliseconds between the bounds; InvalidError otherwise."""
    return check_count(value, f"{what} in milliseconds", low=low_ms, high=high_ms)


def check_flag(value: object, what: str) -> bool:
    """True or False; InvalidError otherwise."""
    if not isinstance(value, bool):
        raise InvalidError(
            f"{what} has to be true or false, not {type(value).__name__}.",
            next_step="Give one of them.",
            what=what,
        )
    return value


def check_note(value: object, what: str) -> str:
    """A reason, an actor, a proof: any text of at most 64 KiB, none at all included."""
    return check_text(value, what, longest=LONGEST_TEXT)


def check_several(value: object, what: str, *, most: int) -> list[Any]:
    """A list or tuple of at most `most`; InvalidError otherwise. A text is no list of letters."""
    if not isinstance(value, list | tuple) or len(value) > most:
        raise InvalidError(
            f"{what} has to be a list of at most {most}.",
            next_step="Give a shorter list.",
            what=what,
        )
    return list(value)


def check_page(value: object) -> int:
    """How many rows an answer may have."""
    return check_count(value, "number asked for", low=1, high=MOST_ROWS)
