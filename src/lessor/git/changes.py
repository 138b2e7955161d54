"""What happened between a base and a head: the paths it touched, the lines, the trailers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.git.command import CHECKOUT_TIMEOUT_S, run_git
from lessor.git.revision import resolve_commit
from lessor.git.understood import understood

# Renames count on both sides, and nothing of the reader's configuration hides a path.
_EVERY_PATH = (
    *("--raw", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"),
    *("--ignore-submodules=none", "-O/dev/null"),
)
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SEPARATOR = "\x1f"
_NOT_ANCESTOR = 1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Touch:
    """A path that a commit touched; bytes beyond UTF-8 in `path` are surrogates.

    `commit` is empty where no single commit did: the head left the base's history behind.
    """

    path: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file that differs between two commits, with its lines; None for a binary one."""

    path: str
    added: int | None
    removed: int | None


def touches(
    common_dir: Path,
    base: str,
    head: str,
    *,
    excluding: Sequence[str] = (),
    own: Sequence[str] = (),
) -> tuple[Touch, ...]:
    """Every path that a commit of base..head touched, sorted, with the commit.

    Counted are both sides of a rename, deletions, modes, links and submodules, and what was undone
    again. A merge counts for what it adds to the merge that git would have made (so `-s ours` and
    an edit hidden in a merge show), one with three parents or more for every difference to any
    parent. Commits that `excluding` leads to are somebody else's: a target that was merged in.

    Args:
        own: commits that count although `excluding` leads to them, children before their parents: of
            one that it has shown `git log` forgets the parents, and a merge of it would be made from nothing.

    Raises:
        GitError: A revision names no commit.
    """
    start, end = resolve_commit(common_dir, base), resolve_commit(common_dir, head)
    asked = [[end, *(f"^{resolve_commit(common_dir, rev)}" for rev in (start, *excluding))]]
    if own:
        asked.append(["--no-walk=unsorted", *own])
    found: set[Touch] = set()
    for revs in asked:
        found |= {*_of_commits(common_dir, revs), *_of_octopuses(common_dir, revs)}
    ancestor = run_git(
        ["merge-base", "--is-ancestor", start, end], cwd=common_dir, git_dir=common_dir, check=False
    )
    if ancestor.code >= _NOT_ANCESTOR:
        net = run_git(["diff-tree", *_EVERY_PATH, start, end], cwd=common_dir, git_dir=common_dir)
        found |= set(_parse(net.records))
    return tuple(sorted(found))


def newest_shared(common_dir: Path, base: str, head: str, *, others: Sequence[str]) -> str:
    """The newest commit below `head` that `base` or one of `others` leads to.

    That is the base, unless a newer target was merged or rebased onto.

    Raises:
        GitError: A revision names no commit.
    """
    found: list[str] = []
    for other in (base, *others):
        asked = ["merge-base", head, other]
        shared = run_git(asked, cwd=common_dir, git_dir=common_dir, check=False)
        found += shared.lines[:1] if shared.code == 0 else []
    if not found:
        return resolve_commit(common_dir, base)
    asked = ["merge-base", "--independent", *dict.fromkeys(found)]
    return run_git(asked, cwd=common_dir, git_dir=common_dir).lines[0]


def pushed_touches(
    repository: Path,
    new: str,
    *,
    known: Sequence[str],
    target: str | None,
    env: Mapping[str, str],
) -> tuple[Touch, ...]:
    """Every path that a push of the commit `new` touches, sorted, with the commit.

    Counted are all commits that none of `known` leads to, as in `touches`, and what would land:
    the difference to where the branch left `target`. Only what was accepted for this branch, or is
    trusted by itself, may be in `known`: what else the repository has may have come by a tag just
    before, to hide it here.

    Args:
        repository: the directory of a bare repository, or of `.git`.
        env: how git finds the pushed objects while they are in quarantine.

    Raises:
        GitError: a commit isn't there.
    """
    revs = [new, *(f"^{commit}" for commit in known)]
    found = {*_of_commits(repository, revs, env=env), *_of_octopuses(repository, revs, env=env)}
    if target is not None:
        seen = {touch.path for touch in found}
        landing = _landing(repository, target, new, env=env)
        found |= {touch for touch in landing if touch.path not in seen}
    return tuple(sorted(found))


def leads_to(repository: Path, old: str, new: str, *, env: Mapping[str, str]) -> bool:
    """Whether the commit `new` leads to `old`; False also where `old` isn't there."""
    asked = ["merge-base", "--is-ancestor", old, new]
    return run_git(asked, cwd=repository, git_dir=repository, check=False, env=env).code == 0


def touched_paths(
    common_dir: Path, base: str, head: str, *, excluding: Sequence[str] = ()
) -> tuple[str, ...]:
    """The distinct paths of `touches`, sorted."""
    found = touches(common_dir, base, head, excluding=excluding)
    return tuple(sorted({touch.path for touch in found}))


