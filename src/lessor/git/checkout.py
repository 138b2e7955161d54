"""A clean checkout of one exact commit, warm from the last one, for checks to run in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.command import CHECKOUT_TIMEOUT_S
from lessor.git.index import hidden_edits, read_index
from lessor.git.layout import Layout, linked_layout
from lessor.git.lock import file_lock
from lessor.git.ownership import VERIFY
from lessor.git.registry import find_linked, list_worktrees, plain_place, worktree_lock
from lessor.git.repository import Repository
from lessor.git.revision import resolve_commit
from lessor.git.status import read_status

_LOCK_WAIT_MS = 3_600_000


@contextmanager
def checked_out(
    repo: Repository, *, path: Path, commit: str, wait_ms: int = _LOCK_WAIT_MS
) -> Iterator[Path]:
    """Hold the verify worktree at `path` with exactly `commit` in it, for the block.

    It is made on first use and kept: ignored files (dependencies, build caches) stay from one
    commit to the next, so that setup is quick. Tracked files are reset and untracked ones deleted,
    in this worktree alone, which nobody works in. Another process waits, up to `wait_ms`.

    Raises:
        WorktreeError: Something else is at `path`, or it can't be brought to the commit.
        GitError: `commit` names none, or git refuses.
        BusyError: Another process's checks ran for all of `wait_ms`.
    """
    place = plain_place(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(place.with_name(f"{place.name}.lock"), wait_ms=wait_ms):
        oid = resolve_commit(repo.common_dir, commit)
        if not place.exists():
            _make(repo, place, oid)
        _refuse_foreign(repo, place)
        layout = linked_layout(place)
        _reset(layout, oid)
        _refuse_unclean(layout, oid)
        yield place


def _make(repo: Repository, place: Path, oid: str) -> None:
    with worktree_lock(repo):
        stale = any(entry.path == place for entry in list_worktrees(repo))
        if stale:  # its directory was deleted by hand; nobody works here, so nothing is lost
            _refuse_foreign(repo, place)
            repo.git(["worktree", "unlock", "--", str(place)])
            repo.git(["worktree", "remove", "--", str(place)])
        repo.git(
            ["worktree", "add", "--detach", "--lock", "--reason", VERIFY, "--", str(place), oid],
            timeout_s=CHECKOUT_TIMEOUT_S,
        )


def _refuse_foreign(repo: Repository, place: Path) -> None:
    entry = find_linked(repo, place)
    if entry.locked_reason != VERIFY or not entry.detached:
        raise WorktreeError(
            f"{place} isn't a worktree for checks; somebody may work in it.",
            next_step="Choose another place for the checks.",
            path=str(place),
        )


def _reset(layout: Layout, oid: str) -> None:
    layout.git(["checkout", "--detach", "--force", "--quiet", oid], timeout_s=CHECKOUT_TIMEOUT_S)
    # Twice -f: repositories that a check made for itself. Never -x: that would cool the caches.
    layout.git(["clean", "-ffdq"], timeout_s=CHECKOUT_TIMEOUT_S)


def _refuse_unclean(layout: Layout, oid: str) -> None:
    status = read_status(layout)
    # Tracked files that "differ" right after a forced checkout differ by their line-end filters.
    left = (*status.untracked, *hidden_edits(layout, read_index(layout)))
    if status.head != oid or left:
        raise GitError(
            f"{layout.path} can't be brought to commit {oid[:12]}.",
            next_step="Look at what a check left there.",
            path=str(layout.path),
            left=list(left),
        )
