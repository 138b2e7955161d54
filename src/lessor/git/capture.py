"""The work tree and the index as tree objects, with index and files left as they are."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lessor.git.blob import GITLINK, hash_files, mode_of
from lessor.git.command import DURABLY, run_git
from lessor.git.ignored import lies_in_regenerable
from lessor.git.layout import Layout, layout_of
from lessor.git.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A worktree's content as trees.

    `tree` is the work tree: tracked files as they are on disk, deletions, and untracked files that
    aren't ignored, dependencies and caches left out. `staged` is the index; conflicted paths, which an index can't say in one tree,
    are in it as they are on disk. `paths` are those where disk and HEAD differ.
    """

    tree: str
    staged: str
    paths: tuple[str, ...]


def capture(layout: Layout, status: Status, *, hidden: Iterable[str]) -> Capture:
    """Write the worktree's content as tree objects, through an index of our own.

    Changed and untracked files are taken byte for byte, without the filters that a commit would
    apply. Repositories inside the worktree aren't in the trees.

    Raises:
        GitError: A file vanished or can't be read.
    """
    changed = {change.path for change in status.changed}
    paths = changed | _made(layout.path, status) | set(hidden)
    with tempfile.TemporaryDirectory(prefix="lessor-") as scratch:
        index = Path(scratch) / "index"
        if (layout.git_dir / "index").exists():
            shutil.copyfile(layout.git_dir / "index", index)
        env = {"GIT_INDEX_FILE": str(index)}
        _take(layout, status.conflicted, env=env)
        staged = layout.git([*DURABLY, "write-tree"], env=env).text
        _take(layout, paths, env=env)
        tree = layout.git([*DURABLY, "write-tree"], env=env).text
    return Capture(tree=tree, staged=staged, paths=tuple(sorted(paths)))


def _made(top: Path, status: Status) -> set[str]:
    """The untracked files that somebody may have made; a repository inside is archived elsewhere."""
    judged: dict[Path, bool] = {}
    return {
        path
        for path in status.untracked
        if not path.endswith("/") and not lies_in_regenerable(top, path, judged)
    }


def staged_tree(git_dir: Path) -> str | None:
    """The index of a worktree whose directory is gone, as a tree without its conflicted paths.

    None where there is no index. What a conflict was between is in commits.

    Raises:
        GitError: The index can't be read.
    """
    if not (git_dir / "index").exists():
        return None
    with tempfile.TemporaryDirectory(prefix="lessor-") as scratch:
        env = {"GIT_INDEX_FILE": shutil.copyfile(git_dir / "index", f"{scratch}/index")}
        listed = run_git(["ls-files", "-u", "-z"], cwd=git_dir, git_dir=git_dir, env=env).records
        conflicted = {os.fsencode(record.partition("\t")[2]) + b"\0" for record in listed}
        remove = ["update-index", "--force-remove", "-z", "--stdin"]
        run_git(remove, cwd=git_dir, git_dir=git_dir, input=b"".join(conflicted), env=env)
        return run_git([*DURABLY, "write-tree"], cwd=git_dir, git_dir=git_dir, env=env).text


def _take(layout: Layout, paths: Iterable[str], *, env: Mapping[str, str]) -> None:
    modes = {path: mode_of(layout.path, path) for path in paths}
    # All out first: a file may have become a directory, and a conflict has up to three entries.
    gone = b"".join(os.fsencode(path) + b"\0" for path in modes)
    layout.git(["update-index", "--force-remove", "-z", "--stdin"], input=gone, env=env)
    plain = [path for path, mode in modes.items() if mode is not None and mode != GITLINK]
    oids = hash_files(layout, plain, as_committed=False, write=True)
    for path in (path for path, mode in modes.items() if mode == GITLINK):
        oids[path] = layout_of(layout.path / path).git(["rev-parse", "--verify", "HEAD"]).text
    entries = (os.fsencode(f"{modes[path]} {oid}\t{path}\0") for path, oid in oids.items())
    layout.git(["update-index", "-z", "--index-info"], input=b"".join(entries), env=env)
