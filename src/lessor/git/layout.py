"""Where git keeps what belongs to one work tree, read from the files themselves.

Git searches upwards for a repository. A worktree whose entry is gone would be answered by whatever
repository lies above it, so everything that looks at or changes a worktree goes through here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import WorktreeError
from lessor.git.command import DEFAULT_TIMEOUT_S, GitResult, run_git

LOOK = "LESSOR_LOOK=1"
"""Stands in the environment of git processes that only look: who looks isn't inside."""

_POINTER = "gitdir: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A work tree, its private git directory and the directory it shares with its siblings.

    `only_looks` marks every git process that is run here as one that looks.
    """

    path: Path
    git_dir: Path
    common_dir: Path
    only_looks: bool = False

    @property
    def is_linked(self) -> bool:
        """Whether this is a linked worktree and not the repository's main one."""
        return self.git_dir != self.common_dir

    def git(
        self,
        args: Sequence[str],
        *,
        check: bool = True,
        input: bytes | None = None,  # noqa: A002 - as in run_git
        env: Mapping[str, str] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> GitResult:
        """Run git in exactly this work tree; see `run_git`."""
        name, _, value = LOOK.partition("=")
        return run_git(
            args,
            cwd=self.path,
            git_dir=self.git_dir,
            work_tree=self.path,
            check=check,
            input=input,
            env={**(env or {}), **({name: value} if self.only_looks else {})},
            timeout_s=timeout_s,
        )


def layout_of(worktree: Path) -> Layout:
    """The layout of the work tree whose top is `worktree`.

    Raises:
        WorktreeError: It isn't the top of a work tree, its entry in the repository is gone, or the
            entry belongs to another directory (a copy, or a worktree that was moved by hand).
    """
    try:
        path = worktree.resolve()
        pointer = path / ".git"
        if pointer.is_dir():
            git_dir = common_dir = pointer.resolve()
        else:
            git_dir = _pointed_at(pointer)
            common_dir = _common_dir(git_dir)
    except (
        OSError,
        RuntimeError,
    ) as missing:  # RuntimeError: links in a circle, before Python 3.13
        raise WorktreeError(
            f"{worktree} isn't the top of a worktree that git knows.",
            next_step="`git worktree list` shows those it knows; `git worktree repair` mends links.",
            path=str(worktree),
        ) from missing
    _refuse_copy(path, git_dir)
    return Layout(path=path, git_dir=git_dir, common_dir=common_dir)


def linked_layout(worktree: Path) -> Layout:
    """The same for a linked worktree alone: its branches aren't its own, and no person works in it.

    An agent can put a repository of its own in the place of `.git`, or a link to the person's.

    Raises:
        WorktreeError: as `layout_of`; or it is a repository of its own, or leads to one.
    """
    layout = layout_of(worktree)
    if not layout.is_linked:
        raise WorktreeError(
            f"{worktree} is no linked worktree: its .git is a repository of its own, or leads to one.",
            next_step=f"Look at it: git -C {worktree} log --oneline --all. Move away what is yours.",
            path=str(worktree),
        )
    return layout


def entry_path(git_dir: Path) -> Path:
    """The worktree directory that an entry below `worktrees/` says it belongs to.

    Raises:
        OSError: The entry is gone or half made.
    """
    # Relative since git 2.48 where `worktree.useRelativePaths` is set.
    recorded = os.fsdecode((git_dir / "gitdir").read_bytes()).rstrip("\n")
    return Path(os.path.normpath(git_dir / recorded)).parent


def lacks_pointer(directory: Path) -> bool:
    """Whether a directory has no `.git`, or an empty file there: what a crash in its writing leaves."""
    try:
        found = (directory / ".git").lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


def _pointed_at(pointer: Path) -> Path:
    if not pointer.is_file():  # an agent's pipe would be read for ever
        raise FileNotFoundError(pointer)
    text = os.fsdecode(pointer.read_bytes()).rstrip("\n")
    if not text.startswith(_POINTER):
        raise FileNotFoundError(pointer)
    return (pointer.parent / text.removeprefix(_POINTER)).resolve(strict=True)


def _common_dir(git_dir: Path) -> Path:
    # A submodule's git directory has no such file: it shares with nobody.
    recorded = git_dir / "commondir"
    if not recorded.exists():
        return git_dir
    return (git_dir / recorded.read_text().rstrip("\n")).resolve(strict=True)


def _refuse_copy(path: Path, git_dir: Path) -> None:
    if not (git_dir / "gitdir").exists():
        return
    owner = entry_path(git_dir).resolve()
    if owner != path:
        raise WorktreeError(
            f"{path} uses the git entry of {owner}.",
            next_step="If it was moved by hand, run `git worktree repair` in it.",
            path=str(path),
            owner=str(owner),
        )
