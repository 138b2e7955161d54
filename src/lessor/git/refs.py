"""Lessor's own references, and changes of references that fail when somebody else was there.

`refs/lessor/base/<task>/<epoch>` keeps the commit that a claim started from,
`refs/lessor/salvage/<task>/<epoch>/<n>` keeps what was saved. Neither is a branch: no agent moves
one by working, and no clone fetches one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from lessor.errors import GitError
from lessor.git.command import DURABLY, GitResult, run_git

BRANCHES = "refs/heads/"
TRACKING = "refs/remotes/"
OWN = "refs/lessor"
BASES = f"{OWN}/base/"
LANDINGS = f"{OWN}/landing/"

_BROKEN = re.compile(rb"^warning: ignoring broken ref (.+)$", re.MULTILINE)
_NOTHING = ""  # update-ref's own word for "must not exist"


def base_ref(task: str, epoch: int) -> str:
    """The reference that keeps the commit which this claim started from."""
    return f"{BASES}{task}/{epoch}"


def salvage_refs(task: str, epoch: int) -> str:
    """The prefix of the references that keep what was saved of this claim."""
    return f"{OWN}/salvage/{task}/{epoch}/"


def landing_ref(task: str) -> str:
    """The reference that keeps what a landing is about to move its target to."""
    return f"{LANDINGS}{task}"


def put_ref(common_dir: Path, ref: str, oid: str) -> None:
    """Make `ref` point at `oid`, whatever it held.

    Raises:
        GitError: Git refused.
    """
    run_git([*DURABLY, "update-ref", ref, oid], cwd=common_dir, git_dir=common_dir)


def refuse_bad_ref(common_dir: Path, ref: str) -> None:
    """Refuse a full reference name that git wouldn't take.

    Raises:
        GitError: Git refuses the name, or its last parts would read as an option.
    """
    # `check-ref-format --branch` would expand @{-1}; the full name is checked literally.
    accepted = run_git(["check-ref-format", ref], cwd=common_dir, check=False).code == 0
    if not accepted or ref.removeprefix(BRANCHES).startswith("-"):
        raise GitError(f"{ref!r} is no name that git accepts for a reference.", ref=ref)


def read_ref(common_dir: Path, ref: str) -> str | None:
    """The object id that `ref` points at; None when there is no such reference.

    Raises:
        GitError: It is broken; or git refuses the repository, as 2.39 does one in the reftable
            format.
    """
    # show-ref answers an absent reference and a refused repository alike; the pattern here also fits
    # what lies below the name.
    asked = ["for-each-ref", "--format=%(objectname) %(refname)", ref]
    listed = run_git(asked, cwd=common_dir, git_dir=common_dir)
    named = (line.partition(" ") for line in listed.lines)
    found = next((oid for oid, _, name in named if name == ref), None)
    if found is None:
        refuse_broken(common_dir, listed, ref)
    return found


def refuse_broken(common_dir: Path, listed: GitResult, *refs: str) -> None:
    """Refuse to take a reference for absent whose file holds nothing that git can read.

    A power cut leaves such files. Git leaves them out of its lists with a warning, and ends well (2.39).

    Args:
        listed: what `for-each-ref` said.
        refs: those that matter; without any, all of them do.

    Raises:
        GitError: One is broken; `broken` in the facts names it.
    """
    found = [os.fsdecode(name) for name in _BROKEN.findall(listed.err)]
    broken = next((name for name in found if not refs or name in refs), None)
    if broken is None:
        return
    raise GitError(
        f"{broken} is broken: what it led to, git can't say.",
        next_step=f"Its log may: tail -1 {common_dir}/logs/{broken}. Then remove "
        f"{common_dir}/{broken}, and set it again: git update-ref {broken} COMMIT",
        broken=broken,
    )


def is_broken(refused: GitError) -> bool:
    """Whether it is the refusal of a broken reference."""
    return "broken" in refused.facts


def is_unreferenced(common_dir: Path, commit: str) -> bool:
    """Whether nothing of this clone leads to `commit`: no reference, and no worktree's HEAD.

    True also where the commit isn't here. Reflogs don't count: what only they know, git deletes.

    Raises:
        GitError: Git can't tell.
    """
    asked = ["cat-file", "-e", f"{commit}^{{commit}}"]
    if run_git(asked, cwd=common_dir, git_dir=common_dir, check=False).code != 0:
        return True
    # With --all go the HEADs of all worktrees.
    asked = ["rev-list", "--max-count=1", commit, "--not", "--all"]
    return bool(run_git(asked, cwd=common_dir, git_dir=common_dir).lines)


def create_ref(common_dir: Path, ref: str, oid: str) -> bool:
    """Make `ref` point at `oid`; False when the reference already exists, whatever it holds.

    Raises:
        GitError: Git refused for another reason.
    """
    refuse_bad_ref(common_dir, ref)
    try:
        run_git(
            [*DURABLY, "update-ref", "--create-reflog", ref, oid, _NOTHING],
            cwd=common_dir,
            git_dir=common_dir,
        )
    except GitError:
        if read_ref(common_dir, ref) is None:
            raise
        return False
    return True


def delete_ref(common_dir: Path, ref: str, *, expected: str) -> bool:
    """Delete `ref` if it still points at `expected`; False when it doesn't."""
    deleted = run_git(
        ["update-ref", "-d", ref, expected], cwd=common_dir, git_dir=common_dir, check=False
    )
    return deleted.code == 0
