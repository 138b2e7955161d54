"""A cgroup v2 group for one agent, where this host lets us make one (Linux).

It kills and freezes a whole tree in one write, so that nothing can fork past it. It is a means,
never the proof: a process that may write to another group's `cgroup.procs` can leave, and its old
group then looks empty.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
MEMBERSHIP = Path("/proc/self/cgroup")
SYSTEMD = Path("/run/systemd/system")
DELEGATION_MARKS = ("user.delegate", "trusted.delegate")


class Cgroup:
    """A group that this process made and may use as it likes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def enter(self) -> None:
        """Move the calling process into the group; its children are born there."""
        _write(self.path / "cgroup.procs", "0")

    def kill(self) -> bool:
        """SIGKILL to every member at once; False before Linux 5.14, where there is no such file."""
        return _write(self.path / "cgroup.kill", "1")

    def freeze(self, *, frozen: bool) -> bool:
        """Stop or resume every member; False before Linux 5.2."""
        return _write(self.path / "cgroup.freeze", "1" if frozen else "0")

    def remove(self) -> None:
        """Remove the group; the kernel refuses while anything lives in it, and then it stays."""
        with suppress(OSError):
            self.path.rmdir()


def make_cgroup(name: str) -> Cgroup | None:
    """A fresh group `lessor-<name>` below our own, or None where it isn't ours to make."""
    parent = delegated_directory()
    if parent is None:
        return None
    path = parent / f"lessor-{name}"
    with suppress(OSError):
        path.rmdir()  # an empty one that a killed supervisor left; a living one stays
    try:
        path.mkdir()
    except OSError:
        return None
    return Cgroup(path)


def delegated_directory() -> Path | None:
    """The directory of our own group, when it is delegated to us.

    systemd owns the tree where it runs: a group that it hasn't marked as delegated is left alone,
    also by root.
    """
    directory = own_directory()
    if directory is None or not all(
        os.access(path, os.W_OK) for path in (directory, directory / "cgroup.procs")
    ):
        return None
    if os.geteuid() == 0 and SYSTEMD.exists() and not _marked_as_delegated(directory):
        return None
    return directory


def own_directory() -> Path | None:
    """Where our own cgroup v2 group is mounted, or None where there is none."""
    try:
        mounts = MOUNTS.read_text(errors="surrogateescape")
        membership = MEMBERSHIP.read_text(errors="surrogateescape")
    except OSError:
        return None
    return locate(mounts=mounts, membership=membership)


def locate(*, mounts: str, membership: str) -> Path | None:
    """Our group's directory from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    ours = next((line[3:] for line in membership.split("\n") if line.startswith("0::")), None)
    if ours is None:
        return None
    for line in mounts.split("\n"):
        before, _, after = line.partition(" - ")
        if after.split(" ")[0] != "cgroup2":
            continue
        root, mount_point = (_unescape(field) for field in before.split(" ")[3:5])
        if Path(ours).is_relative_to(root):
            return Path(mount_point) / Path(ours).relative_to(root)
    return None


def _marked_as_delegated(directory: Path) -> bool:
    for mark in DELEGATION_MARKS:
        with suppress(OSError):
            if os.getxattr(directory, mark) == b"1":
                return True
    return False


def _unescape(field: str) -> str:
    # The kernel writes blanks and backslashes of a path as three octal digits.
    for code in (" ", "\t", "\n"):
        field = field.replace(f"\\{ord(code):03o}", code)
    return field.replace("\\134", "\\")


def _write(path: Path, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
