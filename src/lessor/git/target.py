"""What branches land on: the default branch, as this clone knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import GitError
from lessor.git.advertised import Advertised
from lessor.git.command import run_git
from lessor.git.progress import branch_at_head
from lessor.git.refs import BASES, BRANCHES, TRACKING, refuse_broken
from lessor.git.revision import resolve_commit
from lessor.git.understood import understood

_USUAL = ("main", "master", "trunk", "develop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What branches are judged against.

    Attributes:
        commit: None where it can't be told.
        note: why it can't be told; or what makes it stale, which no verdict shows.
    """

    name: str
    commit: str | None
    note: str = ""


def read_refs(common_dir: Path) -> Mapping[str, str]:
    """Every branch, tracking reference and pinned base with its commit.

    Of a remote's HEAD it is the reference that this names.

    Raises:
        GitError: Git can't list them, or one is broken.
    """
    listed = run_git(
        [
            *("for-each-ref", "--format=%(refname)%09%(objectname)%09%(symref)"),
            *(BRANCHES, TRACKING, BASES),
        ],
        cwd=common_dir,
        git_dir=common_dir,
    )
    refuse_broken(common_dir, listed)
    found: dict[str, str] = {}
    with understood("the references"):
        for line in listed.lines:
            name, oid, symref = line.split("\t")
            found[name] = symref or oid
    return found


def named_target(common_dir: Path, rev: str) -> Target:
    """The target that somebody named; one without a commit where it names none."""
    try:
        return Target(name=rev, commit=resolve_commit(common_dir, rev))
    except GitError as missing:
        return Target(name=rev, commit=None, note=missing.message)


def default_target(
    common_dir: Path, refs: Mapping[str, str], *, remote: str | None, said: Advertised | None
) -> Target:
    """The default branch: the remote's own word, else what is known of it here.

    `refs/remotes/<remote>/HEAD` stays at the old name after a rename, so that the remote's answer
    comes first. Of the branch and its tracking reference the one that leads to the other counts,
    else the remote's.

    Raises:
        GitError: Git can't compare the two.
    """
    name = _default_name(common_dir, refs, remote=remote, said=said)
    if name is None:
        return Target(name="", commit=None, note="nothing tells which branch is the default one")
    tracking = f"{remote}/{name}"
    local, theirs = refs.get(f"{BRANCHES}{name}"), refs.get(f"{TRACKING}{tracking}")
    if local is None and theirs is None:
        note = f"{name} is the default branch of {remote}, and it isn't here: git fetch {remote}"
        return Target(name=name, commit=None, note=note)
    stale = _stale(common_dir, tracking, theirs, name=name, said=said)
    if theirs is None or local == theirs:
        return Target(name=name, commit=local, note=stale)
    if local is not None and _leads(common_dir, local, theirs):
        return Target(name=name, commit=local, note=stale)
    return Target(name=tracking, commit=theirs, note=stale)


def fork_of(common_dir: Path, commit: str) -> str | None:
    """Where `commit` left the default branch, as far as this clone knows; None where it doesn't."""
    try:
        target = default_target(common_dir, read_refs(common_dir), remote="origin", said=None)
        if target.commit is None:
            return None
        asked = ["merge-base", "--end-of-options", target.commit, commit]
        found = run_git(asked, cwd=common_dir, git_dir=common_dir, check=False)
    except GitError:
        return None
    return found.text or None if found.code == 0 else None


def tracking_tips(common_dir: Path, branch: str) -> tuple[str, ...]:
    """The commits that the remotes had `branch` at when they were last asked.

    Raises:
        GitError: Git can't list them.
    """
    asked = ["for-each-ref", "--format=%(objectname)", f"{TRACKING}*/{branch}"]
    return tuple(run_git(asked, cwd=common_dir, git_dir=common_dir).lines)


def _default_name(
    common_dir: Path, refs: Mapping[str, str], *, remote: str | None, said: Advertised | None
) -> str | None:
    if said is not None and said.default:
        return said.default
    tracked = refs.get(f"{TRACKING}{remote}/HEAD", "") if remote else ""
    if tracked in refs:
        return tracked.removeprefix(f"{TRACKING}{remote}/")
    here = branch_at_head(common_dir)
    usual = [name for name in _USUAL if f"{BRANCHES}{name}" in refs]
    if here is not None and (here in usual or not usual):
        return here
    return usual[0] if usual else here


def _stale(
    common_dir: Path, tracking: str, known: str | None, *, name: str, said: Advertised | None
) -> str:
    now = said.branches.get(name) if said is not None else None
    if now is None or now == known or _is_here(common_dir, now):
        return ""
    return f"{tracking} is at {now[:12]} by now, which isn't in this clone: git fetch"


def _is_here(common_dir: Path, oid: str) -> bool:
    asked = ["cat-file", "-e", oid]
    return run_git(asked, cwd=common_dir, git_dir=common_dir, check=False).code == 0


def _leads(common_dir: Path, newer: str, older: str) -> bool:
    asked = ["merge-base", "--is-ancestor", older, newer]
    return run_git(asked, cwd=common_dir, git_dir=common_dir, check=False).code == 0
