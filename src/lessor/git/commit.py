"""Commits that Lessor makes or labels on a branch that it lent out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.authorship import read_authorship, refuse_foreign
from lessor.git.blob import GITLINK, mode_of
from lessor.git.command import DURABLY
from lessor.git.identity import LESSOR, configured_identity, identity
from lessor.git.index import read_index
from lessor.git.layout import Layout, layout_of
from lessor.git.ownership import is_lessors, lock_reason
from lessor.git.progress import operations_in_progress
from lessor.git.reflog import LABELLED
from lessor.git.revision import resolve_commit
from lessor.git.status import Status, read_status, refuse_unread, unreadable
from lessor.git.trailer import labelled
from lessor.git.understood import understood


def commit_leftovers(
    worktree: Path, *, message: str, label: str, author: tuple[str, str] | None
) -> str | None:
    """Commit what was left uncommitted, with the label's trailer; None when nothing was.

    Tracked and untracked files are taken, ignored ones and repositories inside aren't. No hook
    runs, nothing is signed, and the commit fails when the branch moved meanwhile. `author` is
    (name, e-mail); without it the configured identity, else Lessor's own.

    Raises:
        GitError: A merge, rebase or the like is in progress, a conflict is unresolved, HEAD is
            detached or without a commit, something can't be read, or git refuses.
        LabelInvalidError: The label spans lines.
    """
    layout = layout_of(worktree)
    status = read_status(layout)
    refuse_unread(layout, status)
    branch, head = _refuse_unfinished(layout, status)
    try:
        _stage(layout, status)
    except OSError as refused:
        raise unreadable(layout.path, refused) from refused
    tree = layout.git([*DURABLY, "write-tree"]).text
    if tree == layout.git(["rev-parse", f"{head}^{{tree}}"]).text:
        return None
    text = message.replace("\0", "").strip() or f"work on {branch}"
    committer = configured_identity(layout) or LESSOR
    commit = layout.git(
        [*DURABLY, "commit-tree", tree, "-p", head],
        input=labelled(text.encode(errors="replace"), label),
        env=identity(author or committer, committer=committer),
    ).text
    subject = text.partition("\n")[0]
    layout.git([*DURABLY, "update-ref", "-m", f"commit: {subject}", "HEAD", commit, head])
    return commit


def ensure_trailer(worktree: Path, *, base: str, label: str, excluding: Sequence[str] = ()) -> str:
    """Give each commit of base..HEAD the label's trailer exactly once; the head that results.

    Commits are made anew only from the first that lacks it on, with authors, committers, dates,
    encodings and texts as they were; files and index don't change. Commits that `excluding` leads
    to stay as they are, and so do those that weren't made in this worktree and that another branch
    or another branch's remote holds. The reflog keeps the old ones.

    Raises:
        WorktreeError: The worktree isn't one that Lessor made.
        ForeignCommitsError: Somebody else's commits are among them; no label is given to any.
        GitError: HEAD is detached, something is in progress, or the branch moved meanwhile.
        LabelInvalidError: The label spans lines.
    """
    layout = layout_of(worktree)
    if not is_lessors(lock_reason(layout.git_dir)):
        raise WorktreeError(
            f"{worktree} isn't Lessor's; its commits stay as they are.", path=str(worktree)
        )
    branch, head = _refuse_unfinished(layout, read_status(layout))
    start = resolve_commit(layout.common_dir, base)
    found = read_authorship(layout, since=start, branch=branch, label=label, excluding=excluding)
    refuse_foreign(found, branch=branch)
    own = found.made | set(_own_commits(layout, branch, base=start))
    renewed: dict[str, str] = {}
    for commit, content in _contents(layout, [*found.commits][::-1]).items():
        if commit not in own and not renewed.keys() & _parents(content):
            continue
        written = _rewritten(content, label, renewed)
        if written != content:
            args = [*DURABLY, "hash-object", "-t", "commit", "-w", "--stdin"]
            renewed[commit] = layout.git(args, input=written).text
    if head not in renewed:
        return head
    layout.git([*DURABLY, "update-ref", "-m", LABELLED, "HEAD", renewed[head], head])
    return renewed[head]


def _refuse_unfinished(layout: Layout, status: Status) -> tuple[str, str]:
    running = operations_in_progress(layout.git_dir)
    if running or status.conflicted:
        what = f"a {running[0]} is in progress" if running else "a conflict is unresolved"
        raise GitError(
            f"Nothing was committed in {layout.path}: {what}.",
            next_step="Finish it or abort it there.",
            path=str(layout.path),
            in_progress=list(running),
            conflicted=list(status.conflicted),
        )
    if status.branch is None or status.head is None:
        raise GitError(
            f"Nothing was committed in {layout.path}: HEAD is on no branch with a commit.",
            next_step="Check a branch out there.",
            path=str(layout.path),
        )
    return status.branch, status.head


def _stage(layout: Layout, status: Status) -> None:
    inner = set(read_index(layout).submodules)
    paths = {change.path for change in status.changed} | set(status.untracked)
    modes = {path: mode_of(layout.path, path) for path in paths if not path.endswith("/")}
    gone = [path for path, mode in modes.items() if mode is None]
    there = [path for path, mode in modes.items() if mode and (mode != GITLINK or path in inner)]
    # Two steps: git calls a tracked path below what is now a link an error, not a deletion.
    for options, names in (("--force-remove", gone), ("--add", there)):
        layout.git(
            [*DURABLY, "update-index", "--replace", options, "-z", "--stdin"],
            input=b"".join(os.fsencode(name) + b"\0" for name in names),
        )


def _own_commits(layout: Layout, branch: str, *, base: str) -> Sequence[str]:
    """The commits of base..HEAD that this branch alone holds."""
    return layout.git(
        [
            *("rev-list", "HEAD", "--not", base),
            *(f"--exclude={branch}", "--branches", f"--exclude=*/{branch}", "--remotes"),
        ]
    ).lines


def _contents(layout: Layout, commits: Sequence[str]) -> Mapping[str, bytes]:
    if not commits:
        return {}
    out = layout.git(["cat-file", "--batch"], input="\n".join(commits).encode() + b"\n").out
    found: dict[str, bytes] = {}
    for commit in commits:
        header, _, rest = out.partition(b"\n")
        with understood(f"the commit {commit[:12]}"):
            size = int(header.rsplit(b" ", 1)[1])
        found[commit] = rest[:size]
        out = rest[size + 1 :]
    return found


def _parents(content: bytes) -> set[str]:
    headers = content.partition(b"\n\n")[0].split(b"\n")
    return {_parent(line) for line in headers if line.startswith(b"parent ")}


def _parent(line: bytes) -> str:
    return line[7:].decode(errors="replace")


def _rewritten(content: bytes, label: str, renewed: Mapping[str, str]) -> bytes:
    headers, _, message = content.partition(b"\n\n")
    lines = headers.split(b"\n")
    parents = [renewed.get(_parent(line)) for line in lines if line.startswith(b"parent ")]
    new_message = labelled(message, label)
    if new_message == message and not any(parents):
        return content
    kept = _without_signature(lines)
    renamed = [_renamed(line, renewed) for line in kept]
    return b"\n".join([*renamed, b"", new_message])


def _renamed(line: bytes, renewed: Mapping[str, str]) -> bytes:
    parent = renewed.get(_parent(line)) if line.startswith(b"parent ") else None
    return line if parent is None else b"parent " + parent.encode()


def _without_signature(lines: Sequence[bytes]) -> list[bytes]:
    # A signature signs the old text.
    kept: list[bytes] = []
    dropping = False
    for line in lines:
        if not line.startswith(b" "):
            dropping = line.startswith(b"gpgsig")
        if not dropping:
            kept.append(line)
    return kept
