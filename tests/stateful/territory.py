"""Which paths a scope covers, by brute force over a small world: the tests' own idea of overlap.

Nothing of the product's is used. A scope is the set of the world's paths that it covers, and two
scopes overlap when the sets meet. The world is closed: for every two scopes of `SCOPES` that share
any path at all, one that they share is in it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

NAMES = ("a", "b", "x.py", "z.py", "y.ts")
DEPTH = 4
WORLD = tuple(names for depth in range(1, DEPTH + 1) for names in product(NAMES, repeat=depth))

NARROW = ("a/a", "a/b", "b/x.py", "a/x.py", "a/b/y.ts", "x.py")
LITERALS = (".", "a", "b", *NARROW)
GLOBS = ("*.py", "**/*.py", "a/**/*.ts", "?/x.py", "*/b", "**/b", "a/*.*", "**/y.ts")
SCOPES = LITERALS + GLOBS


@lru_cache
def covered(scope: str) -> frozenset[tuple[str, ...]]:
    """The paths of the world that `scope` covers."""
    if scope == ".":
        return frozenset(WORLD)
    wished = scope.split("/")
    files = re.search(r"[*?].*\.[^*?.]+$", wished[-1]) is not None
    return frozenset(
        path
        for path in WORLD
        if any(
            _fits(wished, path[:length])
            for length in ([len(path)] if files else range(1, len(path) + 1))
        )
    )


@lru_cache
def overlap(one: str, other: str) -> bool:
    """Whether some path is in both."""
    return not covered(one).isdisjoint(covered(other))


def _fits(wished: list[str], path: tuple[str, ...]) -> bool:
    if not wished:
        return not path
    if wished[0] == "**":
        return any(_fits(wished[1:], path[n:]) for n in range(len(path) + 1))
    return bool(path) and _name_fits(wished[0], path[0]) and _fits(wished[1:], path[1:])


def _name_fits(wished: str, name: str) -> bool:
    if not wished:
        return not name
    if wished[0] == "*":
        return any(_name_fits(wished[1:], name[n:]) for n in range(len(name) + 1))
    return bool(name) and wished[0] in {"?", name[0]} and _name_fits(wished[1:], name[1:])
