"""The files of the simulated repositories, and which of them each scope covers.

Overlap is decided here by looking at files, never by the product: two scopes overlap where they
share one. There are enough files that whatever could overlap does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

_FOLDERS = ("a", "a/x", "a/x/deep", "a/y", "a-2", "b", "b/x", "c", "c/z", "d")
_NAMES = ("one.py", "two.md")
FILES: tuple[str, ...] = (*_NAMES, *(f"{folder}/{name}" for folder in _FOLDERS for name in _NAMES))
"""What agents write."""

_PATHS = (*FILES, *(f"{file}/{name}" for file in FILES for name in _NAMES))
"""A path that is a file today may be a folder in another branch: a scope covers what lies below, too."""

NARROW = ("a/x", "a/y", "a-2", "b/x", "c/z", "d", "a/one.py", "b/two.md", "c/one.py", "one.py")
WIDE = ("a", "b", "c", "a/x/deep")
GLOBS = ("**/*.py", "a/*", "a/**/*.md", "b/**", "*.md")
SCOPES = (*NARROW, *WIDE, *GLOBS, ".")


@cache
def covers(text: str) -> int:
    """The files that a scope covers, as bits."""
    found = 0
    for n, file in enumerate(_PATHS):
        if _covered(text, file):
            found |= 1 << n
    return found


def clash(one: str, one_mode: str, other: str, other_mode: str) -> bool:
    """Whether two scopes can't be held side by side."""
    return "w" in (one_mode, other_mode) and bool(covers(one) & covers(other))


def names(bits: int) -> Iterable[str]:
    """The files of some bits."""
    return (file for n, file in enumerate(_PATHS) if bits >> n & 1)


def _covered(text: str, file: str) -> bool:
    if text in {".", ""}:
        return True
    if "*" not in text:
        return file == text or file.startswith(f"{text}/")
    pattern, parts = text.split("/"), file.split("/")
    names_files = "*" in pattern[-1] and "." in pattern[-1]
    shortest = len(parts) if names_files else 1
    return any(_matches(pattern, parts[:n]) for n in range(shortest, len(parts) + 1))


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """A path against a glob: `**` is any number of folders, also none, `*` anything in one name."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(pattern[1:], parts[n:]) for n in range(len(parts) + 1))
    return bool(parts) and _within(pattern[0], parts[0]) and _matches(pattern[1:], parts[1:])


def _within(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return pattern == name
    before, after = pattern.split("*", 1)
    return name.startswith(before) and name.endswith(after) and len(name) >= len(pattern) - 1
