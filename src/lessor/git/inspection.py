"""Whether a worktree holds work: the question to answer before anything is removed.

`git worktree remove` succeeding proves nothing. It takes ignored files, nested repositories,
commits on a detached HEAD, commits that only the reflog knows, half a rebase and edits that git was
told not to see, all without a word (tried with git 2.39).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.ignored import Fingerprint, Ignored, find_ignored
from lessor.git.index import Index, read_index
from lessor.git.layout import Layout, layout_of, linked_layout
from lessor.git.ownership import is_lessors, lock_reason
from lessor.git.progress import git_locks, operations_in_progress
from lessor.git.reflog import is_reftable
from lessor.git.revision import resolve_commit
from lessor.git.stash import stashed_on
from lessor.git.status import Status, read_status, refuse_unread
from lessor.git.submodule import has_own_commits, submodule_stores, submodules
from lessor.git.unreachable import HEAD_REFLOG, is_kept, unreachable_commits
from lessor.git.unseen import unseen_edits

_NAMED = 3
_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


Occupants = Callable[[Path], Sequence[str] | None]
"""Who is inside a directory, named for people; None where nobody can tell."""


class Verdict(StrEnum):
    """What a look at a worktree found.

    EMPTY: nothing happened since the base. MERGED: its commits are in a target already. KEPT: they
    stay on a branch, and every ignored file is as setup left it. HOLDS_WORK: removing it would lose
    something. IN_USE: somebody is inside. UNKNOWN: nobody could look; it never counts as empty.
    """

    EMPTY = "empty"
    MERGED = "merged"
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
        return self.verdict in {Verdict.EMPTY, Verdict.MERGED, Verdict.KEPT}


def take_snapshot(worktree: Path) -> Mapping[str, Fingerprint]:
    """The size in bytes and the time of change in nanoseconds of each ignored file, by path.

    Taken once setup has finished, it tells what setup made from what an agent made. Dependencies
    and caches are left out: they are nobody's work. What may not be read is left out as well, and
    so counts as work for ever: a container that setup started may keep its data there.

    Raises:
        GitError: Git couldn't look.
        OSError: A file couldn't be looked at.
    """
    layout = layout_of(worktree)
    status, index = read_status(layout), read_index(layout)
    return ignored_in(layout, status, index, readable_alone=True).files


def inspect_worktree(
    path: Path,
    *,
    base: str,
    snapshot: Mapping[str, Fingerprint],
    occupants: Occupants,
) -> Inspection:
    """Judge the worktree at `path` against the commit it started from and setup's snapshot.

    It writes nothing, not even the index, and it never raises for what it finds: a look that fails
    is a verdict. Whether commits that are kept are merged, `what_landed` says of all branches.
    """
    try:
        layout = replace(linked_layout(path), only_looks=True)
        found = _judge(layout, base=base, snapshot=snapshot)
        return _with_occupants(found, occupants(found.path))
    except (GitError, OSError) as refused:
        return Inspection(
            path=path,
            verdict=Verdict.UNKNOWN,
            reasons=(str(refused),),
            base=base,
            snapshot=snapshot,
        )


def ignored_in(
    layout: Layout, status: Status, index: Index, *, readable_alone: bool = False
) -> Ignored:
    """The ignored files of a work tree and of its submodules, by path below the top.

    `readable_alone` is as in `find_ignored`.

    Raises:
        GitError: Git couldn't look.
        OSError: A directory couldn't be read.
    """
    found = find_ignored(layout.path, status.ignored, readable_alone=readable_alone)
    for inner in submodules(layout, index):
        below = ignored_in(
            inner, read_status(inner), read_index(inner), readable_alone=readable_alone
        )
        prefix = inner.path.relative_to(layout.path).as_posix()
        found.files.update({f"{prefix}/{path}": mark for path, mark in below.files.items()})
        found.repositories += [f"{prefix}/{path}" for path in below.repositories]
    return found


def _judge(
    layout: Layout,
    *,
    base: str,
    snapshot: Mapping[str, Fingerprint],
) -> Inspection:
    _refuse_unreadable(layout)
    status, index = read_status(layout), read_index(layout)
    refuse_unread(layout, status)
    if status.head is None:
        raise WorktreeError("HEAD is on a branch without a commit.", path=str(layout.path))
    start = base if _FULL_ID.fullmatch(base) else resolve_commit(layout.common_dir, base)
    uncommitted = {change.path for change in status.changed} | set(status.untracked)
    hidden = unseen_edits(layout, index, status)
    made = ignored_in(layout, status, index).changed_since(snapshot)
    reasons = (
        *_of_files("uncommitted", sorted(uncommitted)),
        *_of_files("edited out of sight", hidden),
        *_of_files("ignored and not from setup", made),
        *_of_operations(layout),
        *_of_commits(layout, status),
        *_of_submodules(layout, index),
        *_of_stash(layout, status),
    )
    if reasons:
        verdict = Verdict.HOLDS_WORK
    else:
        nothing = status.head == start and status.branch is not None
        verdict = Verdict.EMPTY if nothing else Verdict.KEPT
    return Inspection(
        path=layout.path,
        verdict=verdict,
        reasons=reasons,
        commits=_commits_since(layout, start, status.head),
        dirty=tuple(sorted({*uncommitted, *hidden, *made})),
        head=status.head,
        branch=status.branch,
        base=base,
        snapshot=snapshot,
    )


def _commits_since(layout: Layout, start: str, head: str) -> tuple[str, ...]:
    if head == start:
        return ()
    # Git refuses a base that isn't here: what came after it, nobody can tell then.
    return tuple(layout.git(["rev-list", f"{start}..{head}", "--"]).lines)


def _with_occupants(found: Inspection, inside: Sequence[str] | None) -> Inspection:
    if inside is None:
        reason = "whether a process works in it can't be told on this system"
        return replace(found, verdict=Verdict.UNKNOWN, reasons=(reason, *found.reasons))
    if not inside:
        return found
    named = _of_files("in use by", inside)
    return replace(found, verdict=Verdict.IN_USE, reasons=(*named, *found.reasons))


def _refuse_unreadable(layout: Layout) -> None:
    if is_reftable(layout.common_dir):
        # Operations in progress are references there, and HEAD's reflog is no file (git 2.45 on).
        raise WorktreeError("This repository keeps its references in reftables")
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
    stores = list(submodule_stores(layout.git_dir)) if layout.is_linked else []
    found: list[str] = []
    for inner in submodules(layout, index):
        found += _of_files(
            "edited out of sight", unseen_edits(inner, read_index(inner), read_status(inner))
        )
        if inner.git_dir.is_relative_to(layout.path):
            stores.append(inner.git_dir)  # added as a repository, never as a submodule
    found += [
        f"submodule {_store_name(layout, store)} has commits of its own"
        for store in stores
        if has_own_commits(store)
    ]
    return tuple(found)


def _store_name(layout: Layout, store: Path) -> str:
    if store.is_relative_to(layout.path):
        return store.parent.relative_to(layout.path).as_posix()
    return store.name


def _of_stash(layout: Layout, status: Status) -> tuple[str, ...]:
    where = "on a detached HEAD" if status.branch is None else "on this branch"
    return tuple(
        f"{entry.name} was stashed {where}"
        for entry in stashed_on(layout, status.branch)
        if not is_kept(layout.git_dir, entry.commit)
    )
