"""What an epoch inherits with a branch: everything on it but what was found to be somebody else's.

A branch is handed on with all that is on it, for taking a commit off would lose it, or what was
built on it. So inheriting isn't accepting. Whose a commit is gets decided once, by the worktree that
had the branch when the commit came: by that worktree's own HEAD it is the holder's, past it it is
foreign. That stays so in every later epoch: handing on takes nothing off the record. It becomes the
holder's by being made anew in its worktree (a cherry-pick), which is then the holder's own word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def still_foreign(commits: Iterable[str], *, recorded: Collection[str]) -> tuple[str, ...]:
    """Those of a branch's commits that any earlier epoch found to be foreign, in their order."""
    return tuple(commit for commit in commits if commit in recorded)
