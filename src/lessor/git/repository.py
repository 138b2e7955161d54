"""A repository and where one stands in it: found from any directory, named the same by all clones."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import GitError, NotARepositoryError
from lessor.git.command import DEFAULT_TIMEOUT_S, GitResult, require_git, run_git
from lessor.git.content import files_at, packages_at, read_file_at
from lessor.git.layout import layout_of
from lessor.git.refs import BRANCHES
from lessor.git.remote import canonical_remote, place_of
from lessor.git.revision import resolve_commit
from lessor.git.status import read_status
from lessor.git.understood import understood
from lessor.ids import new_token

__all__ = [
    "Repository",
    "behind_remote",
    "canonical_remote",
    "current_branch",
    "files_at",
    "find_repository",
    "head_commit",
    "packages_at",
    "read_file_at",
    "repository_key",
    "resolve_commit",
    "uncommitted_files",
]

_ID_FILE = "lessor-id"
_ID_PREFIX = "local-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository on this machine.

    `root` is the top of the main worktree, or the directory itself of a bare repository.
    `common_dir` is what all its worktrees share. Both have their links resolved.
    """

    root: Path
    common_dir: Path
    canonical_remote: str | None
    name: str
    is_bare: bool

    def git(
        self, args: Sequence[str], *, check: bool = True, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> GitResult:
        """Run git on the repository as a whole; see `run_git`."""
        return run_git(
            args, cwd=self.common_dir, git_dir=self.common_dir, check=check, timeout_s=timeout_s
        )


def find_repository(cwd: Path) -> Repository:
    """The repository around `cwd`: from a subdirectory, a linked worktree, through links, bare.

    Raises:
        NotARepositoryError: There is none.
        GitMissingError: There is no git, or it is too old.
        GitError: Git found one and refuses it (another user's, a format that it can't read).
    """
    require_git()
    common_dir, git_dir = _directories(cwd, "--git-common-dir", "--git-dir")
    is_bare = _is_bare(common_dir)
    root = common_dir if is_bare else _main_root(common_dir, git_dir=git_dir, cwd=cwd)
    remote = _canonical_remote_of(common_dir)
    name = (remote or root.name).rsplit("/", 1)[-1].removesuffix(".git")
    return Repository(
        root=root, common_dir=common_dir, canonical_remote=remote, name=name, is_bare=is_bare
    )


def _directories(cwd: Path, *which: str) -> list[Path]:
    """The repository's directories; asked one by one where a path holds a newline."""
    found = run_git(["rev-parse", "--path-format=absolute", *which], cwd=cwd, check=False)
    if found.code != 0:
        _refuse(cwd, found)
    if len(which) == 1:
        return [Path(found.text).resolve()]
    if len(found.lines) != len(which):
        return [directory for one in which for directory in _directories(cwd, one)]
    return [Path(line).resolve() for line in found.lines]


def repository_key(repo: Repository) -> str:
    """What makes two clones one repository: the canonical remote, else an id.

    It is written to `lessor-id` in the common directory on the first call; all processes and worktrees
    read the same, whatever becomes of the remote. A clone of a bare repository on this machine begins
    with the id of that one, where it can be kept there.

    Raises:
        GitError: The id can't be written, or the file holds something else.
    """
    if repo.canonical_remote is not None:
        return repo.canonical_remote
    if (repo.common_dir / _ID_FILE).exists():
        return _kept_id(repo.common_dir)
    shared = _bare_remote_of(repo)
    if shared is None:
        return _kept_id(repo.common_dir)
    try:
        first = _kept_id(shared)
    except GitError:  # not ours to write to
        first = None
    return _kept_id(repo.common_dir, first=first)


def _bare_remote_of(repo: Repository) -> Path | None:
    name = _remote_of(repo.common_dir)
    place = None if name is None else place_of(repo.root, name)
    if place is None:
        return None
    try:
        found = find_repository(place)
    except GitError:
        return None
    # A directory within a repository isn't that repository.
    return place if found.is_bare and found.common_dir == place != repo.common_dir else None


def _kept_id(common_dir: Path, *, first: str | None = None) -> str:
    path = common_dir / _ID_FILE
    try:
        if not path.exists():
            _create_once(path, f"{first or _ID_PREFIX + new_token()[:32]}\n")
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as refused:
        raise GitError(f"{path} can't be used: {refused}.", path=str(path)) from refused
    if not key.startswith(_ID_PREFIX):
        raise GitError(
            f"{path} doesn't hold an id of Lessor's.",
            next_step="Move the file away; the next command makes a new one.",
            path=str(path),
        )
    return key


def current_branch(cwd: Path) -> str | None:
    """The branch that HEAD is on, born or not; None on a detached HEAD."""
    found = run_git(["symbolic-ref", "-q", "HEAD"], cwd=cwd, check=False)
    if found.code > 1:
        _refuse(cwd, found)
    return found.text.removeprefix(BRANCHES) if found.code == 0 else None


def head_commit(cwd: Path) -> str:
    """The commit that HEAD is at.

    Raises:
        GitError: There is no commit yet.
    """
    return resolve_commit(cwd, "HEAD")


def uncommitted_files(cwd: Path) -> list[str]:
    """The files around `cwd` that a new worktree won't have: changed, staged and untracked ones.

    Raises:
        GitError: `cwd` lies in no work tree.
    """
    top = run_git(["rev-parse", "--path-format=absolute", "--show-toplevel"], cwd=cwd).text
    status = read_status(layout_of(Path(top)))
    return sorted({change.path for change in status.changed} | set(status.untracked))


def behind_remote(cwd: Path) -> int | None:
    """How many commits of its upstream the current branch lacks; None when it has no upstream.

    It asks the tracking reference and no network: the answer is as fresh as the last fetch.
    """
    counted = run_git(["rev-list", "--count", "HEAD..@{upstream}"], cwd=cwd, check=False)
    with understood("how far the branch is behind"):
        return int(counted.text) if counted.code == 0 else None


def _refuse(cwd: Path, result: GitResult) -> None:
    said = result.err.decode(errors="replace").strip()
    if "not a git repository" in said.lower():
        raise NotARepositoryError(
            f"{cwd} isn't inside a git repository.",
            next_step="Go to one, or make one with `git init`.",
            directory=str(cwd),
        )
    raise GitError(f"git refuses the repository at {cwd}: {said}", directory=str(cwd), said=[said])


def _is_bare(common_dir: Path) -> bool:
    # Asked of the common directory: inside a linked worktree of a bare repository git says false.
    asked = ["rev-parse", "--is-bare-repository"]
    return run_git(asked, cwd=common_dir, git_dir=common_dir).text == "true"


def _main_root(common_dir: Path, *, git_dir: Path, cwd: Path) -> Path:
    asked = ["config", "--get", "core.worktree"]  # set in a submodule's git directory
    configured = run_git(asked, cwd=common_dir, git_dir=common_dir, check=False)
    if configured.code == 0:
        return (common_dir / configured.text).resolve()
    if common_dir.name == ".git":
        return common_dir.parent
    if git_dir == common_dir:  # --separate-git-dir: only the main worktree knows where it is
        top = run_git(["rev-parse", "--show-toplevel"], cwd=cwd, check=False)
        return Path(top.text).resolve() if top.code == 0 else common_dir
    return common_dir


def _remote_of(common_dir: Path) -> str | None:
    names = run_git(["remote"], cwd=common_dir, git_dir=common_dir).lines
    return "origin" if "origin" in names else min(names, default=None)


def _canonical_remote_of(common_dir: Path) -> str | None:
    name = _remote_of(common_dir)
    if name is None:
        return None
    # get-url applies `insteadOf`, so that a shorthand in one clone is the URL in another.
    url = run_git(
        ["remote", "get-url", "--", name], cwd=common_dir, git_dir=common_dir, check=False
    )
    return canonical_remote(url.text) if url.code == 0 else None


def _create_once(path: Path, text: str) -> None:
    # A link appears whole or not at all: the loser of a race reads the winner's id, never half.
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()
