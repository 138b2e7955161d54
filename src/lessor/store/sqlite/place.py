"""Where a store may lie: a file of its own on a local file system."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
from pathlib import Path

from lessor.clock import SystemClock
from lessor.errors import (
    BusyError,
    LessorError,
    StoreNewerError,
    StoreUnavailableError,
    StoreUnsupportedError,
)

NETWORK = frozenset(
    {
        "9p",
        "afpfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
        "webdav",
    }
)
MOUNTS = Path("/proc/self/mountinfo")
LOCKS = Path("/proc/locks")
PATIENCE_MS = 10_000
"""How long a process that has the store alone is waited for."""
_LOOK_MS = 5
_ALONE = ["FLOCK", "ADVISORY", "WRITE"]
NEEDED = 128 * 1024
"""Bytes without which SQLite can't open a file: its shared memory alone takes 32 kB."""
_POINT = 4  # the field of a mount's place
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def check_place(path: Path, *, mounts: Path = MOUNTS) -> None:
    """Refuse what can't be a store.

    Args:
        mounts: the system's list of mounts, as Linux writes it.

    Raises:
        StoreUnsupportedError: a directory or device, or a network file system: write-ahead logging
            needs shared memory, and locks there are a promise that nobody keeps.
        StoreUnavailableError: the folder isn't there, or can't be looked into. It is never made: a
            mistyped path, or a disk that isn't mounted, would become an empty store.
    """
    try:
        odd = path.exists() and not path.is_file()
        folder = path.resolve().parent
        missing = not folder.is_dir()
    except OSError as error:
        raise unavailable(path, error) from error
    except RuntimeError as error:  # Python below 3.13 tells of a link to itself so
        raise unavailable(path, OSError(errno.ELOOP, os.strerror(errno.ELOOP))) from error
    if missing:
        raise StoreUnavailableError(
            f"There is no directory {path.parent}, so no store in it.",
            next_step="See whether it is spelt right and its disk is there; a new one is made with mkdir.",
            store=str(path),
        )
    if odd:
        raise StoreUnsupportedError(
            f"{path} is a {'directory' if path.is_dir() else 'device'}, not a file.",
            next_step="Name a file: --store sqlite:///…/lessor.db.",
            store=str(path),
        )
    kind = file_system(folder, mounts=mounts)
    if kind in NETWORK:
        raise StoreUnsupportedError(
            f"{path} lies on a network file system ({kind}), where SQLite can't keep its promises.",
            next_step="Use a local disk, or PostgreSQL for several machines.",
            store=str(path),
            file_system=kind,
        )


def file_system(folder: Path, *, mounts: Path = MOUNTS) -> str:
    """The type of the file system that holds `folder`; empty where the system doesn't say."""
    try:
        lines = mounts.read_bytes().splitlines()
    except OSError:
        return ""
    target = os.fsencode(folder)
    best, kind = -1, b""
    for line in lines:
        left, _, right = line.partition(b" - ")
        fields = left.split()
        if len(fields) <= _POINT or not right:
            continue
        point = _ESCAPED.sub(lambda octal: bytes([int(octal[1], 8)]), fields[_POINT])
        inside = target == point or target.startswith(point.rstrip(b"/") + b"/")
        if inside and len(point) >= best:
            best, kind = len(point), right.split()[0]
    return kind.decode("ascii", errors="replace")


