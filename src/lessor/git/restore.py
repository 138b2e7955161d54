"""What was salvaged, written back byte for byte into a directory of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.archive import GIT, extract_archive, list_archive, place_below
from lessor.git.blob import GITLINK, LINK
from lessor.git.command import CHECKOUT_TIMEOUT_S, run_git
from lessor.git.modes import read_modes
from lessor.git.submodule import submodule_stores
from lessor.git.understood import understood

GIT_STATE = ".git-state"
"""What the name of a directory ends with that holds what was archived of a git directory."""

_GONE = "000000"
_EXECUTABLE = "100755"
_AT_ONCE = 200


def restore_salvage(
    *, common_dir: Path, commit: str | None, archive: Path | None, into: Path
) -> tuple[str, ...]:
    """Write a salvage into `into`, which must be empty or missing; the paths that it saved.

    The directory is readable by its owner alone: git doesn't keep that a file was private. Files
    that HEAD held unchanged are checked out as usual; the saved ones are written as they were
    found, without filters. Half a rebase and the stores of submodules go into a directory beside
    `into`, so that what is in it is the worktree's alone.

    Raises:
        WorktreeError: `into` holds something already.
        GitError: Something can't be read or written.
    """
    beside = into.with_name(f"{into.name}{GIT_STATE}")
    members = list_archive(archive) if archive else {}
    has_state = any(name.startswith(GIT) for name in members)
    try:
        for place in (into, beside) if has_state else (into,):
            _refuse_taken(place)
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        top = into.resolve()
        saved = _restore_commit(common_dir, commit, top) if commit else ()
        if archive is None:
            return saved
        if has_state:
            _restore_state(archive, beside.resolve())
        return (*saved, *extract_archive(archive, top))
    except OSError as refused:
        raise GitError(
            f"{into} can't be written: {refused}.",
            next_step="The salvage is as it was; restore it into another directory.",
            path=str(into),
        ) from refused


def _restore_state(archive: Path, beside: Path) -> None:
    extract_archive(archive, beside, part=GIT)
    for store in submodule_stores(beside):
        # It names a directory that is gone, and git refuses a store whose work tree isn't there.
        args = ["config", "--file", str(store / "config"), "--unset-all", "core.worktree"]
        run_git(args, cwd=beside, check=False)


def _refuse_taken(place: Path) -> None:
    if place.exists() and any(place.iterdir()):
        raise WorktreeError(
            f"{place} isn't empty.",
            next_step="Name a directory that doesn't exist yet.",
            path=str(place),
        )


def _restore_commit(common_dir: Path, commit: str, top: Path) -> tuple[str, ...]:
    saved = saved_entries(common_dir, commit)
    body = ["log", "-1", "--format=%B", commit, "--"]
    exact = read_modes(run_git(body, cwd=common_dir, git_dir=common_dir).text)
    blobs = {path: oid for path, (mode, oid) in saved.items() if mode not in {_GONE, GITLINK}}
    for path, blob in _read_blobs(common_dir, blobs):
        _write(place_below(top, path), saved[path][0], blob, exact=exact.get(path))
    _check_out_the_rest(common_dir, commit, top, saved)
    return tuple(path for path, (mode, _) in saved.items() if mode != _GONE)


def _read_blobs(common_dir: Path, blobs: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    paths = sorted(blobs)
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        asked = "".join(f"{blobs[path]}\n" for path in some).encode()
        args = ["cat-file", "--batch"]
        rest = run_git(args, cwd=common_dir, git_dir=common_dir, input=asked).out
        for path in some:
            head, _, rest = rest.partition(b"\n")
            with understood(f"what was saved of {path!r}"):
                _, kind, size = head.decode("ascii").rsplit(" ", 2)
                length = int(size)
            if kind != "blob":
                raise GitError(f"What was saved of {path!r} is no file any more.", path=path)
            yield path, rest[:length]
            rest = rest[length + 1 :]


def saved_entries(common_dir: Path, commit: str) -> Mapping[str, tuple[str, str]]:
    """The paths where the salvage differs from the HEAD it was taken at: mode and blob.

    A path that was deleted has a mode and a blob of zeros.

    Raises:
        GitError: The commit isn't here.
    """
    args = ["log", "-1", "--format=%P", commit, "--"]
    parents = run_git(args, cwd=common_dir, git_dir=common_dir).text.split()
    against = [parents[0], commit] if parents else ["--root", commit]
    listed = run_git(
        ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", *against],
        cwd=common_dir,
        git_dir=common_dir,
    ).records
    entries: dict[str, tuple[str, str]] = {}
    with understood(f"the salvage {commit[:12]}"):
        for fields, path in zip(listed[::2], listed[1::2], strict=True):
            _, mode, _, oid, _ = fields.split(" ")
            entries[path] = (mode, oid)
    return entries


def _write(place: Path, mode: str, blob: bytes, *, exact: int | None) -> None:
    if mode == LINK:
        place.symlink_to(os.fsdecode(blob))
        return
    place.write_bytes(blob)
    usual = 0o755 if mode == _EXECUTABLE else 0o644
    place.chmod(usual if exact is None else exact)


def _check_out_the_rest(
    common_dir: Path, commit: str, top: Path, saved: Mapping[str, tuple[str, str]]
) -> None:
    with tempfile.TemporaryDirectory(prefix="lessor-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        run_git(["read-tree", commit], cwd=common_dir, git_dir=common_dir, env=env)
        paths = b"".join(os.fsencode(path) + b"\0" for path in saved)
        run_git(
            ["update-index", "--force-remove", "-z", "--stdin"],
            cwd=top,
            git_dir=common_dir,
            work_tree=top,
            input=paths,
            env=env,
        )
        run_git(
            ["checkout-index", "--all", "--quiet"],
            cwd=top,
            git_dir=common_dir,
            work_tree=top,
            env=env,
            timeout_s=CHECKOUT_TIMEOUT_S,
        )
