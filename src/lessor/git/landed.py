"""What became of one branch's work: whether its commits are in the target."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lessor.errors import GitError
from lessor.git.command import run_git
from lessor.git.progress import branch_in_progress, operations_in_progress
from lessor.git.refs import BRANCHES, read_ref
from lessor.git.registry import entries
from lessor.git.revision import resolve_commit

_IS, _IS_NOT = 0, 1


class Landed(StrEnum):
    """How far a branch got.

    MISSING: there is no such branch. EMPTY: it is still at its base. LANDED: the target leads to
    its tip. OPEN: it doesn't. UNKNOWN: the history that would tell isn't here.
    """

    MISSING = "missing"
    EMPTY = "empty"
    LANDED = "landed"
    OPEN = "open"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One branch's verdict: its `commits` past the base, newest first, and what is half done.

    `in_progress` names the rebases, merges and the like in the worktrees of this branch. `reason`
    says why a verdict is unknown.
    """

    verdict: Landed
    tip: str | None
    commits: tuple[str, ...] = ()
    in_progress: tuple[str, ...] = ()
    reason: str = ""


def what_landed(common_dir: Path, *, branch: str, base: str, target: str) -> Landing:
    """Compare `branch`, which began at `base`, with `target`.

    A squash or a rebase leaves no trace that this looks for: such a branch reads as open.

    Raises:
        GitError: Git couldn't look.
    """
    tip = read_ref(common_dir, f"{BRANCHES}{branch}")
    running = _in_progress(common_dir, branch)
    if tip is None:
        return Landing(verdict=Landed.MISSING, tip=None, in_progress=running)
    try:
        start, end = resolve_commit(common_dir, base), resolve_commit(common_dir, target)
    except GitError as missing:
        return Landing(verdict=Landed.UNKNOWN, tip=tip, in_progress=running, reason=missing.message)
    listed = run_git(["rev-list", tip, f"^{start}"], cwd=common_dir, git_dir=common_dir)
    verdict, reason = _judge(common_dir, tip, start, target=end)
    return Landing(
        verdict=verdict,
        tip=tip,
        commits=tuple(listed.lines),
        in_progress=running,
        reason=reason,
    )


def _judge(common_dir: Path, tip: str, start: str, *, target: str) -> tuple[Landed, str]:
    if tip == start:
        return Landed.EMPTY, ""
    asked = ["merge-base", "--is-ancestor", tip, target]
    code = run_git(asked, cwd=common_dir, git_dir=common_dir, check=False).code
    if code == _IS:
        return Landed.LANDED, ""
    if code != _IS_NOT:  # 128 where a commit on the way is missing
        return Landed.UNKNOWN, "a commit between branch and target is missing"
    shallow = ["rev-parse", "--is-shallow-repository"]
    if run_git(shallow, cwd=common_dir, git_dir=common_dir).text == "true":
        return Landed.UNKNOWN, "the clone is shallow"
    return Landed.OPEN, ""


def _in_progress(common_dir: Path, branch: str) -> tuple[str, ...]:
    git_dirs = [common_dir, *(git_dir for _, git_dir in entries(common_dir))]
    found = {
        name
        for git_dir in git_dirs
        if branch in {branch_in_progress(git_dir), _branch_at_head(git_dir)}
        for name in operations_in_progress(git_dir)
    }
    return tuple(sorted(found))


def _branch_at_head(git_dir: Path) -> str | None:
    try:
        head = os.fsdecode((git_dir / "HEAD").read_bytes()).strip()
    except OSError:
        return None
    prefix = f"ref: {BRANCHES}"
    return head.removeprefix(prefix) if head.startswith(prefix) else None
