"""Scopes: the paths that a lease covers, and whether two of them can't be held side by side.

A scope is a glob or a literal path, which is the path and all below it: only git knows whether it
is a directory. All scopes that are compared belong to one repository and were parsed with its
rules. Two scopes overlap when some path is in both; it is decided exactly, by a prefix test for
literals and on automata for globs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lessor.errors import ScopeInvalidError
from lessor.model.glob import compile_glob, is_wild, normal_glob
from lessor.model.path import (
    DEFAULT_RULES,
    PathRules,
    fold,
    key_segments,
    path_key,
    path_segments,
    scope_segments,
    segments_key,
)

__all__ = [
    "MAX_SCOPES",
    "ROOT",
    "Mode",
    "PathRules",
    "Scope",
    "conflicts",
    "covers",
    "merge_scopes",
    "natural_scope",
    "overlaps",
    "parse_scope",
    "parse_scopes",
    "path_key",
]

MAX_SCOPES = 10_000
ROOT = "."

_LITERAL = "path:"
_GLOB = "glob:"


class Mode(StrEnum):
    """What a scope is held for: readers share it, a writer has it alone."""

    READ = "r"
    WRITE = "w"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A set of paths of one repository, held for reading or writing.

    Attributes:
        text: as a person reads it, "." for the root; parsing it again gives the same scope.
        key: the literal path's key; for a glob the key of the directories before its first
            wildcard, above everything that it covers.
        mode: what it is held for.
        pattern: the glob in normal form, folded by the repository's rules; None for a literal.
    """

    text: str
    key: str
    mode: Mode
    pattern: str | None

    @property
    def key_end(self) -> str:
        """The end of the range of keys at and below `key`, exclusive: `0` follows `/`."""
        return self.key[:-1] + "0"

    @property
    def ancestors(self) -> tuple[str, ...]:
        """The keys of all directories from the root down to `key`, itself included."""
        key = self.key
        return tuple(key[: at + 1] for at, character in enumerate(key) if character == "/")


def parse_scope(text: str, *, mode: Mode = Mode.WRITE, rules: PathRules = DEFAULT_RULES) -> Scope:
    """The scope that `text` names.

    `*`, `**` and `?` make it a glob. A prefix `path:` takes them literally, a prefix `glob:` is
    for a glob that itself begins with one of the two prefixes.

    Raises:
        ScopeInvalidError: it can't be a path or glob of a repository; it is never repaired.
    """
    forced, path = _forced(text)
    segments = scope_segments(path)
    if forced != _LITERAL and is_wild(path):
        normal = normal_glob(path, segments)
        spelled = "/".join(normal)
        if is_wild(spelled):
            return _glob(normal, spelled, mode=mode, rules=rules)
        segments = normal
    key = segments_key(segments, rules)
    return Scope(text=_literal_text(segments), key=key, mode=mode, pattern=None)


def parse_scopes(
    texts: Sequence[str], *, mode: Mode = Mode.WRITE, rules: PathRules = DEFAULT_RULES
) -> tuple[Scope, ...]:
    """The scopes that `texts` name, merged as by `merge_scopes`.

    Raises:
        ScopeInvalidError: one of them is refused, or there are more than 10,000.
    """
    if isinstance(texts, str):
        raise ScopeInvalidError(
            "One text was given where a list of scopes belongs.",
            next_step="Put it into a list.",
        )
    if len(texts) > MAX_SCOPES:
        raise ScopeInvalidError(
            f"{len(texts)} scopes are more than the {MAX_SCOPES} that one set may have.",
            next_step="Name the directories that hold these files.",
            given=len(texts),
            limit=MAX_SCOPES,
        )
    return merge_scopes(parse_scope(text, mode=mode, rules=rules) for text in texts)


