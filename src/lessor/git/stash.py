"""The stash: one list for a whole repository, whose entries name only the branch they were made on."""

from __future__ import annotations

from dataclasses import dataclass

from lessor.git.layout import Layout
from lessor.git.understood import understood

_STASH = "refs/stash"
_NO_BRANCH = "(no branch)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StashEntry:
    """One entry: `stash@{0}` and its commit, whose parents are HEAD, the index, what was untracked."""

    name: str
    commit: str


def stashed_on(layout: Layout, branch: str | None) -> tuple[StashEntry, ...]:
    """The entries made while `branch` was checked out, None for a detached HEAD; newest first.

    Which worktree a detached HEAD was in, an entry doesn't say: all of them are given then.

    Raises:
        GitError: Git can't look.
    """
    where = branch or _NO_BRANCH
    made_here = (f"WIP on {where}:", f"On {where}:")
    if not (layout.common_dir / "logs" / _STASH).is_file():
        return ()  # the list is this reference's reflog
    listed = layout.git(["log", "-g", "--format=%gd%x09%H%x09%gs", _STASH, "--"])
    entries = (line.split("\t", 2) for line in listed.lines)
    with understood("the stashes"):
        return tuple(
            StashEntry(name=name, commit=commit)
            for name, commit, subject in entries
            if subject.startswith(made_here)
        )
