"""Everything a worktree holds and no branch does, saved before anybody removes anything.

What git tracks or would track becomes one commit below `refs/lessor/salvage/`: its tree is the
work tree byte for byte, its parents are HEAD, the staged tree where that differs, and every commit
that only this worktree knew. What git ignores, and repositories inside the worktree, become a tar
archive beside it that never leaves the machine. The work tree and its index aren't touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.archive import FILES, write_archive
from lessor.git.capture import capture, staged_tree
from lessor.git.command import DURABLY, run_git
from lessor.git.identity import LESSOR, identity
from lessor.git.ignored import Fingerprint
from lessor.git.index import Index, read_index
from lessor.git.layout import Layout, linked_layout
from lessor.git.modes import modes_text, read_modes
from lessor.git.progress import operations_in_progress
from lessor.git.refs import create_ref, is_broken, read_ref, salvage_refs
from lessor.git.stash import stashed_on
from lessor.git.status import Status, read_status, refuse_unread
from lessor.git.understood import understood
from lessor.git.unreachable import is_kept, unreachable_commits
from lessor.git.unseen import unseen_edits
from lessor.git.unversioned import unversioned


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """What was saved: a commit and its reference, an archive, or neither where nothing needed it.

    `files` are the paths in both whose bytes HEAD doesn't hold.
    """

    ref: str | None
    commit: str | None
    archive: Path | None
    files: tuple[str, ...]


def salvage(
    worktree: Path,
    *,
    common_dir: Path,
    task: str,
    epoch: int,
    snapshot: Mapping[str, Fingerprint],
    archive_dir: Path,
) -> Salvage:
    """Save what `worktree` holds and no branch does; the same state is saved once.

    `snapshot` is setup's (see `take_snapshot`): what it lists and nobody changed isn't saved.

    Raises:
        WorktreeError: `worktree` isn't one of this repository.
        GitError: Something couldn't be saved; a reference that was made stays.
    """
    layout = linked_layout(worktree)
    if layout.common_dir != common_dir.resolve():
        raise WorktreeError(f"{worktree} isn't a worktree of {common_dir}.", path=str(worktree))
    try:
        status, index = read_status(layout), read_index(layout)
        refuse_unread(layout, status)
        ref, commit, paths = _keep(layout, status, index, task=task, epoch=epoch)
        members = unversioned(layout, status, index, snapshot=snapshot)
    except OSError as refused:
        raise GitError(
            f"{worktree} can't be read: {refused}.",
            next_step="Nothing was removed; mend the cause and try again.",
            path=str(worktree),
        ) from refused
    name = f"{task}-{epoch}"
    archive = write_archive(archive_dir, name, members=members) if members else None
    archived = (member.removeprefix(FILES) for member in members if member.startswith(FILES))
    return Salvage(
        ref=ref, commit=commit, archive=archive, files=tuple(sorted({*paths, *archived}))
    )


def salvage_entry(git_dir: Path, *, common_dir: Path, task: str, epoch: int) -> str | None:
    """Save what the entry of a worktree knows whose directory is gone; the reference, if any.

    That is what was staged, and the commits that only its HEAD and reflog know.

    Raises:
        GitError: It couldn't be saved.
    """
    at_head = run_git(
        ["rev-parse", "-q", "--verify", "HEAD"], cwd=git_dir, git_dir=git_dir, check=False
    )
    head = at_head.text or None
    tree = _head_tree(git_dir, head)
    staged = staged_tree(git_dir) or tree
    tips = unreachable_commits(git_dir, head=head).tips
    if staged == tree and not tips:
        return None
    note = "Its directory was gone; this is what was staged.\n"
    ref, _ = _pin(common_dir, staged, _distinct([head, *tips]), note=note, task=task, epoch=epoch)
    return ref


def _keep(
    layout: Layout, status: Status, index: Index, *, task: str, epoch: int
) -> tuple[str | None, str | None, Sequence[str]]:
    found = capture(layout, status, hidden=unseen_edits(layout, index, status))
    tree = _head_tree(layout.git_dir, status.head)
    stashed = (entry.commit for entry in stashed_on(layout, status.branch))
    tips = (
        *unreachable_commits(layout.git_dir, head=status.head).tips,
        *(commit for commit in stashed if not is_kept(layout.git_dir, commit)),
    )
    if found.tree == found.staged == tree and not tips:
        return None, None, ()
    parents = [status.head]
    if found.staged not in {tree, found.tree}:
        # The same date each time, so that the same state is the same commit.
        parents.append(
            _commit(
                layout.common_dir,
                found.staged,
                _distinct(parents),
                message=f"staged in {layout.git_dir.name}\n",
                date="@0 +0000",
            )
        )
    operations = ", ".join(operations_in_progress(layout.git_dir)) or "nothing"
    note = f"On {status.branch or 'a detached HEAD'}, {operations} in progress."
    ref, commit = _pin(
        layout.common_dir,
        found.tree,
        _distinct([*parents, *tips]),
        note=f"{note}\n{modes_text(layout.path, found.paths)}",
        task=task,
        epoch=epoch,
    )
    return ref, commit, found.paths


def _pin(
    common_dir: Path, tree: str, parents: Sequence[str], *, note: str, task: str, epoch: int
) -> tuple[str, str]:
    message = f"salvage of task {task}, epoch {epoch}\n\n{note}"
    commit = ""
    number = 1
    while True:
        ref = f"{salvage_refs(task, epoch)}{number}"
        try:
            kept = read_ref(common_dir, ref)
        except GitError as refused:
            if not is_broken(refused):
                raise
            number += 1  # what it was is for a person to find out; this is saved beside it
            continue
        if kept is not None and _holds(common_dir, kept, tree, parents, message):
            return ref, kept
        if kept is None:
            commit = commit or _commit(common_dir, tree, parents, message=message)
            if create_ref(common_dir, ref, commit):
                return ref, commit
        number += 1


def _commit(
    common_dir: Path, tree: str, parents: Sequence[str], *, message: str, date: str | None = None
) -> str:
    options = [option for parent in parents for option in ("-p", parent)]
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
    return run_git(
        [*DURABLY, "commit-tree", tree, *options],
        cwd=common_dir,
        git_dir=common_dir,
        input=message.encode("utf-8", "surrogateescape"),
        env={**identity(LESSOR), **dates},
    ).text


def _holds(common_dir: Path, commit: str, tree: str, parents: Sequence[str], message: str) -> bool:
    # Fewer parents are held as well: what the first salvage pinned is reachable for the second.
    args = ["log", "-1", "--format=%T %P%n%B", commit, "--"]
    head, _, body = run_git(args, cwd=common_dir, git_dir=common_dir).text.partition("\n")
    with understood(f"the salvage {commit[:12]}"):
        kept_tree, *kept = head.split()
    same_commits = kept[:1] == list(parents[:1]) and set(parents) <= set(kept)
    return kept_tree == tree and same_commits and read_modes(body) == read_modes(message)


def _head_tree(git_dir: Path, head: str | None) -> str:
    if head is None:
        args = ["hash-object", "-t", "tree", "/dev/null"]
        return run_git(args, cwd=git_dir, git_dir=git_dir).text
    return run_git(["rev-parse", f"{head}^{{tree}}"], cwd=git_dir, git_dir=git_dir).text


def _distinct(parents: Sequence[str | None]) -> list[str]:
    return list(dict.fromkeys(parent for parent in parents if parent is not None))
