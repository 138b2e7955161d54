"""Configuration of one worktree, kept from its siblings.

`git config` in a worktree writes what all of them share: one agent's `user.email` becomes
everybody's. `git config --worktree` doesn't, once the repository has the extension for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lessor.clock import Clock, SystemClock
from lessor.errors import GitError
from lessor.git.command import run_git
from lessor.git.complaint import failure
from lessor.git.layout import linked_layout
from lessor.git.registry import find_linked, worktree_lock
from lessor.git.repository import Repository

_EXTENSION = "extensions.worktreeConfig"
_LOCKED = "could not lock config file"
_WAIT_MS = 10_000
_RETRY_MS = 20


def configure_worktree(
    repo: Repository, path: Path, settings: Mapping[str, str], *, clock: Clock | None = None
) -> None:
    """Set configuration of the linked worktree at `path` alone, such as `user.name`.

    The first call in a repository turns `extensions.worktreeConfig` on in the shared
    configuration, and moves out of it what holds for the main worktree alone then; nothing else is
    ever written there.

    Raises:
        WorktreeError: There is no such linked worktree.
        GitError: Git refuses a key, or the configuration can't be written, or somebody else's lock
            on it stayed for ten seconds.
    """
    clock = clock or SystemClock()
    with worktree_lock(repo):
        layout = linked_layout(find_linked(repo, path).path)
        _enable(repo, clock)
        own = layout.git_dir / "config.worktree"
        for key, value in settings.items():
            _write(own, [key, value], clock)


def _write(file: Path, change: Sequence[str], clock: Clock) -> None:
    """Change one file of configuration; git gives up at once where somebody holds its lock (2.39)."""
    args = ["config", "--file", str(file), *change]
    deadline_ms = clock.boottime_ms() + _WAIT_MS
    while True:
        done = run_git(args, cwd=file.parent, check=False)
        if done.code == 0:
            return
        if _LOCKED not in done.err.decode(errors="replace"):
            raise failure(args, done)
        if clock.boottime_ms() >= deadline_ms:
            lock = file.with_name(f"{file.name}.lock")
            raise GitError(
                f"{file} can't be written: somebody has held {lock} for {_WAIT_MS // 1000} s.",
                next_step="If no git runs there any more, remove that file.",
                lock=str(lock),
            )
        clock.wait(_RETRY_MS)


def _enable(repo: Repository, clock: Clock) -> None:
    asked = ["config", "--local", "--type=bool", "--get", _EXTENSION]
    if repo.git(asked, check=False).text != "true":
        _write(repo.common_dir / "config", [_EXTENSION, "true"], clock)
    # git-worktree(1): with the extension on, these two hold for every worktree unless they move to
    # the main one's own file. Run again, it finishes what a crash left half done.
    for key in ("core.bare", "core.worktree"):
        found = repo.git(["config", "--local", "--get", key], check=False)
        if found.code != 0 or (key == "core.bare" and found.text != "true"):
            continue
        _write(repo.common_dir / "config.worktree", [key, found.text], clock)
        _write(repo.common_dir / "config", ["--unset", key], clock)
