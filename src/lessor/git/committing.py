"""What git is about to commit, as a hook finds it: the paths, and how the message will be cleaned."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from lessor.git.command import GitResult, run_git

_INDEX = "GIT_INDEX_FILE"
# Renames count on both sides, and nothing of the reader's configuration hides a path.
_NAMES = (
    *("diff-index", "--cached", "-r", "-z", "--name-only", "--no-renames"),
    *("--ignore-submodules=none", "-O/dev/null"),
)
_ASKED = r"^(core\.comment(char|string)|commit\.cleanup)$"
_KEEPS_COMMENTS = frozenset({"whitespace", "verbatim", "scissors"})
_SCISSORS = re.compile(rb"^(\S+) -{24} >8 -{24}$", re.MULTILINE)
# Git's own choice where the setting is "auto" (builtin/commit.c).
_CANDIDATES = b"#;@!$%^&|:"


def staged_paths(worktree: Path, git_dir: Path, *, session: Mapping[str, str]) -> tuple[str, ...]:
    """The paths that differ from every parent of the commit that is about to be made, sorted.

    In a merge the others' changes are theirs already; what differs from all sides is this commit's.

    Args:
        worktree: its top.
        git_dir: its own git directory.
        session: the hook's environment; `git commit -a` and `git commit PATH` commit another index.

    Raises:
        GitError: Git can't tell.
    """
    env = {_INDEX: session[_INDEX]} if _INDEX in session else {}

    def differing(parent: str, *, check: bool = True) -> GitResult:
        args = (*_NAMES, parent, "--")
        return run_git(
            args, cwd=worktree, git_dir=git_dir, work_tree=worktree, env=env, check=check
        )

    own = differing("HEAD", check=False)
    if own.code != 0:  # a branch without a commit, from `checkout --orphan`; or worse
        own = differing(_empty_tree(worktree, git_dir))
    found = set(own.records)
    for other in _merged(git_dir):
        found &= set(differing(other).records)
    return tuple(sorted(found))


def comment_prefix(worktree: Path, message: bytes, *, session: Mapping[str, str]) -> bytes:
    """What begins a line of an edited message that git will strip; empty where it strips none.

    Args:
        worktree: where git runs.
        message: as it came out of the editor.
        session: the hook's environment, which has what was set by `git -c`.

    Raises:
        GitError: Git can't be run.
    """
    env = {name: value for name, value in session.items() if name.startswith("GIT_CONFIG")}
    said = run_git(["config", "-z", "--get-regexp", _ASKED], cwd=worktree, env=env, check=False)
    settings: dict[str, str] = {}
    for record in said.records:
        key, _, value = record.partition("\n")
        # commentChar and commentString (git 2.45) are one setting: the last of both counts.
        settings["cleanup" if key == "commit.cleanup" else "comment"] = value
    if settings.get("cleanup") in _KEEPS_COMMENTS:
        return b""
    comment = settings.get("comment") or "#"
    return _chosen(message) if comment == "auto" else os.fsencode(comment)


def _empty_tree(worktree: Path, git_dir: Path) -> str:
    asked = ["hash-object", "-t", "tree", "--stdin"]
    return run_git(asked, cwd=worktree, git_dir=git_dir, input=b"").text


def _merged(git_dir: Path) -> list[str]:
    try:
        return (git_dir / "MERGE_HEAD").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []


def _chosen(message: bytes) -> bytes:
    """The character that git chose, from the lines that it wrote below the text."""
    cut = _SCISSORS.search(message)
    if cut:
        return cut[1]
    lines = [line for line in message.splitlines() if line.strip()]
    last = lines[-1][:1] if lines else b""
    return last if last in [_CANDIDATES[at : at + 1] for at in range(len(_CANDIDATES))] else b"#"
