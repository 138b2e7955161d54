"""A tar archive of what no commit can hold: ignored files, repositories inside a worktree.

It may hold secrets, so it is readable by its owner alone and never pushed. Members lie below
`files/` (paths of the worktree) and `git/` (files of its git directory: a rebase half done, the
stores of submodules).
"""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path, PurePosixPath

from lessor.errors import GitError

FILES = "files/"
GIT = "git/"

_TIME = "mtime"
_MODE = 0o600
_BLOCK = 1 << 20


def write_archive(directory: Path, name: str, *, members: Mapping[str, Path]) -> Path:
    """Write `members` (path in the archive: file, link or empty directory) to a new `<name>-<n>.tar`.

    An archive that holds the same already is returned as it is. The file appears whole or not at
    all, with mode 0600.

    Raises:
        GitError: A file changed while it was read, or the archive can't be written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _first_free(directory, name, members)
    except (OSError, tarfile.TarError) as refused:
        raise GitError(
            f"The archive for {name} can't be written: {refused}.",
            next_step="Nothing was removed; mend the cause and try again.",
            directory=str(directory),
        ) from refused


def list_archive(archive: Path) -> Mapping[str, int]:
    """The members of an archive with their sizes in bytes.

    Raises:
        GitError: It isn't there or can't be read.
    """
    try:
        with tarfile.open(archive, "r:") as tar:
            return {member.name: member.size for member in tar}
    except (OSError, tarfile.TarError) as refused:
        raise GitError(f"{archive} can't be read: {refused}.", archive=str(archive)) from refused


def extract_archive(archive: Path, into: Path, *, part: str = FILES) -> tuple[str, ...]:
    """Write one part of `archive` below `into`, with bytes, modes and times; the paths written.

    Raises:
        GitError: A member would lie outside of `into` or on another file, or can't be written.
    """
    written: list[str] = []
    try:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                if member.name.startswith(part):
                    path = member.name.removeprefix(part)
                    _extract(tar, member, place_below(into, path))
                    written.append(path)
    except (OSError, tarfile.TarError) as refused:
        raise GitError(
            f"{archive} can't be restored: {refused}.", archive=str(archive)
        ) from refused
    return tuple(written)


def place_below(top: Path, path: str) -> Path:
    """Where `path` lies below `top`, its parents made.

    Raises:
        GitError: It would lie outside, by its name or through a link.
    """
    parts = PurePosixPath(path).parts
    place = top.joinpath(*parts)
    outside = path.startswith("/") or ".." in parts or not parts
    if outside or any(parent.is_symlink() for parent in _between(place, top)):
        raise GitError(f"{path!r} would be written outside of {top}.", path=path)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _first_free(directory: Path, name: str, members: Mapping[str, Path]) -> Path:
    number = 1
    while True:
        path = directory / f"{name}-{number}.tar"
        if (not path.exists() and _write(path, members)) or _same(path, members):
            return path
        number += 1


def _between(place: Path, top: Path) -> Iterator[Path]:
    for parent in place.parents:
        if parent == top:
            return
        yield parent


def _same(path: Path, members: Mapping[str, Path]) -> bool:
    with tarfile.open(path, "r:") as tar:
        found = {member.name: member for member in tar}
        now = {name: _marks(_header(name, place)) for name, place in members.items()}
        # Marks first, as they cost nothing; but a time can be put back, and only bytes are bytes.
        return {name: _marks(member) for name, member in found.items()} == now and all(
            _has_bytes(tar, found[name], place) for name, place in members.items()
        )


def _has_bytes(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> bool:
    if not member.isreg():
        return True
    kept = tar.extractfile(member)
    if kept is None:
        return False
    with kept, os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        while block := file.read(_BLOCK):
            if kept.read(len(block)) != block:
                return False
        return not kept.read(1)


def _marks(member: tarfile.TarInfo) -> tuple[int, str, str]:
    return member.size, member.linkname, member.pax_headers.get(_TIME, "")


def _write(path: Path, members: Mapping[str, Path]) -> bool:
    handle, half = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for name, place in sorted(members.items()):
                    _add(tar, name, place)
            file.flush()
            os.fsync(file.fileno())
        os.link(half, path)  # never replaces an archive that another process wrote meanwhile
    except FileExistsError:
        return False
    finally:
        Path(half).unlink()
    return True


def _add(tar: tarfile.TarFile, name: str, place: Path) -> None:
    info = _header(name, place)
    if info.issym() or info.isdir():
        tar.addfile(info)
        return
    # A link that takes the file's place meanwhile isn't followed.
    with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        info.size = os.fstat(file.fileno()).st_size
        tar.addfile(info, file)


def _header(name: str, place: Path) -> tarfile.TarInfo:
    found = place.lstat()
    info = tarfile.TarInfo(name)
    info.mode = stat.S_IMODE(found.st_mode)
    # The format's own field is a float here, too coarse for nanoseconds.
    info.pax_headers = {_TIME: f"{Decimal(found.st_mtime_ns).scaleb(-9):f}"}
    if stat.S_ISLNK(found.st_mode):
        info.type = tarfile.SYMTYPE
        info.linkname = os.fspath(place.readlink())
    elif stat.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
    else:
        info.size = found.st_size
    return info


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    if member.issym():
        place.symlink_to(member.linkname)
        return
    if member.isdir():
        place.mkdir(mode=member.mode)
        return
    source = tar.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"{member.name} is no file, link or directory")
    with (
        source,
        os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as out,
    ):
        while block := source.read(_BLOCK):
            out.write(block)
    place.chmod(member.mode)
    changed_ns = int(Decimal(member.pax_headers.get(_TIME, member.mtime)).scaleb(9))
    os.utime(place, ns=(changed_ns, changed_ns))
