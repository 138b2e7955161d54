"""Whether a worktree holds work: the question to answer before anything is removed.

`git worktree remove` succeeding proves nothing. It takes ignored files, nested repositories,
commits on a detached HEAD, commits that only the reflog knows, half a rebase and edits that git was
told not to see, all without a word (tried with git 2.39).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.ignored import Fingerprint, Ignored, find_ignored
from lessor.git.index import Index, hidden_edits, read_index
from lessor.git.layout import Layout, layout_of
from lessor.git.ownership import is_lessors, lock_reason
from lessor.git.progress import git_locks, operations_in_progress
from lessor.git.revision import resolve_commit
from lessor.git.status import Status, read_status
from lessor.git.submodule import has_own_commits, submodule_stores, submodules
from lessor.git.unreachable import HEAD_REFLOG, is_kept, unreachable_commits

_NAMED = 3


class Verdict(StrEnum):
    """What a look at a worktree found.

    EMPTY: nothing happened since the base. KEPT: its commits stay on a branch, and every ignored
    file is as setup left it. HOLDS_WORK: removing it would lose something. IN_USE: somebody is
    inside. UNKNOWN: nobody could look; it never counts as empty.
    """

    EMPTY = "empty"
    KEPT = "kept"
    HOLDS_WORK = "holds-work"
    IN_USE = "in-use"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A verdict on one worktree, its reasons, and what it was judged by.

    `commits` are those of base..HEAD, newest first; `dirty` the paths whose bytes no commit holds;
    `branch` is None on a detached HEAD.
    """

    path: Path
    verdict: Verdict
    reasons: tuple[str, ...]
    commits: tuple[str, ...] = ()
    dirty: tuple[str, ...] = ()
    head: str = ""
    branch: str | None = None
    base: str
    snapshot: Mapping[str, Fingerprint] = field(repr=False)

    @property
    def may_be_removed(self) -> bool:
        """Whether removing the worktree loses nothing."""
        return self.verdict in {Verdict.EMPTY, Verdict.KEPT}


def take_snapshot(worktree: Path) -> Mapping[str, Fingerprint]:
    """The size in bytes and the time of change in nanoseconds of each ignored file, by path.

    Taken once setup has finished, it tells what setup made from what an agent made. Dependencies
    and caches are left out: they are nobody's work.

    Raises:
        GitError: Git couldn't look.
        OSError: A file couldn't be looked at.
    """
    layout = layout_of(worktree)
    return ignored_in(layout, read_status(layout), read_index(layout)).files


def inspect_worktree(
    path: Path,
    *,
    base: str,
    snapshot: Mapping[str, Fingerprint],
    occupants: Sequence[str] = (),
) -> Inspection:
    """Judge the worktree at `path` against the commit it started from and setup's snapshot.

    `occupants` names who the caller found inside (processes with their working directory there).
    It writes nothing, not even the index, and it never raises for what it finds: a look that fails
    is a verdict.
    """
    try:
        return _judge(layout_of(path), base=base, snapshot=snapshot, occupants=occupants)
    except (GitError, OSError) as refused:
        return Inspection(
            path=path,
            verdict=Verdict.UNKNOWN,
            reasons=(str(refused),),
            base=base,
            snapshot=snapshot,
        )


def ignored_in(layout: Layout, status: Status, index: Index) -> Ignored:
    """The ignored files of a work tree and of its submodules, by path below the top.

    Raises:
        GitError: Git couldn't look.
        OSError: A directory couldn't be read.
    """
    found = find_ignored(layout.path, status.ignored)
    for inner in submodules(layout, index):
        below = ignored_in(inner, read_status(inner), read_index(inner))
        prefix = inner.path.relative_to(layout.path).as_posix()
        found.files.update({f"{prefix}/{path}": mark for path, mark in below.files.items()})
        found.repositories += [f"{prefix}/{path}" for path in below.repositories]
    return found


