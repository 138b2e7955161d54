"""Edits that `git status` doesn't tell: hidden in the index, taken out by git, of a mode alone."""

from __future__ import annotations

import filecmp
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from lessor.git.blob import EXECUTABLE, GITLINK, LINK, mode_of
from lessor.git.command import CHECKOUT_TIMEOUT_S
from lessor.git.index import Index, hidden_edits
from lessor.git.layout import Layout
from lessor.git.status import Status
from lessor.git.understood import understood

_SETTINGS = r"^(core\.filemode|filter\..*\.(clean|process))$"
_FILTER = "filter."
# What it puts into a commit names every byte of the file, and it keeps those.
_LOSSLESS = "lfs"
_EXPANDED = re.compile(rb"\$Id: (?:[0-9a-f]{40}|[0-9a-f]{64}) \$")
_BY_EXECUTE = stat.S_IXUSR


def unseen_edits(layout: Layout, index: Index, status: Status) -> tuple[str, ...]:
    """The tracked paths that hold what no commit would, though git calls them unchanged.

    Beside the hidden ones these are files of which a filter takes something out (the outputs of a
    notebook) or git itself (what stands in `$Id$`), and modes where `core.fileMode` is off and the file system keeps them all the same.

    Raises:
        GitError: A file can't be read, or a filter fails.
        OSError: A file can't be compared.
    """
    edited = set(hidden_edits(layout, index))
    filters, keeps_modes = _configured(layout)
    told = {change.path for change in status.changed}
    keywords = _with_keywords(layout)
    if filters or keywords or keeps_modes:
        modes = {path: mode for path, mode in _tracked(layout).items() if path not in told}
        if keeps_modes:
            edited |= {path for path, mode in modes.items() if _differs(layout, path, mode)}
        if filters or keywords:
            edited |= _filtered(layout, modes.keys(), filters, keywords)
    return tuple(sorted(edited))


def _configured(layout: Layout) -> tuple[set[str], bool]:
    """The filters that may take something out, and whether there are modes that git doesn't look at."""
    filters: set[str] = set()
    keeps_modes = False
    for record in layout.git(["config", "-z", "--get-regexp", _SETTINGS], check=False).records:
        key, _, value = record.partition("\n")
        if key.startswith(_FILTER):
            filters.add(key.removeprefix(_FILTER).rpartition(".")[0])
        else:
            keeps_modes = value.lower() in {"false", "no", "off", "0"}
    # Where the file system makes every file executable, this one is as well.
    plain = not (layout.path / ".git").lstat().st_mode & _BY_EXECUTE
    return filters - {_LOSSLESS}, keeps_modes and plain


def _tracked(layout: Layout) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for record in layout.git(["ls-files", "-s", "-z"]).records:
        fields, _, path = record.partition("\t")
        with understood("the index"):
            mode, _, number = fields.split(" ")
        if number == "0" and mode.startswith("100"):
            found[path] = mode
    return found


def _differs(layout: Layout, path: str, mode: str) -> bool:
    now = mode_of(layout.path, path)
    return now not in {None, LINK, GITLINK} and (now == EXECUTABLE) != (mode == EXECUTABLE)


def _with_keywords(layout: Layout) -> AbstractSet[str]:
    """The paths of which git takes out what stands in `$Id: …$`."""
    asked = ["ls-files", "-z", "--", ":(attr:ident)"]
    return set(layout.git(asked, env={"GIT_LITERAL_PATHSPECS": "0"}).records)


def _filtered(
    layout: Layout,
    paths: AbstractSet[str],
    filters: AbstractSet[str],
    keywords: AbstractSet[str],
) -> set[str]:
    """The paths whose file isn't what git would make of the index's."""
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    said = layout.git(["check-attr", "-z", "--stdin", "filter"], input=asked).records
    chosen = [
        path
        for path, value in zip(said[::3], said[2::3], strict=True)
        if (value in filters or path in keywords)
        and mode_of(layout.path, path) not in {None, LINK, GITLINK}
    ]
    if not chosen:
        return set()
    with tempfile.TemporaryDirectory(prefix="lessor-") as scratch:
        layout.git(
            ["checkout-index", "--quiet", f"--prefix={scratch}{os.sep}", "-z", "--stdin"],
            input=b"".join(os.fsencode(path) + b"\0" for path in chosen),
            timeout_s=CHECKOUT_TIMEOUT_S,
        )
        return {
            path
            for path in chosen
            if not _is_same(layout.path / path, Path(scratch, path), keyword=path in keywords)
        }


def _is_same(file: Path, made: Path, *, keyword: bool) -> bool:
    """Whether a file is what git would make; the id of an earlier content is git's own word, too."""
    if filecmp.cmp(file, made, shallow=False):
        return True
    return keyword and _without_ids(file) == _without_ids(made)


def _without_ids(file: Path) -> bytes:
    return _EXPANDED.sub(b"$Id$", file.read_bytes())
