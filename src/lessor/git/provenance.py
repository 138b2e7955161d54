"""Whether a commit of the target that makes a branch's change is the branch's own, carried over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from lessor.errors import LabelInvalidError
from lessor.git.ancestry import Ancestry, Commit
from lessor.git.trailer import labels_of
from lessor.model.label import parse_label

# git revert and its like write the full id.
_REVERTS = re.compile(r"\bThis reverts commit ([0-9a-f]{40,64})")
_COMMIT_ID = re.compile(r"\b[0-9a-f]{7,64}\b")


def label_branches(commit: Commit) -> list[str]:
    """The branches that the commit's labels name."""
    found: list[str] = []
    for text in labels_of(commit.message.encode("utf-8", "surrogateescape")):
        try:
            found.append(parse_label(text).branch)
        except LabelInvalidError:
            continue
    return found


def is_own(commit: Commit, *, branch: str, own: Sequence[Commit]) -> bool:
    """Whether `commit`, which makes the same change as commits of `branch`, comes from them.

    A label decides. Without one it does where the author is the same, or where its message names
    the branch or one of its commits, as squashes and cherry-picks do.
    """
    labelled = label_branches(commit)
    if labelled:
        return branch in labelled
    return (
        any(commit.author == other.author for other in own)
        or _names_branch(commit.message, branch)
        or _names_commit(commit.message, own)
    )


def is_copy(commit: Commit, original: Commit) -> bool:
    """Whether `commit` is `original` carried over alone, by a rebase or a cherry-pick.

    Both keep the author and the author's time; a cherry-pick may name what it picked.
    """
    same = (commit.author, commit.authored) == (original.author, original.authored)
    return same or f"(cherry picked from commit {original.oid})" in commit.message


def reversals(ancestry: Ancestry, commits: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """For each commit that others say they revert, those of `commits` that say so."""
    found: dict[str, list[str]] = {}
    for oid in commits:
        for reverted in _REVERTS.findall(ancestry.commits[oid].message):
            found.setdefault(reverted, []).append(oid)
    return found


def _names_branch(message: str, branch: str) -> bool:
    if branch.isalpha():  # a plain word, such as "fix", says nothing
        return False
    return re.search(rf"(?<![\w.-]){re.escape(branch)}(?![\w/-]|\.\w)", message) is not None


def _names_commit(message: str, own: Sequence[Commit]) -> bool:
    named = set(_COMMIT_ID.findall(message))
    return any(commit.oid.startswith(name) for commit in own for name in named)
