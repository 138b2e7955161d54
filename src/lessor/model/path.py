"""Paths inside a repository: what is refused, what is dropped, and the key that compares them.

A key is `/`, the normalised segments joined by `/`, and `/`; the repository's root is `/`. With
both slashes a plain prefix test is a test by segment: `/services/billing/` is no prefix of
`/services/billing-v2/`. Stores compare keys by UTF-8 bytes; Python compares strings by code
point, which is the same order for valid UTF-8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import normalize

from lessor.errors import ScopeInvalidError

SEGMENT_BYTES = 255
PATH_BYTES = 850
"""Folding can triple a path's bytes, and PostgreSQL's index entries end at about 2,700."""


_SHOWN_CHARS = 80
_FROM_THE_ROOT = "Write the path from the root of the repository, such as services/billing."
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
# What NTFS takes for `.git`; git refuses these names on every system (core.protectNTFS).
_GIT_DIRECTORY = re.compile(r"(?:\.git|git~1)[. ]*(?::.*)?", re.IGNORECASE | re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRules:
    """How a repository compares names; its own setting, whatever machine Lessor runs on.

    Attributes:
        fold_case: names that differ in case alone are one name: `NFC(casefold(NFC(x)))`.
        normalize: names are compared in Unicode NFC; off, they are compared as they are.
    """

    fold_case: bool = False
    normalize: bool = True


DEFAULT_RULES = PathRules()


def quoted(text: str) -> str:
    """Text from outside as a message may show it: shortened, everything unprintable escaped."""
    return repr(text[:_SHOWN_CHARS]) + ("…" if len(text) > _SHOWN_CHARS else "")


def refusal(path: str, fault: str, *, next_step: str) -> ScopeInvalidError:
    """The error that says what is wrong with `path`."""
    return ScopeInvalidError(f"{quoted(path)} {fault}.", next_step=next_step, scope=quoted(path))


def path_segments(path: str) -> tuple[str, ...]:
    """The segments of a path that git may report, without `.` and empty ones; none for the root.

    Any byte that git can hold is taken, bytes outside UTF-8 as `surrogateescape` decodes them.

    Raises:
        ScopeInvalidError: it is empty, absolute, holds NUL, or has a segment `..` or `.git`.
    """
    if not path:
        raise refusal(path, "is empty", next_step='Write "." for the whole repository.')
    if path[0] == "/":
        raise refusal(path, "is absolute", next_step=_FROM_THE_ROOT)
    if "\x00" in path:
        raise refusal(path, "contains NUL", next_step="No file name can; remove it.")
    segments = tuple(part for part in path.split("/") if part and part != ".")
    if ".." in segments:
        raise refusal(path, 'has a ".." segment', next_step=_FROM_THE_ROOT)
    if "git" in path.lower() and any(map(_GIT_DIRECTORY.fullmatch, segments)):
        raise refusal(
            path,
            "leads into git's own directory",
            next_step="Name files that git tracks; .git is never one of them.",
        )
    return segments


def scope_segments(path: str) -> tuple[str, ...]:
    """The segments of a path that a person or program wrote as a scope.

    Raises:
        ScopeInvalidError: as `path_segments`, and for a drive letter, a backslash, a control
            character, text outside UTF-8, a segment above 255 bytes, a path above 850 bytes.
    """
    if len(path) > PATH_BYTES:
        raise _too_long(path)
    if not path.isprintable():
        _refuse_unprintable(path)
    if "\\" in path:
        raise refusal(path, "contains a backslash", next_step='Separate directories with "/".')
    segments = path_segments(path)
    if segments and _DRIVE.match(segments[0]):
        raise refusal(
            path,
            "starts with a letter and a colon, as a drive does",
            next_step=f"{_FROM_THE_ROOT} Reading or writing is not said in the path.",
        )
    if not path.isascii() or len(path) > SEGMENT_BYTES:
        _refuse_long(path, segments)
    return segments


def fold(text: str, rules: PathRules) -> str:
    """`text` as `rules` compare it; two spellings of one name give the same result."""
    if text.isascii():
        return text.lower() if rules.fold_case else text
    if rules.normalize:
        text = normalize("NFC", text)
    if rules.fold_case:
        text = text.casefold()
        # Folding can leave letters apart from their marks, as for U+0390.
        return normalize("NFC", text) if rules.normalize else text
    return text


def segments_key(segments: tuple[str, ...], rules: PathRules) -> str:
    """The key of the path with these segments."""
    return f"/{fold('/'.join(segments), rules)}/" if segments else "/"


def key_segments(key: str) -> tuple[str, ...]:
    """The normalised segments that a key was made of."""
    return tuple(key[1:-1].split("/")) if key != "/" else ()


def path_key(path: str, *, rules: PathRules = DEFAULT_RULES) -> str:
    """The key of a repository path as git reports it; `.` and doubled slashes are dropped.

    Raises:
        ScopeInvalidError: no path in a repository's tree can be written that way.
    """
    return segments_key(path_segments(path), rules)


def _refuse_unprintable(path: str) -> None:
    if _CONTROL.search(path):
        raise refusal(
            path,
            "contains a control character",
            next_step="Remove it, or take the directory above as the scope.",
        )
    if _SURROGATE.search(path):
        raise refusal(
            path, "is not valid UTF-8", next_step="Take the directory above as the scope."
        )


def _refuse_long(path: str, segments: tuple[str, ...]) -> None:
    if len(path.encode()) > PATH_BYTES:
        raise _too_long(path)
    if any(len(part.encode()) > SEGMENT_BYTES for part in segments):
        raise refusal(
            path,
            f"has a name of more than {SEGMENT_BYTES} bytes",
            next_step="No file system holds such a name; shorten it.",
        )


def _too_long(path: str) -> ScopeInvalidError:
    return refusal(
        path,
        f"has more than {PATH_BYTES} bytes",
        next_step="Take a directory further up as the scope.",
    )
