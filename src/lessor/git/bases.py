"""Pinned bases: which there are, and the end of those that keep nothing any more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lessor.git.command import run_git
from lessor.git.refs import BASES, OWN, refuse_broken
from lessor.git.understood import understood

_SALVAGE = f"{OWN}/salvage/"


def pinned_bases(common_dir: Path) -> Mapping[str, Mapping[str, str]]:
    """The references that pin bases, with their commits, by the task; of tasks without a salvage here.

    Raises:
        GitError: Git can't list them, or one is broken.
    """
    asked = ["for-each-ref", "--format=%(refname) %(objectname)", BASES, _SALVAGE]
    listed = run_git(asked, cwd=common_dir, git_dir=common_dir)
    refuse_broken(common_dir, listed)
    found: dict[str, dict[str, str]] = {}
    saved: set[str] = set()
    with understood("the pinned bases"):
        for line in listed.lines:
            ref, oid = line.split(" ")
            if ref.startswith(_SALVAGE):
                saved.add(ref.removeprefix(_SALVAGE).partition("/")[0])
            else:
                found.setdefault(ref.removeprefix(BASES).partition("/")[0], {})[ref] = oid
    return {task: pins for task, pins in found.items() if task not in saved}


def unpin(common_dir: Path, pins: Mapping[str, str]) -> int:
    """Delete those of `pins` whose commits a branch, a tag or a remote's branch has as well; how many.

    No commit is lost by it. One that was moved meanwhile keeps all.

    Raises:
        GitError: A commit isn't here, or git refuses; nothing was deleted.
    """
    if not pins:
        return 0
    others = ["--not", "--branches", "--remotes", "--tags"]
    alone = run_git(
        ["rev-list", "--stdin", *others],
        cwd=common_dir,
        git_dir=common_dir,
        input="".join(f"{oid}\n" for oid in sorted(set(pins.values()))).encode(),
    )
    kept = frozenset(alone.lines)
    going = {ref: oid for ref, oid in pins.items() if oid not in kept}
    run_git(
        ["update-ref", "--stdin"],
        cwd=common_dir,
        git_dir=common_dir,
        input="".join(f"delete {ref} {oid}\n" for ref, oid in going.items()).encode(),
    )
    return len(going)
