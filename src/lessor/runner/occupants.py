"""Who is inside a directory now: processes, and file systems mounted below it.

With `host`, `proctable` and `cgroup` this is where one system's own means are used. On Linux /proc
is read; elsewhere psutil knows working directories, and where neither can be asked nobody knows.
A process that belongs to another user can't be looked into: finding nobody proves nothing about it.
Git processes of another look aren't inside: two cleanings would else keep each other from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lessor.git.layout import LOOK
from lessor.runner.proctable import LINUX, PROC, has_environment

_OCTAL = re.compile(r"\\([0-7]{3})")
_MOUNT_POINT = 4  # the field of /proc/<pid>/mountinfo, counted from 0; see proc(5)
_DEEPEST = 64


def occupants(directory: Path) -> tuple[str, ...] | None:
    """Processes that work in `directory` or have a file in it open, and what is mounted there.

    Each is named for people (`python3 (pid 412)`). None means that nobody can tell.
    """
    place = directory.resolve()
    if not LINUX:
        return _portable(place)
    try:
        (PROC / "self" / "cwd").readlink()
        mounts = _mounts(place)
    except OSError:
        return None
    inside = (pid for pid in _inside(place) if not has_environment(pid, LOOK))
    return (*(_named(pid) for pid in inside), *mounts)


def mount_points(mountinfo: str) -> Iterator[Path]:
    """The mount points in the text of /proc/<pid>/mountinfo."""
    for line in mountinfo.removesuffix("\n").split(
        "\n"
    ):  # a path may hold what splitlines() splits at
        yield Path(_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), line.split(" ")[_MOUNT_POINT]))


def _mounts(place: Path) -> tuple[str, ...]:
    text = os.fsdecode((PROC / "self" / "mountinfo").read_bytes())
    found = (point for point in mount_points(text) if point.is_relative_to(place))
    return tuple(f"the file system mounted at {point}" for point in found)


def _inside(place: Path) -> Iterator[int]:
    # Paths as text, as there are thousands of links to read.
    proc, top = os.fspath(PROC), os.fspath(place)
    own_mounts = _link(f"{proc}/self/ns/mnt")
    for name in os.listdir(proc):  # noqa: PTH208
        if name.isdecimal() and _is_inside(f"{proc}/{name}", top, own_mounts=own_mounts):
            yield int(name)


def _is_inside(process: str, top: str, *, own_mounts: str) -> bool:
    below = f"{top}/"
    for name in ("cwd", "root"):
        target = _link(f"{process}/{name}")
        if target == top or target.startswith(below):
            return True
    with suppress(OSError):  # it ended, or it is another user's
        for handle in os.listdir(f"{process}/fd"):  # noqa: PTH208
            target = _link(f"{process}/fd/{handle}")
            if target == top or target.startswith(below):
                return True
    # In a container the same directory has another name, and only its inode tells.
    mounts = _link(f"{process}/ns/mnt")
    return bool(mounts) and mounts != own_mounts and _leads_to(f"{process}/cwd", top)


def _leads_to(step: str, top: str) -> bool:
    with suppress(OSError):
        wanted = Path(top).stat()
        for _ in range(_DEEPEST):
            found = os.stat(step)  # noqa: PTH116 - the magic link has to be followed anew each time
            if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
            step += "/.."
            above = os.stat(step)  # noqa: PTH116
            if (above.st_dev, above.st_ino) == (found.st_dev, found.st_ino):
                return False
    return False


def _link(path: str) -> str:
    with suppress(OSError):
        return os.readlink(path)  # noqa: PTH115
    return ""


def _named(pid: int) -> str:
    with suppress(OSError):
        name = (PROC / str(pid) / "comm").read_text(errors="replace").strip()
        return f"{name} (pid {pid})"
    return f"process {pid}"


def _portable(place: Path) -> tuple[str, ...] | None:
    try:
        import psutil  # noqa: PLC0415 - see proctable
    except ImportError:
        return None
    found: list[str] = []
    try:
        points = [Path(part.mountpoint) for part in psutil.disk_partitions(all=True)]
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if Path(process.cwd()).is_relative_to(place):
                    found.append(f"{process.name()} (pid {process.pid})")
    except (psutil.Error, OSError):
        return None
    mounted = (point for point in points if point.is_relative_to(place))
    return (*found, *(f"the file system mounted at {point}" for point in mounted))
