"""What a salvage holds, read back from its reference and its archive, and its deletion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import GitError
from lessor.git.archive import list_archive
from lessor.git.command import run_git
from lessor.git.refs import OWN, delete_ref, read_ref
from lessor.git.restore import saved_entries

_GONE = "000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The content of one salvage.

    Attributes:
        commit: None where only an archive was made.
        files: path to git's mode of what the commit holds and its HEAD didn't.
        deleted: the paths that were deleted.
        commits: (id, subject) of what no branch, tag, remote or other salvage leads to.
        archived: members of the archive to their sizes in bytes.
        archive_bytes: the archive's own size; 0 where there is none.
    """

    commit: str | None
    files: Mapping[str, str]
    deleted: tuple[str, ...]
    commits: tuple[tuple[str, str], ...]
    archived: Mapping[str, int]
    archive_bytes: int


def read_saved(common_dir: Path, *, ref: str | None, archive: Path | None) -> Saved:
    """Look at a salvage; nothing is written.

    Raises:
        GitError: Its reference or its archive isn't here.
    """
    commit = read_ref(common_dir, ref) if ref else None
    if ref and commit is None:
        raise GitError(f"There is no reference {ref} in this clone.", ref=ref)
    entries = saved_entries(common_dir, commit) if commit else {}
    archived = list_archive(archive) if archive else {}
    return Saved(
        commit=commit,
        files={path: mode for path, (mode, _) in entries.items() if mode != _GONE},
        deleted=tuple(path for path, (mode, _) in entries.items() if mode == _GONE),
        commits=_only_here(common_dir, commit, ref) if commit and ref else (),
        archived=archived,
        archive_bytes=archive.stat().st_size if archive else 0,
    )


def delete_saved_ref(common_dir: Path, ref: str, *, expected: str) -> None:
    """Delete a salvage's reference; what only it led to is git's to collect.

    Raises:
        GitError: It is none of Lessor's salvages, or it moved meanwhile.
    """
    if not ref.startswith(f"{OWN}/salvage/"):
        raise GitError(f"{ref} is no salvage's reference.", ref=ref)
    if not delete_ref(common_dir, ref, expected=expected) and read_ref(common_dir, ref):
        raise GitError(
            f"{ref} can't be deleted: it isn't at {expected[:12]} any more.",
            next_step="Look at it again, then try once more.",
            ref=ref,
        )


def _only_here(common_dir: Path, commit: str, ref: str) -> tuple[tuple[str, str], ...]:
    listed = run_git(
        [
            *("log", "-z", "--format=%H %s", commit, "--not", "--branches", "--tags", "--remotes"),
            *(f"--exclude={ref}", f"--glob={OWN}"),
        ],
        cwd=common_dir,
        git_dir=common_dir,
    ).records
    found = (record.partition(" ") for record in listed)
    return tuple((oid, subject) for oid, _, subject in found if oid != commit)
