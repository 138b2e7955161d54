"""Half of a worktree made whole: an entry without its directory, a directory without its entry.

A crash, a hand-typed `rm -rf` or another tool's clean-up leaves one half. What the half still
knows is kept: the branch stays, files stay, staged content and reflog-only commits are saved.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lessor.errors import WorktreeError
from lessor.git.command import run_git
from lessor.git.complaint import failure
from lessor.git.layout import lacks_pointer, layout_of
from lessor.git.leaving import point_to
from lessor.git.ownership import is_lessors, lock_reason
from lessor.git.progress import (
    BISECT_START,
    DETACHED_REBASE,
    HEAD_LOCKS,
    branch_in_progress,
    rebase_head_name,
)
from lessor.git.reflog import HANDED_ON
from lessor.git.refs import BRANCHES, read_ref
from lessor.git.registry import Worktree, entries
from lessor.git.repository import Repository
from lessor.git.salvage import salvage_entry

_TRIES = 5
_HEALED = "lessor-healed"


def detach_entry(git_dir: Path) -> None:
    """Take the branch off a worktree's HEAD, and out of what would come back to it.

    Commits made there from now on move nothing but that HEAD, and the end of a rebase or a bisect
    leaves it at a commit. Files and index stay as they are.

    Raises:
        WorktreeError: A git command holds HEAD's lock there, and may move the branch yet.
        GitError: HEAD is at no commit, or can't be moved.
    """
    head = _detach(git_dir)
    head_name = rebase_head_name(git_dir)
    if head_name is not None:
        # Its end would move the branch that this file names; git 2.39 moves it only when the name
        # starts with refs/.
        _rewrite(head_name, DETACHED_REBASE)
    elif bisected := branch_in_progress(git_dir):
        # It goes back to what this file names, and git keeps everybody else from that branch.
        _rewrite(git_dir / BISECT_START, read_ref(git_dir, f"{BRANCHES}{bisected}") or head)


def _detach(git_dir: Path) -> str:
    """Put HEAD at the commit that its branch is at, even while somebody commits there."""
    tries = 0
    while True:
        head = run_git(["rev-parse", "--verify", "HEAD"], cwd=git_dir, git_dir=git_dir).text
        args = ["update-ref", "--no-deref", "-m", HANDED_ON, "HEAD", head, head]
        moved = run_git(args, cwd=git_dir, git_dir=git_dir, check=False)
        if moved.code == 0:
            return head
        lock = next((git_dir / name for name in HEAD_LOCKS if (git_dir / name).exists()), None)
        if lock is not None:
            raise WorktreeError(
                f"A git command holds {lock}, and may move the branch yet.",
                next_step="The branch can be handed on when it ends. If no git runs there any "
                "more, remove that file.",
                lock=str(lock),
            )
        tries += 1
        if tries == _TRIES:
            raise failure(args, moved)


def _rewrite(file: Path, text: str) -> None:
    """Change one of git's notes in one step."""
    rewritten = file.with_name(f"{file.name}.lessor")
    rewritten.write_text(f"{text}\n")
    rewritten.replace(file)


def forget_entry(
    repo: Repository, *, git_dir: Path, path: Path, task: str, epoch: int
) -> str | None:
    """Unregister a worktree whose directory is gone, after saving what only its entry knew.

    The reference of what was saved is returned, if anything was.

    Raises:
        GitError: Something couldn't be saved, or git refuses.
    """
    ref = salvage_entry(git_dir, common_dir=repo.common_dir, task=task, epoch=epoch)
    # Twice: it is locked.
    repo.git(["worktree", "remove", "--force", "--force", "--", str(path)])
    return ref


def restore_pointer(entry: Worktree, path: Path) -> None:
    """Write the `.git` file of a directory that has lost it, and that git still knows.

    Raises:
        WorktreeError: There is a `.git`, no directory, or the entry is another tool's.
    """
    pointer = path / ".git"
    if not lacks_pointer(path) or not path.is_dir() or not entry.is_lessors:
        raise WorktreeError(
            f"{path} isn't half a worktree of Lessor's.",
            next_step="`git worktree list` shows what git knows of it.",
            path=str(path),
        )
    pointer.write_bytes(b"gitdir: " + os.fsencode(entry.git_dir) + b"\n")


def reattach(repo: Repository, *, path: Path, reason: str, source: Sequence[str]) -> None:
    """Register a directory whose entry is gone; its files stay and show as changes against HEAD.

    `source` are the arguments of `git worktree add` that name branch and commit.

    Raises:
        WorktreeError: The directory never was a worktree of this repository.
        GitError: Git refuses.
    """
    _refuse_foreign(repo, path)
    beside = _beside(path)
    lock = ["--no-checkout", "--lock", "--reason", reason]
    options, names = source[:-1], source[-1:]
    repo.git(
        [
            "-c",
            "core.logAllRefUpdates=true",
            "worktree",
            "add",
            *lock,
            *options,
            "--",
            str(beside),
            *names,
        ]
    )
    # Before anybody can take the new entry for one that knows what the old one knew.
    git_dir = layout_of(beside).git_dir
    (git_dir / _HEALED).touch()
    # The one file of the new worktree replaces the pointer into nowhere, in one step.
    (beside / ".git").replace(path / ".git")
    beside.rmdir()
    point_to(repo, git_dir, path)
    layout_of(path).git(["read-tree", "HEAD"])


def was_healed(git_dir: Path) -> bool:
    """Whether this entry was made for a directory that had lost its own, with all that one noted."""
    return (git_dir / _HEALED).exists()


def take_back_healing(repo: Repository, path: Path) -> None:
    """Unregister what a healing of `path` that was killed had registered; its branch stays.

    Nobody was ever in it: it has no index, and no file but the pointer that was to replace the
    directory's own. Where that had been replaced, it now leads to an entry that is gone, as before.

    Raises:
        GitError: Git refuses.
    """
    beside = _beside(path)
    begun = next((git_dir for place, git_dir in entries(repo.common_dir) if place == beside), None)
    if begun is None or not is_lessors(lock_reason(begun)) or (begun / "index").exists():
        return
    files = [file.name for file in beside.iterdir()] if beside.is_dir() else []
    if files not in ([], [".git"]):
        return
    if not files:
        with suppress(FileNotFoundError):
            beside.rmdir()  # git refuses a directory without its pointer
    repo.git(["worktree", "remove", "--force", "--force", "--", str(beside)])


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}-healed")


def _refuse_foreign(repo: Repository, path: Path) -> None:
    pointer = path / ".git"
    text = pointer.read_text(errors="replace") if pointer.is_file() else ""
    entry = Path(text.removeprefix("gitdir: ").rstrip("\n"))
    ours = text.startswith("gitdir: ") and entry.parent == repo.common_dir / "worktrees"
    if not ours or entry.exists():
        raise WorktreeError(
            f"{path} exists already and isn't a worktree whose entry was lost.",
            next_step="Move it away, or choose another place.",
            path=str(path),
        )
