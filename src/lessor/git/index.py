"""What the index of a work tree keeps from `git status`."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lessor.git.blob import GITLINK, hash_files, mode_of
from lessor.git.layout import Layout
from lessor.git.understood import understood

_PLAIN_TAG = b"H "
_SPARSE_TAG = "S"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """A tracked path; `tag` is the letter of `git ls-files -v`."""

    tag: str
    mode: str
    oid: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The entries of an index that need a second look.

    `hidden` are those whose edits git was told not to see (`--assume-unchanged`,
    `--skip-worktree`), `submodules` the paths of submodules.
    """

    hidden: tuple[IndexEntry, ...]
    submodules: tuple[str, ...]


def read_index(layout: Layout) -> Index:
    """Read the index for hidden entries and submodules.

    Raises:
        GitError: The index can't be read.
    """
    hidden: list[IndexEntry] = []
    submodules: list[str] = []
    gitlink = _PLAIN_TAG + GITLINK.encode()
    for record in layout.git(["ls-files", "-v", "-s", "-z"]).out.split(b"\0"):
        if not record or (record.startswith(_PLAIN_TAG) and not record.startswith(gitlink)):
            continue
        with understood("the index"):
            entry = _entry(os.fsdecode(record))
        if entry.mode == GITLINK:
            submodules.append(entry.path)
        elif entry.tag == _SPARSE_TAG or entry.tag.islower():
            hidden.append(entry)
    return Index(hidden=tuple(hidden), submodules=tuple(submodules))


def hidden_edits(layout: Layout, index: Index) -> tuple[str, ...]:
    """The hidden paths whose file differs from the index.

    A missing file is no edit where the entry is outside a sparse cone, and one where its owner
    said "assume unchanged".

    Raises:
        GitError: A file can't be read.
    """
    present: list[IndexEntry] = []
    edited: set[str] = set()
    for entry in index.hidden:
        mode = mode_of(layout.path, entry.path)
        if mode is None:
            if entry.tag.upper() != _SPARSE_TAG:
                edited.add(entry.path)
        elif mode != entry.mode:
            edited.add(entry.path)
        else:
            present.append(entry)
    now = hash_files(layout, [entry.path for entry in present], as_committed=True, write=False)
    edited |= {entry.path for entry in present if now[entry.path] != entry.oid}
    return tuple(sorted(edited))


def _entry(record: str) -> IndexEntry:
    fields, _, path = record.partition("\t")
    tag, mode, oid, _ = fields.split(" ")
    return IndexEntry(tag=tag, mode=mode, oid=oid, path=path)
