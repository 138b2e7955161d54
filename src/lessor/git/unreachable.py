"""Commits that only one worktree holds on to, and that its removal would lose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lessor.git.command import run_git
from lessor.git.reflog import is_reftable

# What stays when a worktree goes.
SHARED_REFS = (
    *("--branches", "--tags", "--remotes"),
    # The record of what came from somebody else: whoever made it still has to be told of it.
    *("--exclude=refs/lessor/foreign/*", "--glob=refs/lessor"),
)

# Worktrees are made with logAllRefUpdates on, and git goes on writing a reflog that exists. Where
# there is none, nobody can tell what was reset away.
HEAD_REFLOG = "logs/HEAD"

# Per worktree, and deleted with it.
_PRIVATE_REFS = ("--glob=refs/worktree", "--glob=refs/bisect", "--glob=refs/rewritten")

_FILES = (
    *("ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
    # An autostash is in no reference until its operation ends.
    *("MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash"),
    *("rebase-merge/onto", "rebase-merge/orig-head", "rebase-merge/amend", "rebase-merge/done"),
    *("rebase-merge/git-rebase-todo", "rebase-merge/rewritten-list", "rebase-merge/stopped-sha"),
    *("rebase-apply/onto", "rebase-apply/orig-head", "rebase-apply/original-commit"),
    *("sequencer/todo", "sequencer/head", "sequencer/abort-safety"),
)
_OID = re.compile(rb"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """Commits in no shared reference: all of them, and the `tips` that lead to all of them."""

    commits: tuple[str, ...]
    tips: tuple[str, ...]


def unreachable_commits(git_dir: Path, *, head: str | None) -> Unreachable:
    """The commits that only this worktree's HEAD, reflog, references and operations know.

    It is noisy on purpose: the commit that an `--amend` replaced counts.

    Raises:
        GitError: Git can't walk the history.
    """
    known = {*_recorded(git_dir), *([head] if head else [])}
    walked = run_git(
        [
            *("rev-list", "--ignore-missing", "--parents", "--stdin"),
            *(*_PRIVATE_REFS, "--not", *SHARED_REFS),
        ],
        cwd=git_dir,
        git_dir=git_dir,
        input="".join(f"{oid}\n" for oid in sorted(known)).encode(),
    )
    lines = [line.split(" ") for line in walked.lines]
    parents = {parent for line in lines for parent in line[1:]}
    commits = tuple(line[0] for line in lines)
    return Unreachable(
        commits=commits, tips=tuple(commit for commit in commits if commit not in parents)
    )


def is_kept(git_dir: Path, commit: str) -> bool:
    """Whether a branch, a tag or one of Lessor's references leads to `commit`.

    A remote-tracking reference isn't enough: the next `fetch --prune` may take it away.
    """
    kept = [option for option in SHARED_REFS if option != "--remotes"]
    args = ["rev-list", "--max-count=1", commit, "--not", *kept]
    return not run_git(args, cwd=git_dir, git_dir=git_dir).lines


def _recorded(git_dir: Path) -> Iterator[str]:
    if is_reftable(git_dir):
        asked = ["log", "-g", "--format=%H", "HEAD", "--"]
        yield from run_git(asked, cwd=git_dir, git_dir=git_dir, check=False).lines
        for name in _FILES:
            asked = ["rev-parse", "-q", "--verify", name]
            if "/" not in name:
                yield from run_git(asked, cwd=git_dir, git_dir=git_dir, check=False).lines
    for name in (HEAD_REFLOG, *_FILES):
        if (git_dir / name).is_file():
            yield from _oids(git_dir / name)


def _oids(path: Path) -> Iterator[str]:
    for match in _OID.finditer(path.read_bytes()):
        oid = match[0].decode()
        if oid.strip("0"):
            yield oid
