"""What git says, as each parser takes it: any bytes at all, and records with any path in them.

The first byte chooses the parser. A capital letter puts the rest in as a path, which has to come back unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from fuzz.promise import asked
from lessor.git import (
    advertised,
    ancestry,
    changes,
    commit,
    content,
    index,
    landed,
    modes,
    patches,
    push,
    registry,
    repository,
    restore,
    saved,
    target,
    trial,
    unreachable,
)
from lessor.git.command import GitResult
from lessor.git.complaint import hide_credentials
from lessor.git.quoting import c_quoted
from lessor.git.reflog import read_reflog
from lessor.git.remote import canonical_remote
from lessor.git.status import read_status

_OID = "a" * 40
_HEAD = f"# branch.oid {_OID}\0# branch.head main\0".encode()


@dataclass(frozen=True)
class Said:
    """In the place of a work tree: whatever git is asked, it says this."""

    out: bytes
    path: Path = Path("/nowhere")

    def git(self, *_args: object, **_more: object) -> GitResult:
        """What git said."""
        return GitResult(code=0, out=self.out, err=self.out)


def one(data: bytes) -> None:
    """One input."""
    kind, rest = data[:1].decode("latin-1"), data[1:]
    if kind in _PARSERS:
        asked(lambda: _PARSERS[kind](rest))
    elif kind in _PATHS:
        path = rest.replace(b"\0", b"").strip(b"/") or b"x"
        _PATHS[kind](path)
    else:
        for parse in _PARSERS.values():
            asked(lambda parse=parse: parse(data))


@contextmanager
def _saying(module: ModuleType, out: bytes) -> Iterator[Path]:
    """Let git say `out` to whatever the module asks it."""
    kept = {name: getattr(module, name) for name in _ASKING if hasattr(module, name)}
    for name in kept:
        setattr(module, name, lambda *_args, **_more: _result(out))
    if hasattr(module, "resolve_commit"):
        kept["resolve_commit"] = module.resolve_commit
        module.resolve_commit = lambda *_args: _OID
    try:
        yield Path("/nowhere")
    finally:
        for name, function in kept.items():
            setattr(module, name, function)


_ASKING = ("run_git", "pipe_git")


def _asking(module: ModuleType, ask: Callable[[Path], object]) -> Callable[[bytes], object]:
    def parse(out: bytes) -> object:
        with _saying(module, out) as place:
            return ask(place)

    return parse


def _result(out: bytes) -> GitResult:
    return GitResult(code=0, out=out, err=out)


def _reflog(out: bytes) -> object:
    folder = Path("/dev/shm")
    place = (folder if folder.is_dir() else Path("/tmp")) / f"lessor-fuzz-{os.getpid()}"
    place.write_bytes(out)
    try:
        return read_reflog(place)
    finally:
        place.unlink()


def _worktrees(out: bytes) -> object:
    return [
        dict(registry._field(line) for line in record.split(b"\0") if line)
        for record in out.split(b"\0\0")
    ]


def _rewritten(out: bytes) -> object:
    commit._parents(out)
    return commit._rewritten(out, "owner=a;branch=ai/1-x;env=none;task=1;epoch=1", {_OID: "b" * 40})


_PARSERS: Mapping[str, Callable[[bytes], object]] = {
    "s": lambda out: read_status(Said(out)),  # type: ignore[arg-type]
    "i": lambda out: index.read_index(Said(out)),  # type: ignore[arg-type]
    "c": lambda out: list(changes._parse(_result(out).records)),
    "n": lambda out: [changes._file_change(record) for record in _result(out).records],
    "p": lambda out: push._fates(_result(out)),
    "w": _worktrees,
    "t": lambda out: list(trial._results(out)),
    "a": lambda out: list(ancestry._commits(out)),
    "m": lambda out: modes.read_modes(_result(out).text),
    "r": _reflog,
    "o": _rewritten,
    "b": lambda out: commit._contents(Said(out), [_OID, _OID]),  # type: ignore[arg-type]
    "u": lambda out: [canonical_remote(line) for line in _result(out).lines],
    "h": lambda out: hide_credentials(_result(out).text),
    "q": lambda out: c_quoted(os.fsdecode(out)),
    "0": _asking(advertised, lambda place: advertised.ask_remote(place, "origin")),
    "1": _asking(push, lambda place: push.remote_tips(place, "origin", "refs/heads/x")),
    "2": _asking(push, lambda place: push.tips_below(place, "origin", "refs/lessor/fence/")),
    "3": _asking(target, target.read_refs),
    "4": _asking(content, lambda place: content.read_file_at(place, "main", "a")),
    "5": _asking(content, lambda place: content.packages_at(place, "main")),
    "6": _asking(restore, lambda place: restore.saved_entries(place, _OID)),
    "7": _asking(restore, lambda place: list(restore._read_blobs(place, {"a": _OID, "b": _OID}))),
    "8": _asking(patches, lambda place: patches.patch_ids(place, [patches.Span(None, _OID)] * 2)),
    "9": _asking(landed, lambda place: landed._commits(place, ["main", "x"])),
    "+": _asking(saved, lambda place: saved._only_here(place, _OID, "refs/lessor/salvage/x")),
    "-": _asking(repository, repository.behind_remote),
    "/": _asking(unreachable, lambda place: unreachable.unreachable_commits(place, head=_OID)),
    ".": _asking(trial, lambda place: trial.try_merges(place, [(_OID, _OID)])),
}


def _status_path(path: bytes) -> None:
    oids = f"{_OID} {_OID}".encode()
    out = _HEAD + b"1 .M N... 100644 100644 100644 " + oids + b" " + path + b"\0? " + path + b"\0"
    out += (
        b"u UU N... 100644 100644 100644 100644 "
        + oids
        + b" "
        + _OID.encode()
        + b" "
        + path
        + b"\0"
    )
    found = read_status(Said(out + b"! " + path + b"\0"))  # type: ignore[arg-type]
    name = os.fsdecode(path)
    assert [change.path for change in found.changed] == [name, name]
    assert found.conflicted == (name,)
    assert found.untracked == found.ignored == (name,)


def _touched_path(path: bytes) -> None:
    oids = f"{_OID} {_OID}".encode()
    out = _OID.encode() + b"\0\n:100644 100644 " + oids + b" M\0" + path + b"\0"
    (touch,) = changes._parse(_result(out).records)
    assert (touch.path, touch.commit) == (os.fsdecode(path), _OID)
    (change,) = [changes._file_change(r) for r in _result(b"3\t-\t" + path + b"\0").records]
    assert (change.path, change.added, change.removed) == (os.fsdecode(path), 3, None)


def _hidden_path(path: bytes) -> None:
    out = b"S 100644 " + _OID.encode() + b" 0\t" + path + b"\0"
    (entry,) = index.read_index(Said(out)).hidden  # type: ignore[arg-type]
    assert entry.path == os.fsdecode(path)


_PATHS: Mapping[str, Callable[[bytes], None]] = {
    "S": _status_path,
    "C": _touched_path,
    "I": _hidden_path,
}
