"""Operations that git left half done in a worktree: rebase, merge, bisect and the like."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from lessor.git.command import run_git
from lessor.git.reflog import is_reftable
from lessor.git.refs import BRANCHES

_MARKERS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "sequencer": "cherry-pick",
}
HEAD_LOCK = "HEAD.lock"
REFTABLE_LOCK = "reftable/tables.list.lock"
HEAD_LOCKS = (HEAD_LOCK, REFTABLE_LOCK)
"""What keeps a worktree's HEAD from being moved, in either format."""

_LOCKS = ("index.lock", *HEAD_LOCKS)
# In the reftable format these are references, and no files.
_MARKING_REFS = ("CHERRY_PICK_HEAD", "REVERT_HEAD")
# What a bisect goes back to: a branch, or a commit where HEAD was detached.
BISECT_START = "BISECT_START"
_NOTES = (
    "MERGE_MSG",
    "MERGE_MODE",
    "AUTO_MERGE",
    "REBASE_HEAD",
    "SQUASH_MSG",
    BISECT_START,
    "BISECT_NAMES",
    "BISECT_TERMS",
)

# What stands in HEAD's file for programs that don't know the reftable format.
_IN_REFTABLE = "ref: refs/heads/.invalid"

# What git writes itself when a rebase was started on a detached HEAD.
DETACHED_REBASE = "detached HEAD"


def operations_in_progress(git_dir: Path) -> tuple[str, ...]:
    """The operations that wait for `--continue` or `--abort` in this git directory."""
    found = {name for marker, name in _MARKERS.items() if (git_dir / marker).exists()}
    if is_reftable(git_dir):
        found |= {_MARKERS[ref] for ref in _MARKING_REFS if _is_there(git_dir, ref)}
    return tuple(sorted(found))


def holds_mails(git_dir: Path) -> bool:
    """Whether `git am` is half done in this git directory: what is still to come is in no commit."""
    return (git_dir / "rebase-apply" / "applying").exists()


def _is_there(git_dir: Path, ref: str) -> bool:
    asked = ["rev-parse", "-q", "--verify", ref]
    return run_git(asked, cwd=git_dir, git_dir=git_dir, check=False).code == 0


def git_locks(git_dir: Path) -> tuple[str, ...]:
    """Lock files of a git command that runs now, or that died here."""
    return tuple(name for name in _LOCKS if (git_dir / name).exists())


def rebase_head_name(git_dir: Path) -> Path | None:
    """The file in which a rebase keeps the branch that it will move at its end."""
    names = (git_dir / kind / "head-name" for kind in ("rebase-merge", "rebase-apply"))
    return next((name for name in names if name.is_file()), None)


def branch_in_progress(git_dir: Path) -> str | None:
    """The branch that a rebase or bisect took off HEAD and will come back to.

    During both, `git worktree list` says `detached`, though git still reserves the branch.
    """
    head_name = rebase_head_name(git_dir)
    if head_name is not None:
        recorded = os.fsdecode(head_name.read_bytes()).strip()
        return recorded.removeprefix(BRANCHES) if recorded.startswith(BRANCHES) else None
    start = git_dir / BISECT_START
    if not start.is_file():
        return None
    # A bisect that began on a detached HEAD keeps the commit's id here.
    name = os.fsdecode(start.read_bytes()).strip()
    return None if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", name) else name


def branch_at_head(git_dir: Path) -> str | None:
    """The branch that a worktree's HEAD is on; None on a detached one."""
    try:
        head = os.fsdecode((git_dir / "HEAD").read_bytes()).strip()
    except OSError:
        return None
    if head == _IN_REFTABLE:
        asked = ["symbolic-ref", "-q", "HEAD"]
        known = run_git(asked, cwd=git_dir, git_dir=git_dir, check=False).text
        return known.removeprefix(BRANCHES) if known.startswith(BRANCHES) else None
    prefix = f"ref: {BRANCHES}"
    return head.removeprefix(prefix) if head.startswith(prefix) else None


def progress_files(git_dir: Path) -> Iterator[Path]:
    """The files that say how far the operations in progress got, and what is still to do."""
    for name in (*_MARKERS, *_NOTES):
        place = git_dir / name
        if place.is_dir():
            yield from (path for path in place.rglob("*") if path.is_file())
        elif place.is_file():
            yield place
