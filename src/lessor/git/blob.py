"""Files of a work tree as git's objects: their modes and the ids of their bytes."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from lessor.git.command import DURABLY
from lessor.git.layout import Layout
from lessor.git.quoting import c_quoted

LINK = "120000"
GITLINK = "160000"
_PLAIN = "100644"
EXECUTABLE = "100755"


def mode_of(top: Path, path: str) -> str | None:
    """The mode that git would record for `path` below `top`; None when there is nothing to record.

    A path below a link is nothing: git tracks the link, and what it leads to is somewhere else.
    """
    place = top / path
    if any((top / parent).is_symlink() for parent in PurePosixPath(path).parents):
        return None
    try:
        found = place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found):
        return LINK
    if stat.S_ISREG(found):
        return EXECUTABLE if found & stat.S_IXUSR else _PLAIN
    if stat.S_ISDIR(found) and (place / ".git").exists():
        return GITLINK
    return None


def hash_files(
    layout: Layout, paths: Sequence[str], *, as_committed: bool, write: bool
) -> dict[str, str]:
    """The blob ids of regular files and links below the work tree.

    `as_committed` applies the filters that a commit would (line ends, LFS); without it the bytes
    are taken as they are. `write` stores the objects, durably.

    Raises:
        GitError: A file vanished or can't be read.
    """
    links = [path for path in paths if (layout.path / path).is_symlink()]
    files = sorted(set(paths) - set(links))
    hashing = [*DURABLY, "hash-object", "-w"] if write else ["hash-object"]
    found: dict[str, str] = {}
    for path in links:
        target = os.fsencode((layout.path / path).readlink())
        said = layout.git([*hashing, "--no-filters", "--stdin"], input=target)
        found[path] = said.text
    if files:
        filters = [] if as_committed else ["--no-filters"]
        # --stdin-paths splits at line ends and has no -z, but reads quoted names.
        said = layout.git(
            [*hashing, *filters, "--stdin-paths"],
            input=b"".join(c_quoted(path) + b"\n" for path in files),
        )
        found.update(zip(files, said.lines, strict=True))
    return found
