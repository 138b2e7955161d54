"""Scopes and globs: refused or parsed, the same again, and overlapping exactly when they share a path.

The input is lines. The first byte chooses the repository's rules; where it is `=`, the two lines behind it become patterns
over few letters, whose overlap is compared with listed paths.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from fuzz.promise import asked, text
from lessor.model.path import path_key
from lessor.model.scope import (
    PathRules,
    Scope,
    covers,
    merge_scopes,
    natural_scope,
    overlaps,
    parse_scope,
    parse_scopes,
)

# Patterns of at most two segments of at most two symbols: what two of them share is among these paths.
_SEGMENTS = [
    *("".join(s) for n in (1, 2) for s in product("ab*?", repeat=n)),
    *("*.a", "?.a", "*.b", "a.b", "[a]", "{a}"),
]
_NAMES = ["".join(n) for length in (1, 2) for n in product("ab", repeat=length)]
_NAMES += ["a.a", "b.a", "a.b", "b.b", ".a", ".b", "[a]", "{a}"]
PATHS = ["/".join(p) for depth in (1, 2, 3) for p in product(_NAMES, repeat=depth)]


def one(data: bytes) -> None:
    """One input."""
    if data[:1] == b"=":
        _compare(data[1:])
        return
    kind = data[0] if data else 0
    rules = PathRules(fold_case=bool(kind & 1), normalize=not kind & 2)
    lines = text(data[1:]).split("\n")
    scopes = [scope for line in lines if (scope := _scope(line, rules))]
    for a in scopes[:8]:
        assert overlaps(a, a)
        for b in scopes[:8]:
            assert overlaps(a, b) == overlaps(b, a)
    for line in lines[:8]:
        asked(lambda line=line: path_key(line, rules=rules))
        asked(lambda line=line: natural_scope(line, packages={"a", "a/b", lines[0]}))
        for scope in scopes[:4]:
            asked(lambda line=line, scope=scope: covers(scope, line, rules=rules))
    merged = merge_scopes(scopes)
    assert merge_scopes(merged) == merged
    asked(lambda: parse_scopes(lines, rules=rules))


def _scope(line: str, rules: PathRules) -> Scope | None:
    scope = asked(lambda: parse_scope(line, rules=rules))
    if scope is not None:
        again = parse_scope(scope.text, rules=rules)
        assert (again.key, again.pattern) == (scope.key, scope.pattern)
    return scope


def _compare(data: bytes) -> None:
    numbers = [byte % (len(_SEGMENTS) + 1) for byte in (data + bytes(4))[:4]]
    pair = []
    for first, second in (numbers[:2], numbers[2:]):
        segments = [_SEGMENTS[n - 1] for n in (first, second) if n]
        pair.append("/".join(segments) or ".")
    shared = _covered(pair[0]) & _covered(pair[1])
    assert overlaps(parse_scope(pair[0]), parse_scope(pair[1])) == bool(shared), pair


@cache
def _covered(pattern: str) -> int:
    """The listed paths that a pattern covers, as the bits of a number."""
    scope = parse_scope(pattern)
    return sum(1 << place for place, path in enumerate(PATHS) if covers(scope, path))