class WriterLock:
    """A shared lock beside the file, with the schema version that its holders write.

    Every process that has the store open holds it; a migration needs it alone. So two Lessors
    that would write different schemas never have one file open at the same time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unavailable(path, error) from error

    def hold(self, version: int) -> None:
        """Join the writers of `version`.

        Raises:
            StoreNewerError: a process that writes another schema version has the file open.
            BusyError: a process that has it alone doesn't let go; it may be stopped.
        """
        try:
            if self._take(fcntl.LOCK_EX):
                os.pwrite(self._fd, f"{version:<12}".encode(), 0)
            self._share()
            other = os.pread(self._fd, 12, 0).decode("ascii", errors="replace").strip()
        except OSError as error:
            raise unavailable(self._path, error) from error
        if other and other != str(version):
            self.close()
            raise StoreNewerError(
                f"A Lessor that writes schema version {other} has this store open; this one writes {version}.",
                next_step="Stop the other one, or use the same version for both.",
                store_version=other,
                known_version=version,
            )

    def alone(self) -> bool:
        """Whether no other process has the store open (kept until `hold`)."""
        return self._take(fcntl.LOCK_EX)

    def _take(self, kind: int) -> bool:
        try:
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _share(self) -> None:
        """Hold it with others; from holding it alone this isn't one step, and another may come first."""
        clock = SystemClock()
        until_ms = clock.boottime_ms() + PATIENCE_MS
        while not self._take(fcntl.LOCK_SH):
            if clock.boottime_ms() >= until_ms:
                raise self._kept()
            clock.wait(_LOOK_MS)

    def _kept(self) -> BusyError:
        pid = holder_of(self._fd)
        who = f"Process {pid}" if pid else "Another process"
        look = (
            f"ps -o pid,stat,args -p {pid}" if pid else f"fuser -v {shlex.quote(str(self._path))}"
        )
        return BusyError(
            f"{who} has the store alone, to restore it or bring it up to date, and doesn't let go.",
            next_step=f"Look at it: {look}. Where it is stopped (T), let it go on (kill -CONT) or end it; "
            "else try again.",
            retry_ms=1_000,
            lock=str(self._path),
            pid=pid,
        )

    def close(self) -> None:
        """Leave the writers."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def holder_of(lock: int, *, locks: Path = LOCKS) -> int | None:
    """The process that holds the open file `lock` alone; None where this system doesn't tell.

    Args:
        locks: the system's list of locks, as Linux writes it.
    """
    found = os.fstat(lock)
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    try:
        lines = locks.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        _, *what, pid, where, _, _ = line.split()
        # A process of another container is told as 0.
        if where == f"{device}:{found.st_ino}" and what == _ALONE and pid != "0":
            return int(pid)
    return None


def file_id(path: str) -> tuple[int, int] | None:
    """By which to tell whether a path still leads to the same file; None where none is there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked at every transaction: a Path takes twice as long
    except OSError:
        return None
    return found.st_dev, found.st_ino


def moved(path: Path) -> StoreUnavailableError:
    """The refusal to go on in a file that nobody else finds any more."""
    there = "another file is in its place" if path.exists() else "nothing is in its place"
    return StoreUnavailableError(
        f"{path} was moved or deleted while it was open; {there}. Nothing was changed.",
        next_step="End what has it open here, put the file back or restore a backup, then begin again.",
        store=str(path),
    )


def unavailable(path: Path, error: OSError) -> LessorError:
    """The system's refusal to open or write `path`, and what to do."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return full(path)
    if error.errno == errno.EROFS:
        return read_only(path)
    return StoreUnavailableError(
        f"{path} can't be opened: {error.strerror}.",
        next_step="Check that the folder exists and is yours to write, or give --store.",
        store=str(path),
    )


def full(path: Path) -> StoreUnavailableError:
    """The refusal of a write for which there is no room: names the file system that is full."""
    mount = mount_point(path)
    return StoreUnavailableError(
        f"The disk is full: {mount} has no room for {path}. Nothing was changed.",
        next_step=f"Free some space on {mount} and try again, or name another place: --store.",
        store=str(path),
        mount=str(mount),
        free_bytes=free_bytes(path),
    )


def is_read_only(path: Path) -> bool:
    """Whether the file system of `path` takes no writes: mounted so, or turned so by its own errors."""
    try:
        return bool(os.statvfs(_folder(path)).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def read_only(path: Path) -> StoreUnavailableError:
    """The refusal of a write on a file system that takes none; even readers write there."""
    mount = mount_point(path)
    return StoreUnavailableError(
        f"The file system of {path} is read-only: {mount} takes no writes. Nothing was changed.",
        next_step=f"Mount it for writing (mount -o remount,rw {shlex.quote(str(mount))}) and try again; "
        "one that turned so by itself has errors: see dmesg.",
        store=str(path),
        mount=str(mount),
    )


def is_full(path: Path) -> bool:
    """Whether the file system of `path` has too little room left for SQLite to open anything."""
    free = free_bytes(path)
    return free is not None and free < NEEDED


def free_bytes(path: Path) -> int | None:
    """What is free for this user where `path` lies; 0 also where no file more can be made."""
    try:
        found = os.statvfs(_folder(path))
    except OSError:
        return None
    if found.f_files and not found.f_favail:
        return 0
    return found.f_bavail * found.f_frsize


def mount_point(path: Path) -> Path:
    """The top of the file system that `path` lies on."""
    folder = _folder(path).resolve()
    return next(place for place in (folder, *folder.parents) if os.path.ismount(place))


def _folder(path: Path) -> Path:
    """The nearest directory on the way to `path` that is there."""
    return next(place for place in path.absolute().parents if place.is_dir())
