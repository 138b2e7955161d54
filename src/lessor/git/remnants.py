"""What a landing that was cut short wrote into a person's checkout: the result's own bytes."""

from __future__ import annotations

from collections.abc import Iterable

from lessor.errors import GitError
from lessor.git.blob import GITLINK, hash_files, mode_of
from lessor.git.command import run_git
from lessor.git.layout import Layout
from lessor.git.refs import LANDINGS
from lessor.git.status import Status
from lessor.git.understood import understood


def remnants(layout: Layout, status: Status) -> tuple[str, ...]:
    """The paths that are as a landing under way would have them, and not as HEAD has them.

    Only a git that was killed, or found no room, leaves some: else the branch moves with its files.

    Raises:
        GitError: Git can't tell.
    """
    differing = {change.path for change in status.changed} | set(status.untracked)
    if status.head is None or not differing:
        return ()
    asked = ["for-each-ref", "--format=%(objectname)", LANDINGS]
    meant = run_git(asked, cwd=layout.common_dir, git_dir=layout.common_dir).lines
    found: set[str] = set()
    for commit in meant:
        found |= _as_in(layout, status.head, commit, differing)
    return tuple(sorted(found))


def _as_in(layout: Layout, head: str, commit: str, differing: Iterable[str]) -> set[str]:
    args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", head, commit]
    told = layout.git(args, check=False)
    if told.code != 0:  # a kept landing of which a commit is gone names nothing here
        return set()
    wanted: dict[str, tuple[str, str]] = {}
    with understood(f"the commit {commit[:12]}"):
        for fields, path in zip(told.records[::2], told.records[1::2], strict=True):
            _, mode, _, oid, _ = fields.split(" ")
            wanted[path] = (mode, oid)
    modes = {path: mode_of(layout.path, path) for path in differing if path in wanted}
    there = [path for path, mode in modes.items() if mode is not None and mode != GITLINK]
    try:
        now = hash_files(layout, there, as_committed=True, write=False)
    except GitError:  # a file went meanwhile
        return set()
    found = {path for path in there if now[path] == wanted[path][1]}
    found |= {path for path, mode in modes.items() if mode is None and _is_gone(wanted[path])}
    # Git takes a file away before it writes it anew.
    return found | {path for path, mode in modes.items() if found and mode is None}


def _is_gone(wanted: tuple[str, str]) -> bool:
    return not wanted[1].strip("0")