def diff_summary(common_dir: Path, base: str, head: str) -> tuple[FileChange, ...]:
    """The files that differ between two commits' trees, a rename as its two sides.

    Raises:
        GitError: A revision names no commit.
    """
    start, end = resolve_commit(common_dir, base), resolve_commit(common_dir, head)
    options = [option for option in _EVERY_PATH if option != "--raw"]
    listed = run_git(
        ["diff-tree", "--numstat", *options, start, end], cwd=common_dir, git_dir=common_dir
    )
    return tuple(_file_change(record) for record in listed.records)


def has_changes(common_dir: Path, base: str, head: str) -> bool:
    """Whether the two commits' trees differ: whether work in between left anything.

    Raises:
        GitError: A revision names no commit.
    """
    commits = [resolve_commit(common_dir, rev) for rev in (base, head)]
    trees = run_git(
        ["rev-parse", *(f"{commit}^{{tree}}" for commit in commits)],
        cwd=common_dir,
        git_dir=common_dir,
    ).lines
    return trees[0] != trees[1]


def commits_without_trailer(
    common_dir: Path,
    *,
    since: str,
    head: str,
    key: str,
    value: str,
    excluding: Sequence[str] = (),
) -> list[str]:
    """The commits of since..head that don't carry the trailer exactly once with `value`.

    Newest first. Two values are as good as none: whoever added the second may have written both.

    Raises:
        GitError: A revision names no commit.
    """
    end = resolve_commit(common_dir, head)
    others = [f"^{resolve_commit(common_dir, rev)}" for rev in (since, *excluding)]
    shown = f"%H{_SEPARATOR}%(trailers:key={key},valueonly,unfold,separator=%x1f)"
    listed = run_git(
        [
            *("-c", "trailer.separators=:", "log", "--no-show-signature", "--no-color"),
            *(f"--format={shown}", end, *others, "--"),
        ],
        cwd=common_dir,
        git_dir=common_dir,
    )
    found = (line.split(_SEPARATOR) for line in listed.lines)
    return [commit for commit, *values in found if values != [value]]


def held_by_merges(common_dir: Path, *, since: str, head: str) -> tuple[str, ...]:
    """The paths in which merges of since..head differ from the merges that git would have made.

    A rebase leaves merges out, and what was mended in them.

    Raises:
        GitError: Git can't look.
    """
    merges = [head, f"^{since}", "--min-parents=2"]
    found = (*_of_commits(common_dir, merges), *_of_octopuses(common_dir, merges))
    return tuple(sorted({touch.path for touch in found}))


def _of_commits(
    common_dir: Path, revs: Sequence[str], *, env: Mapping[str, str] | None = None
) -> Iterator[Touch]:
    # Comparing a merge with its parents would blame it for all that the other side changed.
    # The objects of the re-made merge go to a directory that git deletes again. Children come first:
    # git forgets the parents of what it has shown, and would make a merge on top of it on no base.
    logged = run_git(
        [
            *("-c", "log.showRoot=true", "log", "--topo-order", "--format=%H"),
            *("--no-show-signature", "--no-color", "--diff-merges=remerge"),
            *("--max-parents=2", *_EVERY_PATH, *revs, "--"),
        ],
        cwd=common_dir,
        git_dir=common_dir,
        env=env,
        timeout_s=CHECKOUT_TIMEOUT_S,
    )
    return _parse(logged.records)


def _of_octopuses(
    common_dir: Path, revs: Sequence[str], *, env: Mapping[str, str] | None = None
) -> Iterator[Touch]:
    listed = run_git(
        ["rev-list", "--min-parents=3", *revs],
        cwd=common_dir,
        git_dir=common_dir,
        env=env,
    )
    if not listed.out:
        return iter(())
    compared = run_git(
        ["diff-tree", "--stdin", "-m", *_EVERY_PATH],
        cwd=common_dir,
        git_dir=common_dir,
        env=env,
        input=listed.out,
    )
    return _parse(compared.records)


def _landing(repository: Path, target: str, new: str, *, env: Mapping[str, str]) -> Iterator[Touch]:
    """The difference of `new` to where it left `target`; nothing where they have nothing in common."""
    where = {"cwd": repository, "git_dir": repository, "env": env}
    args = ["diff-tree", *_EVERY_PATH, "--merge-base", target, new]
    net = run_git(args, check=False, **where)  # type: ignore[arg-type]
    if net.code == 0:
        return _parse(net.records)
    bases = run_git(["merge-base", "--all", target, new], check=False, **where)  # type: ignore[arg-type]
    several = (
        run_git(["diff-tree", *_EVERY_PATH, base, new], **where)  # type: ignore[arg-type]
        for base in bases.lines
    )
    return (touch for one in several for touch in _parse(one.records))


def _parse(records: Sequence[str]) -> Iterator[Touch]:
    """Read `:modes…` and path pairs, each after the id of its commit (none in a plain diff)."""
    commit = ""
    remaining = iter(records)
    for record in remaining:
        text = record.removeprefix("\n")
        if text.startswith(":"):
            with understood("what commits touch"):
                path = next(remaining)
            yield Touch(path=path, commit=commit)
        elif match := _OID.match(text):
            commit = match[0]


def _file_change(record: str) -> FileChange:
    with understood("how much of a file changed"):
        added, removed, path = record.split("\t", 2)
        return FileChange(
            path=path,
            added=None if added == "-" else int(added),
            removed=None if removed == "-" else int(removed),
        )
