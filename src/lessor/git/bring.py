"""Ignored files that a worktree needs and git doesn't carry: `.env` and its like."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lessor.errors import GitError, InvalidError
from lessor.git.archive import place_below
from lessor.git.complaint import failure
from lessor.git.ignored import is_regenerable_directory
from lessor.git.layout import Layout, layout_of
from lessor.git.status import read_status

if TYPE_CHECKING:
    import pathspec

INCLUDE_FILE = ".worktreeinclude"
DEFAULT_PATTERNS = (".env*", ".claude/settings.local.json")

_NONE_IGNORED = 1  # check-ignore's exit code
_UNFINISHED = 0o200
"""The mode of a copy until all of it is there: who was killed leaves nothing that passes for the file."""


def include_patterns(text: str | None) -> tuple[str, ...]:
    """The patterns of a `.worktreeinclude`; the default ones where there is none."""
    if text is None:
        return DEFAULT_PATTERNS
    # At git's own line ends: a name may hold what splitlines() splits at.
    return tuple(line for line in re.split(r"\r?\n", text) if line)


def bring_along(
    repo_root: Path, worktree: Path, patterns: Sequence[str] = DEFAULT_PATTERNS
) -> list[str]:
    """Copy ignored files of the main worktree into `worktree`; the paths copied, sorted.

    `patterns` are gitignore's. A file is copied with its mode and times if it is ignored in both:
    where the other commit doesn't ignore it, a secret would end in a commit. What exists there
    stays, also a file where a directory would be. Links are copied as links where they are relative and stay inside, else left out; no
    link is followed. Dependencies and caches come along only where a pattern names them.

    Raises:
        InvalidError: A pattern can't be read.
        GitError: A file can't be read or written.
    """
    import pathspec  # noqa: PLC0415 - costs a megabyte, and runs wait for hours without it

    source, target = layout_of(repo_root), layout_of(worktree)
    try:
        spec = pathspec.GitIgnoreSpec.from_lines(patterns)
    except ValueError as refused:
        raise InvalidError(f"{INCLUDE_FILE} can't be read: {refused}.") from refused
    try:
        matching = sorted(set(_matching(source, spec, patterns)))
        wanted = [path for path in matching if not _lies_behind_another(target.path, path)]
        ignored = _ignored_in(target, wanted)
        return [path for path in wanted if path in ignored and _copy(source, target, path)]
    except OSError as refused:
        raise GitError(f"A file can't be brought to {worktree}: {refused}.") from refused


def _matching(
    source: Layout, spec: pathspec.GitIgnoreSpec, patterns: Sequence[str]
) -> Iterator[str]:
    for path in read_status(source).ignored:
        if path.endswith("/"):
            yield from _below(source.path, path.rstrip("/"), spec, patterns)
        elif spec.match_file(path):
            yield path


def _below(
    top: Path, start: str, spec: pathspec.GitIgnoreSpec, patterns: Sequence[str]
) -> Iterator[str]:
    waiting = [start]
    while waiting:
        directory = waiting.pop()
        named = spec.match_file(f"{directory}/")
        wanted = named or any(p.removeprefix("/").startswith(f"{directory}/") for p in patterns)
        entries = _entries(top / directory, wanted=wanted)
        names = {entry.name for entry in entries}
        # Another worktree or repository in an ignored directory isn't this one's.
        if ".git" in names or (not named and is_regenerable_directory(top / directory, names)):
            continue
        for entry in entries:
            path = f"{directory}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif spec.match_file(path):
                yield path


def _entries(directory: Path, *, wanted: bool) -> list[os.DirEntry[str]]:
    """What is in an ignored directory; nothing where it went, or may not be read and isn't `wanted`."""
    try:
        with os.scandir(directory) as listing:
            return list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return []  # a build may be at work there
    except PermissionError:
        if wanted:
            raise
        return []  # such as a container's data, which is another user's


def _ignored_in(target: Layout, paths: Sequence[str]) -> frozenset[str]:
    # check-ignore refuses to run with literal pathspecs; "./" keeps a name from reading as magic.
    asked = b"".join(os.fsencode(f"./{path}\0") for path in paths)
    args = ["check-ignore", "-z", "--stdin"]
    literally = {"GIT_LITERAL_PATHSPECS": "0"}
    found = target.git(args, input=asked, env=literally, check=False)
    if found.code > _NONE_IGNORED:
        raise failure(args, found)
    return frozenset(path.removeprefix("./") for path in found.records)


def _lies_behind_another(top: Path, path: str) -> bool:
    """Whether something else stands there where its directories would be: a link, or a file."""
    parents = [top / parent for parent in PurePosixPath(path).parents]
    return any(os.path.lexists(p) and (p.is_symlink() or not p.is_dir()) for p in parents)


def _copy(source: Layout, target: Layout, path: str) -> bool:
    original = source.path / path
    try:
        found = original.lstat()
    except FileNotFoundError:
        return False  # it went since it was listed
    is_link = stat.S_ISLNK(found.st_mode)
    if not (is_link or stat.S_ISREG(found.st_mode)) or (is_link and not _stays(source, original)):
        return False
    place = place_below(target.path, path)
    if _is_there(place):
        return False
    if is_link:
        place.symlink_to(original.readlink())
    else:
        _copy_bytes(original, place, found)
    return True


def _is_there(place: Path) -> bool:
    """Whether something is there that stays; half a copy goes."""
    if not os.path.lexists(place):
        return False
    mode = place.lstat().st_mode
    if not stat.S_ISREG(mode) or stat.S_IMODE(mode) != _UNFINISHED:
        return True
    place.unlink()
    return False


def _stays(source: Layout, link: Path) -> bool:
    target = link.readlink()
    return not target.is_absolute() and link.resolve().is_relative_to(source.path)


def _copy_bytes(original: Path, place: Path, found: os.stat_result) -> None:
    with os.fdopen(os.open(original, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source:
        writing = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _UNFINISHED)
        try:
            with os.fdopen(writing, "wb") as copy:
                shutil.copyfileobj(source, copy)
                copy.flush()
                os.utime(copy.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
                # A power cut may else keep the mode and take the bytes.
                os.fsync(copy.fileno())
                os.fchmod(copy.fileno(), stat.S_IMODE(found.st_mode) & 0o777)
        except OSError:
            place.unlink()
            raise
