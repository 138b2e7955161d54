"""Branch names: Conventional Branch 1.1.0, and what git refuses on top of it.

`<type>/<description>`: a type of the list, one slash, and a description of lower-case ASCII
letters and digits in parts joined by single `-` or `.`. Source of the grammar:
conventionalbranch.org, specification 1.1.0; its shared branches (main, master, develop) are valid
there, but never a task's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NewType
from unicodedata import combining, normalize

from lessor.errors import BranchInvalidError
from lessor.model.path import quoted

BranchName = NewType("BranchName", str)

DEFAULT_TYPES: tuple[str, ...] = (
    "feature",
    "feat",
    "bugfix",
    "fix",
    "hotfix",
    "release",
    "chore",
    "ai",
    "claude",
    "codex",
    "copilot",
    "cursor",
)
SHARED_BRANCHES = frozenset({"main", "master", "develop"})
# A loose ref is a file with `.lock` beside it: from 250 bytes on, file systems refuse the name.
BRANCH_BYTES = 200
SLUG_CHARS = 50

_GENERIC_TYPE = "ai"
_TITLE_CHARS = 400
_TYPE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DESCRIPTION = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_OF_EPOCH = re.compile(r"-e[1-9][0-9]*\Z")
_WORD = re.compile(r"[a-z0-9]+")
_APOSTROPHES = "'’"  # noqa: RUF001 - the typographic one is meant


def parse_branch(text: str, *, extra_types: Collection[str] = ()) -> BranchName:
    """The name, if a task's branch may be called `text`.

    Args:
        text: the whole name, without `refs/heads/`.
        extra_types: types that a setting adds to `DEFAULT_TYPES`.

    Raises:
        BranchInvalidError: the name is outside Conventional Branch, git would refuse it, or it
            names a branch that all share; or an extra type can't be a type.
    """
    types = (*DEFAULT_TYPES, *map(_checked_type, extra_types))
    if text in SHARED_BRANCHES:
        raise _refusal(text, "is a branch that all share", "Give the task one of its own.")
    kind, slash, description = text.partition("/")
    if not slash or kind not in types:
        raise _refusal(
            text,
            "doesn't begin with a known type and a slash",
            f"Begin it with one of {', '.join(types)}.",
        )
    if len(text) > BRANCH_BYTES:
        raise _refusal(text, f"has more than {BRANCH_BYTES} bytes", "Shorten it.")
    if not _DESCRIPTION.fullmatch(description):
        raise _refusal(
            text,
            "isn't one description after one slash",
            'Use lower-case letters a-z and digits, joined by single "-" or ".".',
        )
    if description.endswith(".lock"):
        raise _refusal(text, "ends in .lock", "Git keeps that ending for itself; choose another.")
    return BranchName(text)


def is_branch(text: str) -> bool:
    """Whether `text` has the form of a task's branch, of whatever type a setting may allow."""
    kind, _, _ = text.partition("/")
    try:
        parse_branch(text, extra_types=(kind,))
    except BranchInvalidError:
        return False
    return True


def branch_for(*, kind: str, number: int | None, title: str, fallback: str) -> BranchName:
    """A readable name for a task's branch, such as `claude/14-billing-retry-503`.

    The title becomes words of ASCII letters and digits, at most about 50 characters cut between
    words; accents are dropped. Equal titles without a number give equal names.

    Args:
        kind: the branch's type; what isn't one of `DEFAULT_TYPES` becomes `ai`.
        number: the task's number for people, which makes the name unique; None leaves it out.
        title: what the task is called; any text.
        fallback: stands in where no character of the title can be kept.

    Raises:
        BranchInvalidError: the number is negative or absurd, or there is no number and neither
            title nor fallback has a character that can be kept.
    """
    if number is not None and not 0 <= number < 2**63:
        raise BranchInvalidError(
            "A branch can't be named after a negative or absurd number.",
            next_step="Give the task's own number.",
        )
    words = branch_words(title, fallback=fallback)
    described = "-".join(part for part in ("" if number is None else str(number), words) if part)
    return parse_branch(f"{branch_type(kind)}/{described}")


def branch_of_epoch(branch: str, epoch: int) -> BranchName:
    """Another name for a task's branch, where the one that it has can't be handed on."""
    suffix = f"-e{epoch:d}"
    described = branch if branch.endswith(suffix) else _OF_EPOCH.sub("", branch)
    kept = described[: BRANCH_BYTES - len(suffix)].rstrip("-.")
    return parse_branch(f"{kept}{suffix}", extra_types=(branch.partition("/")[0],))


def branch_type(kind: str) -> str:
    """The type of the branches of an agent of `kind`."""
    return kind if kind in DEFAULT_TYPES else _GENERIC_TYPE


def branch_words(title: str, *, fallback: str) -> str:
    """What `branch_for` makes of a title; kept with each task, so that a claim needn't make it."""
    return _slug(title) or _slug(fallback)


def _slug(text: str) -> str:
    """The words of `text` that ASCII can hold, joined by `-`."""
    decomposed = normalize("NFKD", text[:_TITLE_CHARS]).casefold()
    plain = "".join(c for c in decomposed if not combining(c) and c not in _APOSTROPHES)
    words = _WORD.findall(plain)
    slug = words[0][:SLUG_CHARS] if words else ""
    for word in words[1:]:
        if len(slug) + 1 + len(word) > SLUG_CHARS:
            break
        slug += f"-{word}"
    return slug


def _checked_type(kind: str) -> str:
    if kind in SHARED_BRANCHES or not _TYPE.fullmatch(kind):
        raise BranchInvalidError(
            f"{quoted(kind)} can't be a branch type.",
            next_step='Use lower-case letters a-z and digits, joined by single "-".',
            type=quoted(kind),
        )
    return kind


def _refusal(text: str, fault: str, next_step: str) -> BranchInvalidError:
    return BranchInvalidError(f"{quoted(text)} {fault}.", next_step=next_step, branch=quoted(text))
