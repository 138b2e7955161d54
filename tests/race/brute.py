"""Which paths a scope covers, by trying every path of a small world: nothing of the product is asked.

The world has seven names and four levels. It is large enough that any two scopes of the arena that
share a path at all share one of these (a test says so), and a set of paths is the bits of a number.
"""

from __future__ import annotations

from functools import cache
from itertools import product

NAMES = ("a", "b", "c", "ab", "A", "1.py", "2.md")
LEVELS = 4
PATHS = tuple(path for level in range(1, LEVELS + 1) for path in product(NAMES, repeat=level))


@cache
def paths_of(text: str, *, fold: bool = False) -> int:
    """The paths that the scope `text` covers; `fold` where the repository takes A for a."""
    wanted = text.lower() if fold else text
    return sum(1 << place for place, path in enumerate(PATHS) if covers(wanted, path))


def covers(text: str, path: tuple[str, ...]) -> bool:
    """Whether the path is matched or lies below what is; a glob for files has nothing below it."""
    if text == ".":
        return True
    pattern = tuple(text.split("/"))
    if _is_for_files(pattern[-1]):
        return _matches(pattern, path)
    return any(_matches(pattern, path[:level]) for level in range(1, len(path) + 1))


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_matches(pattern[1:], path[passed:]) for passed in range(len(path) + 1))
    return bool(path) and _spells(pattern[0], path[0]) and _matches(pattern[1:], path[1:])


def _spells(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(_spells(pattern[1:], name[passed:]) for passed in range(len(name) + 1))
    return bool(name) and pattern[0] in {"?", name[0]} and _spells(pattern[1:], name[1:])


def _is_for_files(last: str) -> bool:
    stem, dot, extension = last.rpartition(".")
    return bool(dot and extension) and extension[0] not in "*?" and ("*" in stem or "?" in stem)
