"""A worktree on its way out: moved aside in one step, looked at once more, then deleted by git.

Where it was, anybody may put something new; beside it, under a name that nobody works in, nothing
comes in any more between the last look and the deletion. The name and the mark in its git entry
tell the next removal how far an interrupted one got.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from lessor.clock import SystemClock
from lessor.errors import GitError, WorktreeError
from lessor.git.command import CHECKOUT_TIMEOUT_S
from lessor.git.complaint import failure
from lessor.git.layout import entry_path, lacks_pointer
from lessor.git.registry import Worktree
from lessor.git.repository import Repository

_PREFIX = ".leaving-"
_MARK = "lessor-leaving"
_LONGEST_TICK_MS = 3_000


def leaving_path(path: Path) -> Path:
    """Where the worktree at `path` is while it is taken away."""
    return path.with_name(f"{_PREFIX}{path.name}")


def is_leaving(path: Path) -> bool:
    """Whether `path` is where a worktree is while it is taken away."""
    return path.name.startswith(_PREFIX)


def move_aside(repo: Repository, entry: Worktree) -> Path:
    """Move a worktree to where it is deleted; its entry and its lock go with it.

    Raises:
        WorktreeError: Something is there already, or it can't be moved.
    """
    aside = leaving_path(entry.path)
    _rename(entry.path, aside)
    try:
        point_to(repo, entry.git_dir, aside)
    except GitError:
        _rename(aside, entry.path)
        raise
    return aside


def move_back(repo: Repository, git_dir: Path, aside: Path) -> Path:
    """Undo `move_aside`; where the worktree is again.

    Raises:
        WorktreeError: Something has taken its place, or it can't be moved.
    """
    path = aside.with_name(aside.name.removeprefix(_PREFIX))
    _rename(aside, path)
    point_to(repo, git_dir, path)
    return path


def point_to(repo: Repository, git_dir: Path, path: Path) -> None:
    """Tell a worktree's entry where its directory is now.

    Raises:
        WorktreeError: Git didn't take it.
    """
    # Git goes on to all others, and fails where one of them can't be mended: that is not of this one.
    done = repo.git(["worktree", "repair", "--", str(path)], check=False)
    if entry_path(git_dir) != path:
        said = failure(["worktree"], done).message if done.code != 0 else ""
        raise WorktreeError(
            f"git didn't take {path} for the worktree of {git_dir}. {said}".rstrip(),
            next_step=f"Mend it: git worktree repair {path}",
            path=str(path),
        )


def mark_begun(git_dir: Path) -> None:
    """Note that everything in the worktree was proven expendable, and that its deletion begins.

    Raises:
        OSError: It can't be written.
    """
    file_time_ns(git_dir)  # what the last look has seen is older than the note
    (git_dir / _MARK).touch()
    handle = os.open(git_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def unmark(git_dir: Path) -> None:
    """Take the note back: git refused before it deleted anything."""
    (git_dir / _MARK).unlink(missing_ok=True)


def has_begun(git_dir: Path) -> bool:
    """Whether the deletion of the worktree with this entry has begun."""
    return (git_dir / _MARK).is_file()


def changed_since_begun(git_dir: Path, aside: Path) -> list[str]:
    """Files that somebody wrote or moved into a worktree whose deletion had begun.

    Raises:
        OSError: It can't be looked at.
    """
    return changed_from((git_dir / _MARK).stat().st_ctime_ns, aside)


def file_time_ns(directory: Path) -> int:
    """The time by which files of the directory's disk are dated from now on, in nanoseconds.

    Nothing that was done before has it: a disk dates by ticks of some milliseconds.

    Raises:
        OSError: Nothing can be written there.
    """
    clock = SystemClock()
    before = _dated_ns(directory)
    for _ in range(_LONGEST_TICK_MS):
        now = _dated_ns(directory)
        if now != before:
            return now
        clock.wait(1)
    return before  # its clock stands still: what was done before counts as well


def _dated_ns(directory: Path) -> int:
    with tempfile.TemporaryFile(dir=directory) as file:
        return os.fstat(file.fileno()).st_ctime_ns


def changed_from(time_ns: int, top: Path) -> list[str]:
    """What somebody wrote or moved below `top` from a time on, but for its `.git` file.

    Raises:
        OSError: It can't be looked at.
    """
    found: list[str] = []
    for directory, below, files in os.walk(top, onerror=_refuse):
        for name in (*below, *files):
            path = Path(directory, name)
            if path != top / ".git" and _came_from(time_ns, path.lstat()):
                found.append(path.relative_to(top).as_posix())
    return sorted(found)


def _came_from(time_ns: int, found: os.stat_result) -> bool:
    """Whether it was written or moved at the time or after it.

    What is moved keeps the time of its bytes, and not that of its entry. A directory in which
    something was made or deleted has one time for both; what is in it tells by itself.
    """
    only_within = stat.S_ISDIR(found.st_mode) and found.st_ctime_ns == found.st_mtime_ns
    return found.st_ctime_ns >= time_ns and not only_within


def delete(repo: Repository, git_dir: Path, aside: Path) -> None:
    """Let git delete a worktree that was moved aside and marked, and unregister it.

    Raises:
        GitError: Git refused, or left something; what is left is left.
    """
    _restore_pointer(git_dir, aside)
    # Twice: it stays locked until git unregisters it, so that no prune takes the entry before.
    repo.git(
        ["worktree", "remove", "--force", "--force", "--", str(aside)],
        timeout_s=CHECKOUT_TIMEOUT_S,
    )
    if aside.exists() or git_dir.exists():
        raise WorktreeError(
            f"git reported {aside} removed, and it is still there.", path=str(aside)
        )


def _rename(source: Path, target: Path) -> None:
    if os.path.lexists(target):
        raise WorktreeError(
            f"{source} can't be moved: {target} is in the way.",
            next_step=f"Look at it: ls -la {target}",
            path=str(source),
        )
    try:
        source.rename(target)
    except OSError as refused:
        raise WorktreeError(
            f"{source} can't be moved to {target}: {refused.strerror}.", path=str(source)
        ) from refused


def _restore_pointer(git_dir: Path, aside: Path) -> None:
    # Git deletes in the directory's own order: this file may have gone first, and without it git
    # refuses to go on.
    pointer = aside / ".git"
    if lacks_pointer(aside):
        pointer.write_bytes(b"gitdir: " + os.fsencode(git_dir) + b"\n")


def _refuse(error: OSError) -> None:
    raise error
