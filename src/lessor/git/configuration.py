"""Configuration of one worktree, kept from its siblings.

`git config` in a worktree writes what all of them share: one agent's `user.email` becomes
everybody's. `git config --worktree` doesn't, once the repository has the extension for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lessor.git.command import run_git
from lessor.git.layout import layout_of
from lessor.git.registry import find_linked, worktree_lock
from lessor.git.repository import Repository

_EXTENSION = "extensions.worktreeConfig"


def configure_worktree(repo: Repository, path: Path, settings: Mapping[str, str]) -> None:
    """Set configuration of the linked worktree at `path` alone, such as `user.name`.

    The first call in a repository turns `extensions.worktreeConfig` on in the shared
    configuration; nothing else is ever written there.

    Raises:
        WorktreeError: There is no such linked worktree.
        GitError: Git refuses a key, or the configuration can't be written.
    """
    with worktree_lock(repo):
        layout = layout_of(find_linked(repo, path).path)
        _enable(repo)
        for key, value in settings.items():
            layout.git(["config", "--worktree", key, value])


def _enable(repo: Repository) -> None:
    asked = ["config", "--local", "--type=bool", "--get", _EXTENSION]
    if repo.git(asked, check=False).text != "true":
        repo.git(["config", "--local", _EXTENSION, "true"])
    # git-worktree(1): with the extension on, these two hold for every worktree unless they move to
    # the main one's own file. Run again, it finishes what a crash left half done.
    for key in ("core.bare", "core.worktree"):
        found = repo.git(["config", "--local", "--get", key], check=False)
        if found.code != 0 or (key == "core.bare" and found.text != "true"):
            continue
        own = str(repo.common_dir / "config.worktree")
        run_git(["config", "--file", own, key, found.text], cwd=repo.common_dir)
        repo.git(["config", "--local", "--unset", key])
