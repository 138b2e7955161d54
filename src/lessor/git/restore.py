"""What was salvaged, written back byte for byte into a directory of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lessor.errors import GitError, WorktreeError
from lessor.git.archive import extract_archive, place_below
from lessor.git.blob import GITLINK, LINK
from lessor.git.command import CHECKOUT_TIMEOUT_S, run_git

_GONE = "000000"
_EXECUTABLE = "100755"


def restore_salvage(
    *, common_dir: Path, commit: str | None, archive: Path | None, into: Path
) -> tuple[str, ...]:
    """Write a salvage into `into`, which must be empty or missing; the paths that it saved.

    The directory is readable by its owner alone: git doesn't keep that a file was private. Files
    that HEAD held unchanged are checked out as usual; the saved ones are written as they were
    found, without filters.

    Raises:
        WorktreeError: `into` holds something already.
        GitError: Something can't be read or written.
    """
    try:
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise WorktreeError(
                f"{into} isn't empty.",
                next_step="Name a directory that doesn't exist yet.",
                path=str(into),
            )
        top = into.resolve()
        saved = _restore_commit(common_dir, commit, top) if commit else ()
        return (*saved, *(extract_archive(archive, top) if archive else ()))
    except OSError as refused:
        raise GitError(f"{into} can't be written: {refused}.", path=str(into)) from refused


def _restore_commit(common_dir: Path, commit: str, top: Path) -> tuple[str, ...]:
    saved = _saved_entries(common_dir, commit)
    for path, (mode, oid) in saved.items():
        if mode not in {_GONE, GITLINK}:
            blob = run_git(["cat-file", "blob", oid], cwd=common_dir, git_dir=common_dir).out
            _write(place_below(top, path), mode, blob)
    _check_out_the_rest(common_dir, commit, top, saved)
    return tuple(path for path, (mode, _) in saved.items() if mode != _GONE)


def _saved_entries(common_dir: Path, commit: str) -> Mapping[str, tuple[str, str]]:
    """The paths where the salvage differs from the HEAD it was taken at: mode and blob."""
    args = ["log", "-1", "--format=%P", commit, "--"]
    parents = run_git(args, cwd=common_dir, git_dir=common_dir).text.split()
    against = [parents[0], commit] if parents else ["--root", commit]
    listed = run_git(
        ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", *against],
        cwd=common_dir,
        git_dir=common_dir,
    ).records
    entries: dict[str, tuple[str, str]] = {}
    for fields, path in zip(listed[::2], listed[1::2], strict=True):
        _, mode, _, oid, _ = fields.split(" ")
        entries[path] = (mode, oid)
    return entries


def _write(place: Path, mode: str, blob: bytes) -> None:
    if mode == LINK:
        place.symlink_to(os.fsdecode(blob))
        return
    place.write_bytes(blob)
    place.chmod(0o755 if mode == _EXECUTABLE else 0o644)


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
