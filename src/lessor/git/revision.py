"""A revision as a person writes it, and the one commit that it names."""

from __future__ import annotations

from pathlib import Path

from lessor.errors import GitError
from lessor.git.command import run_git
from lessor.git.complaint import failure

_NAMES_NONE = 1


def resolve_commit(cwd: Path, rev: str) -> str:
    """The full id of the commit that `rev` names; `cwd` may be a common directory.

    Raises:
        GitError: It names none, or git refuses the repository.
    """
    # A revision that reads as an option or spans lines names nothing that git could hold.
    sane = rev and not rev.startswith("-") and "\n" not in rev and "\0" not in rev
    args = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"]
    found = run_git(args, cwd=cwd, git_dir=_own_git_dir(cwd), check=False) if sane else None
    if found is not None and found.code > _NAMES_NONE and found.err:
        raise failure(args, found)
    if rev == "HEAD" and (found is None or found.code != 0):
        raise GitError(
            f"There is no commit yet in {cwd}.",
            next_step="Make the first one: git commit.",
            revision=rev,
        )
    if found is None or found.code != 0:
        raise GitError(
            f"{rev!r} names no commit in {cwd}.",
            next_step="Name a branch, a tag or a commit id that exists.",
            revision=rev,
        )
    return found.text


def _own_git_dir(cwd: Path) -> Path | None:
    # `safe.bareRepository=explicit` forbids git to find a repository by standing in it.
    is_git_dir = (cwd / "HEAD").is_file() and (cwd / "objects").is_dir()
    return cwd if is_git_dir else None
