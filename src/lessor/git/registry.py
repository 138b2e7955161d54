"""The worktrees that a repository knows, and the lock around changes of that list."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from lessor.errors import WorktreeError
from lessor.git.command import run_git
from lessor.git.layout import entry_path
from lessor.git.lock import file_lock
from lessor.git.ownership import is_half_made, is_lessors
from lessor.git.progress import (
    HEAD_LOCKS,
    REFTABLE_LOCK,
    branch_at_head,
    branch_in_progress,
)
from lessor.git.reflog import is_reftable
from lessor.git.refs import BRANCHES
from lessor.git.repository import Repository
from lessor.git.understood import understood

_LOCK = "lessor-worktree.lock"
_LOCK_WAIT_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """One entry of a repository's list of worktrees, the main one included.

    `branch` is also the one that a rebase or bisect took off HEAD: git still reserves it, and
    `detached` is then true. `head` is empty for a bare repository. `prunable` says why git would
    drop the entry; a directory that isn't mounted here looks so too.
    """

    path: Path
    git_dir: Path
    head: str
    branch: str | None
    detached: bool
    locked_reason: str | None
    prunable: str | None

    @property
    def is_lessors(self) -> bool:
        """Whether Lessor made it and still keeps it locked."""
        return is_lessors(self.locked_reason)

    @property
    def is_half_made(self) -> bool:
        """Whether its making was cut short: files are missing, and nobody was ever in it."""
        return is_half_made(self.locked_reason)


def worktree_lock(repo: Repository) -> AbstractContextManager[None]:
    """Hold what every making, healing, pruning and removing of a worktree holds.

    `git worktree add` beside another one, or beside `prune`, fails now and then and leaves a
    branch without a worktree (git 2.39; up to 13 of 60 when tried).
    """
    return file_lock(repo.common_dir / _LOCK, wait_ms=_LOCK_WAIT_MS)


def list_worktrees(repo: Repository) -> list[Worktree]:
    """All worktrees of the repository, the main one first.

    Raises:
        GitError: Git can't list them.
    """
    main, *others = _listed(repo.common_dir)
    if main.path == repo.common_dir != repo.root:
        # A submodule's, or one with its git directory elsewhere: git names that instead (2.39).
        main = replace(main, path=repo.root)
    return [main, *others]


def worktrees_of(common_dir: Path) -> list[tuple[Path, str | None]]:
    """Every worktree's git directory with the branch that it is on, or that a rebase took off it.

    Read from git's files, without a process; only a repository in the reftable format takes one,
    as its HEAD files name no branch.

    Raises:
        GitError: Git can't list them.
        OSError: A file that says how far a rebase got can't be read.
    """
    if is_reftable(common_dir):
        return [(tree.git_dir, tree.branch) for tree in _listed(common_dir)]
    git_dirs = [common_dir, *(git_dir for _, git_dir in entries(common_dir))]
    return [
        (git_dir, branch_at_head(git_dir) or branch_in_progress(git_dir)) for git_dir in git_dirs
    ]


def branch_lock(repo: Repository, branch: str) -> Path | None:
    """The lock file by which a git command may move `branch` yet; None where there is none.

    The command runs, is frozen, or died: nothing tells these apart, and git itself waits for none.
    A lock on the HEAD of a worktree of Lessor's that is on the branch is one too.
    """
    own = repo.common_dir / f"{BRANCHES}{branch}.lock"
    if own.exists():
        return own
    for entry in list_worktrees(repo):
        if entry.is_lessors and entry.branch == branch:
            locks = (entry.git_dir / name for name in HEAD_LOCKS)
            return next((lock for lock in locks if lock.exists()), None)
    return None


def references_lock(repo: Repository) -> Path | None:
    """The lock by which a git command keeps every reference of a reftable repository, if there is one."""
    lock = repo.common_dir / REFTABLE_LOCK
    return lock if lock.exists() else None


def find_linked(repo: Repository, path: Path) -> Worktree:
    """The linked worktree at `path`.

    Raises:
        WorktreeError: There is none, or `path` is the main worktree or a link.
    """
    place = plain_place(path)
    for entry in list_worktrees(repo):
        if entry.path == place and entry.git_dir != repo.common_dir:
            return entry
    raise WorktreeError(
        f"{path} is no linked worktree of {repo.name}.",
        next_step="`git worktree list` shows them.",
        path=str(path),
    )


def plain_place(path: Path) -> Path:
    """`path` with the links on the way to it resolved.

    Raises:
        WorktreeError: `path` itself is a link: what it leads to isn't what was named.
    """
    if path.is_symlink():
        raise WorktreeError(f"{path} is a link, not a worktree's directory.", path=str(path))
    return path.parent.resolve() / path.name


def entries(common_dir: Path) -> Iterator[tuple[Path, Path]]:
    """The linked worktrees' directories with their git directories, from git's own files."""
    for git_dir in (common_dir / "worktrees").glob("*"):
        try:
            yield entry_path(git_dir), git_dir
        except OSError:  # half made by a git that was killed: git doesn't list it either
            continue


def _listed(common_dir: Path) -> list[Worktree]:
    asked = ["worktree", "list", "--porcelain", "-z"]
    listed = run_git(asked, cwd=common_dir, git_dir=common_dir).out
    git_dirs = dict(entries(common_dir))
    found: list[Worktree] = []
    for record in listed.split(b"\0\0"):
        fields = dict(_field(line) for line in record.split(b"\0") if line)
        if not fields:
            continue
        with understood("the worktrees"):
            path = Path(fields["worktree"])
        git_dir = git_dirs.get(path) if found else common_dir
        if git_dir is not None:  # else it was removed since git listed it
            found.append(_worktree(path, git_dir, fields))
    return found


def _field(line: bytes) -> tuple[str, str]:
    name, _, value = os.fsdecode(line).partition(" ")
    return name, value


def _worktree(path: Path, git_dir: Path, fields: Mapping[str, str]) -> Worktree:
    detached = "detached" in fields
    branch = fields["branch"].removeprefix(BRANCHES) if "branch" in fields else None
    return Worktree(
        path=path,
        git_dir=git_dir,
        head=fields.get("HEAD", ""),
        branch=branch_in_progress(git_dir) if detached else branch,
        detached=detached,
        locked_reason=fields.get("locked"),
        prunable=fields.get("prunable"),
    )
