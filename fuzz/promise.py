"""What every parser promises: a value, or one of Lessor's own errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lessor.errors import LessorError

Value = TypeVar("Value")


def asked(parse: Callable[[], Value]) -> Value | None:
    """What `parse` gives; None where it refuses. Any other exception is a find."""
    try:
        return parse()
    except LessorError as refusal:
        assert refusal.code
        assert str(refusal)
        return None


def text(data: bytes) -> str:
    """Bytes as a program meets them: bytes beyond UTF-8 as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def unicode(data: bytes) -> str:
    """Bytes as a file that was read as UTF-8 gives them."""
    return data.decode("utf-8", "replace")
