"""What a worktree holds that no commit can: ignored files, inner repositories, half a rebase."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from lessor.git.archive import FILES, GIT
from lessor.git.blob import GITLINK, mode_of
from lessor.git.ignored import Fingerprint, Ignored, files_below, find_ignored
from lessor.git.index import Index, read_index
from lessor.git.layout import Layout
from lessor.git.progress import operations_in_progress, progress_files
from lessor.git.status import Status, read_status
from lessor.git.submodule import has_own_commits, submodule_stores, submodules
from lessor.git.unseen import unseen_edits


def unversioned(
    layout: Layout, status: Status, index: Index, *, snapshot: Mapping[str, Fingerprint]
) -> Mapping[str, Path]:
    """The files to archive, by their path in the archive.

    Ignored files that setup made and nobody changed aren't among them, nor are dependencies and
    caches. A repository below the worktree is taken whole or not at all, and so is a submodule.

    Raises:
        GitError: Git couldn't look.
        OSError: A file couldn't be looked at.
    """
    ignored = find_ignored(layout.path, status.ignored)
    paths = set(ignored.changed_since(snapshot))
    for inner in (*_touched(ignored, paths), *_inner_repositories(layout, status, index)):
        paths |= files_below(layout.path, inner).files.keys()
        paths |= _empty_directories(layout.path, inner)
    members = {f"{FILES}{path}": layout.path / path for path in paths}
    for module in submodules(layout, index):
        members |= _of_submodule(layout, module, status, snapshot=snapshot)
    if operations_in_progress(layout.git_dir):
        members |= {
            f"{GIT}{path.relative_to(layout.git_dir).as_posix()}": path
            for path in progress_files(layout.git_dir)
        }
    return members


def _touched(ignored: Ignored, changed: AbstractSet[str]) -> list[str]:
    return [
        repository
        for repository in ignored.repositories
        if any(_lies_in(path, repository) for path in changed)
    ]


def _empty_directories(top: Path, path: str) -> set[str]:
    # A repository whose references are all packed is none without its empty `refs`.
    found: set[str] = set()
    for directory, below, files in os.walk(top / path):
        if not below and not files:
            found.add(Path(directory).relative_to(top).as_posix())
    return found


def _inner_repositories(layout: Layout, status: Status, index: Index) -> Iterator[str]:
    yield from (path for path in status.untracked if path.endswith("/"))
    for change in status.changed:  # a repository in the place of a tracked file
        if change.path not in index.submodules and mode_of(layout.path, change.path) == GITLINK:
            yield change.path


def _of_submodule(
    layout: Layout, module: Layout, status: Status, *, snapshot: Mapping[str, Fingerprint]
) -> dict[str, Path]:
    path = module.path.relative_to(layout.path).as_posix()
    files = files_below(layout.path, path).files
    differs = any(change.path == path for change in status.changed)
    if not (differs or _holds_more(module, path, snapshot=snapshot)):
        return {}
    paths = {*files, *_empty_directories(layout.path, path)}
    members = {f"{FILES}{file}": layout.path / file for file in paths}
    if module.git_dir.is_relative_to(layout.git_dir):
        prefix = module.git_dir.relative_to(layout.git_dir).as_posix()
        members |= {
            f"{GIT}{prefix}/{file.relative_to(module.git_dir).as_posix()}": file
            for file in (*_regular_files(module.git_dir), *_empty_in(module.git_dir))
        }
    return members


def _holds_more(module: Layout, path: str, *, snapshot: Mapping[str, Fingerprint]) -> bool:
    status = read_status(module)
    ignored = find_ignored(module.path, status.ignored)
    below = {
        name.removeprefix(f"{path}/"): mark
        for name, mark in snapshot.items()
        if _lies_in(name, path)
    }
    stores = (module.git_dir, *submodule_stores(module.git_dir))
    return (
        bool(ignored.changed_since(below))
        or bool(unseen_edits(module, read_index(module), status))
        or any(has_own_commits(store) for store in stores)
    )


def _empty_in(directory: Path) -> list[Path]:
    return [directory / path for path in _empty_directories(directory, "")]


def _regular_files(directory: Path) -> Iterable[Path]:
    return (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def _lies_in(path: str, directory: str) -> bool:
    return path.startswith(f"{directory}/")