def _judge(
    layout: Layout,
    *,
    base: str,
    snapshot: Mapping[str, Fingerprint],
    occupants: Sequence[str],
) -> Inspection:
    _refuse_unreadable(layout)
    status, index = read_status(layout), read_index(layout)
    if status.head is None:
        raise WorktreeError("HEAD is on a branch without a commit.", path=str(layout.path))
    start = resolve_commit(layout.common_dir, base)
    uncommitted = {change.path for change in status.changed} | set(status.untracked)
    hidden = hidden_edits(layout, index)
    made = ignored_in(layout, status, index).changed_since(snapshot)
    reasons = (
        *_of_files("uncommitted", sorted(uncommitted)),
        *_of_files("edited behind --assume-unchanged or --skip-worktree", hidden),
        *_of_files("ignored and not from setup", made),
        *_of_operations(layout),
        *_of_commits(layout, status),
        *_of_submodules(layout, index),
        *_of_stash(layout, status),
    )
    if occupants:
        verdict, reasons = Verdict.IN_USE, (f"in use by {', '.join(occupants)}", *reasons)
    elif reasons:
        verdict = Verdict.HOLDS_WORK
    else:
        nothing = status.head == start and status.branch is not None
        verdict = Verdict.EMPTY if nothing else Verdict.KEPT
    return Inspection(
        path=layout.path,
        verdict=verdict,
        reasons=reasons,
        commits=tuple(layout.git(["rev-list", f"{start}..{status.head}"]).lines),
        dirty=tuple(sorted({*uncommitted, *hidden, *made})),
        head=status.head,
        branch=status.branch,
        base=base,
        snapshot=snapshot,
    )


def _refuse_unreadable(layout: Layout) -> None:
    if (layout.common_dir / "reftable").is_dir():
        # Operations in progress are references there, and HEAD's reflog is no file (git 2.45 on).
        raise WorktreeError("This repository keeps its references in reftables.")
    if not (layout.git_dir / HEAD_REFLOG).is_file():
        raise WorktreeError("HEAD has no reflog, so commits may have been reset away unseen.")
    locks = git_locks(layout.git_dir)
    if locks:
        raise WorktreeError(
            f"A git command runs here or died here: {', '.join(locks)}.",
            next_step=f"If none runs, delete the lock in {layout.git_dir}.",
        )


def _of_files(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    if not paths:
        return ()
    named = ", ".join(paths[:_NAMED])
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return (f"{what}: {named}{more}",)


def _of_operations(layout: Layout) -> tuple[str, ...]:
    running = tuple(f"{name} in progress" for name in operations_in_progress(layout.git_dir))
    reason = lock_reason(layout.git_dir)
    foreign = reason is not None and not is_lessors(reason)
    return (*running, *((f"locked by somebody else: {reason}",) if foreign else ()))


def _of_commits(layout: Layout, status: Status) -> tuple[str, ...]:
    lost = unreachable_commits(layout.git_dir, head=status.head)
    found = [f"commit {tip[:12]} is on no branch" for tip in lost.tips]
    detached = status.branch is None and status.head is not None
    if detached and not found and not is_kept(layout.git_dir, status.head or ""):
        found.append("HEAD is detached at a commit that no branch keeps")
    return tuple(found)


def _of_submodules(layout: Layout, index: Index) -> tuple[str, ...]:
    if not layout.is_linked:
        return ()
    stores = (store for store in submodule_stores(layout.git_dir) if has_own_commits(store))
    found = [f"submodule {store.name} has commits of its own" for store in stores]
    for inner in submodules(layout, index):
        found += _of_files("edited out of sight", hidden_edits(inner, read_index(inner)))
    return tuple(found)


def _of_stash(layout: Layout, status: Status) -> tuple[str, ...]:
    # The stash is the repository's, and its entries name the branch only.
    listed = layout.git(["log", "-g", "--format=%gd%x09%gs", "refs/stash", "--"], check=False)
    if listed.code != 0 or status.branch is None:
        return ()
    entries = (line.partition("\t") for line in listed.lines)
    made_here = (f"WIP on {status.branch}:", f"On {status.branch}:")
    return tuple(
        f"{name} was stashed on this branch"
        for name, _, subject in entries
        if subject.startswith(made_here)
    )