def merge_scopes(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """The scopes without those that lie inside a literal of the same or the stronger mode.

    Of equal globs one stays, the writing one. The result covers the same paths and is ordered by
    key, which makes it equal for every order of `scopes`.
    """
    kept: list[Scope] = []
    tops: dict[Mode, str] = {}
    globs: set[tuple[str, Mode]] = set()
    # What a literal contains follows it at once in this order, so the last one of a mode decides.
    for scope in sorted(scopes, key=_containers_first):
        stronger = (Mode.WRITE,) if scope.mode is Mode.WRITE else (Mode.WRITE, Mode.READ)
        if any(mode in tops and scope.key.startswith(tops[mode]) for mode in stronger):
            continue
        if scope.pattern is None:
            tops[scope.mode] = scope.key
        elif any((scope.pattern, mode) in globs for mode in stronger):
            continue
        else:
            globs.add((scope.pattern, scope.mode))
        kept.append(scope)
    return tuple(kept)


def overlaps(a: Scope, b: Scope) -> bool:
    """Whether some path is in both, whatever they are held for."""
    if not (a.key.startswith(b.key) or b.key.startswith(a.key)):
        return False
    if a.pattern is None:
        return b.pattern is None or compile_glob(b.pattern).meets_below(key_segments(a.key))
    if b.pattern is None:
        return compile_glob(a.pattern).meets_below(key_segments(b.key))
    return compile_glob(a.pattern).meets(compile_glob(b.pattern))


def conflicts(a: Scope, b: Scope) -> bool:
    """Whether two holders can't have them at once: they overlap and one of them writes."""
    return Mode.WRITE in (a.mode, b.mode) and overlaps(a, b)


def covers(scope: Scope, path: str, *, rules: PathRules = DEFAULT_RULES) -> bool:
    """Whether the repository path, as git reports it, is in the scope.

    Raises:
        ScopeInvalidError: no path in a repository's tree can be written that way.
    """
    key = path_key(path, rules=rules)
    if not key.startswith(scope.key):
        return False
    return scope.pattern is None or compile_glob(scope.pattern).covers(key_segments(key))


def natural_scope(path: str, *, packages: Collection[str]) -> str:
    """What a write to `path` takes when nobody holds it; `parse_scope` reads the answer.

    The deepest package that contains the path, else its directory; for a file at the root the
    file itself. The root is no package here, since it would hold the whole repository. Where
    the answer can't be a scope (a name outside UTF-8), the nearest directory that can is taken.

    Args:
        path: a path as git reports it.
        packages: the packages' directories, from the root, without a trailing slash.

    Raises:
        ScopeInvalidError: no path in a repository's tree can be written that way.
    """
    segments = path_segments(path)
    depth = next(
        (n for n in range(len(segments), 0, -1) if "/".join(segments[:n]) in packages),
        max(len(segments) - 1, 1),
    )
    for n in range(depth, 0, -1):
        text = _literal_text(segments[:n])
        try:
            parse_scope(text)
        except ScopeInvalidError:
            continue
        return text
    return ROOT


def _forced(text: str) -> tuple[str, str]:
    for prefix in (_LITERAL, _GLOB):
        if text.startswith(prefix):
            return prefix, text[len(prefix) :]
    return "", text


def _glob(segments: tuple[str, ...], spelled: str, *, mode: Mode, rules: PathRules) -> Scope:
    before = next(n for n, segment in enumerate(segments) if is_wild(segment))
    return Scope(
        text=_GLOB + spelled if _forced(spelled)[0] else spelled,
        key=segments_key(segments[:before], rules),
        mode=mode,
        pattern=fold(spelled, rules),
    )


def _literal_text(segments: tuple[str, ...]) -> str:
    path = "/".join(segments)
    if not path:
        return ROOT
    return _LITERAL + path if is_wild(path) or _forced(path)[0] else path


def _containers_first(scope: Scope) -> tuple[str, str, bool, str]:
    return scope.key, scope.pattern or "", scope.mode is Mode.READ, scope.text
