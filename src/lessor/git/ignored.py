"""Ignored files, told apart: what somebody may have made, and what a tool makes again.

Dependencies and caches (`node_modules`, a virtual environment, whatever its maker tagged with
CACHEDIR.TAG) are nobody's work; every other ignored file may be. A repository inside an ignored
directory always may be, wherever it lies.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

# Size in bytes, and the time of the last change in nanoseconds: that of the file's entry, which
# nobody can put back as the time of its bytes can be.
Fingerprint = tuple[int, int]

_REGENERABLE = frozenset(
    {
        *("node_modules", "bower_components", ".parcel-cache", ".next", ".nuxt", ".turbo"),
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
        *(".tox", ".nox", ".eggs", ".gradle", "Pods"),
    }
)
_REGENERABLE_FILES = frozenset({".DS_Store", "Thumbs.db", ".coverage", ".eslintcache"})
_REGENERABLE_ENDINGS = (".pyc", ".pyo")

# A `target` is a build's only beside the build's own file.
_BUILDS = ("Cargo.toml", "pom.xml", "build.sbt")

_CACHE_TAG = "CACHEDIR.TAG"
_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"  # bford.info/cachedir


@dataclass(slots=True, kw_only=True)
class Ignored:
    """The files that may be work, by path below the top, and the repositories among them.

    Where `readable_alone` is set, what may not be read isn't among them.
    """

    files: dict[str, Fingerprint] = field(default_factory=dict)
    repositories: list[str] = field(default_factory=list)
    readable_alone: bool = False

    def changed_since(self, snapshot: Mapping[str, Fingerprint]) -> tuple[str, ...]:
        """The paths that are new or changed since `snapshot`."""
        changed = (path for path, found in self.files.items() if snapshot.get(path) != found)
        return tuple(sorted(changed))


def find_ignored(top: Path, ignored: Iterable[str], *, readable_alone: bool = False) -> Ignored:
    """Look below the paths that `git status` calls ignored; links are never followed.

    `readable_alone` leaves out what may not be read: a snapshot that lacks it takes it for work.

    Raises:
        OSError: A directory can't be read.
    """
    found = Ignored(readable_alone=readable_alone)
    judged: dict[Path, bool] = {}
    for path in ignored:
        regenerable = lies_in_regenerable(top, path, judged)
        if path.endswith("/"):
            _walk(top, path.rstrip("/"), found, regenerable=regenerable)
        elif not regenerable and not is_regenerable_file(path.rsplit("/", 1)[-1]):
            with _passing_over(found):
                _add(found, path, (top / path).lstat())
    return found


def files_below(top: Path, path: str) -> Ignored:
    """Every file below one directory, as `find_ignored` finds them."""
    found = Ignored()
    _walk(top, path.rstrip("/"), found, regenerable=False)
    return found


def is_regenerable_file(name: str) -> bool:
    """Whether a file of this name is one that a tool makes again."""
    return name in _REGENERABLE_FILES or name.endswith(_REGENERABLE_ENDINGS)


def is_regenerable_directory(directory: Path, names: AbstractSet[str]) -> bool:
    """Whether `directory`, which holds `names`, is a dependency or a cache."""
    if directory.name in _REGENERABLE or "pyvenv.cfg" in names:
        return True
    if directory.name == "target":
        return any((directory.parent / build).is_file() for build in _BUILDS)
    if _CACHE_TAG not in names:
        return False
    tag = directory / _CACHE_TAG
    try:
        if not stat.S_ISREG(tag.lstat().st_mode):
            return False
        with tag.open("rb") as file:
            return file.read(len(_CACHE_SIGNATURE)) == _CACHE_SIGNATURE
    except (PermissionError, FileNotFoundError):
        return False  # nobody can tell, so it may be work


def _walk(top: Path, start: str, found: Ignored, *, regenerable: bool) -> None:
    waiting = [(start, regenerable)]
    while waiting:
        path, skipped = waiting.pop()
        entries: list[os.DirEntry[str]] = []
        with _passing_over(found), os.scandir(top / path) as listing:
            entries = list(listing)
        names = {entry.name for entry in entries}
        if ".git" in names:
            found.repositories.append(path)
            skipped = False
        elif not skipped:
            skipped = is_regenerable_directory(top / path, names)
        for entry in entries:
            below = f"{path}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting.append((below, skipped))
            elif not skipped and not is_regenerable_file(entry.name):
                with _passing_over(found):
                    _add(found, below, entry.stat(follow_symlinks=False))


def _passing_over(found: Ignored) -> AbstractContextManager[None]:
    return suppress(PermissionError) if found.readable_alone else nullcontext()


def _add(found: Ignored, path: str, status: os.stat_result) -> None:
    # Sockets and pipes hold no bytes that could be kept.
    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        found.files[path] = (status.st_size, status.st_ctime_ns)


def lies_in_regenerable(top: Path, path: str, judged: dict[Path, bool]) -> bool:
    """Whether a path lies in a dependency or a cache; `judged` remembers directories between calls.

    Raises:
        OSError: A directory can't be read.
    """
    # An ignore rule such as `*.js.map` lists single files inside directories that aren't ignored.
    for parent in (top / path).parents:
        if parent == top:
            return False
        if parent not in judged:
            judged[parent] = is_regenerable_directory(parent, set(os.listdir(parent)))  # noqa: PTH208 - names only
        if judged[parent]:
            return True
    return False
