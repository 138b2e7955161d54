"""A small disk of its own (tmpfs) that can be full from one moment to the next, and have room again."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

ROOMY = "4g"
"""The size when there is room: only what lies there takes memory."""
TRIES = 5
SLACK = 1 << 16


class SmallDisk:
    """A tmpfs mounted at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        _mount("-t", "tmpfs", "-o", f"size={ROOMY},mode=755", "lessor", str(folder))

    def fill(self) -> None:
        """Leave next to nothing: the disk becomes as small as what lies on it."""
        for more in range(TRIES):  # somebody may write between the question and the answer
            seen = os.statvfs(self.folder)
            used = (seen.f_blocks - seen.f_bfree) * seen.f_frsize + more * SLACK
            used = max(used, seen.f_frsize)  # to a tmpfs 0 means without end
            try:
                _mount("-o", f"remount,size={used}", str(self.folder))
            except subprocess.CalledProcessError:
                continue
            return

    def empty(self) -> None:
        """Give the room back."""
        _mount("-o", f"remount,size={ROOMY}", str(self.folder))

    def close(self) -> None:
        """Unmount it; what is on it is gone."""
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)


def why_not() -> str:
    """Why no small disk can be mounted here; empty where one can."""
    with tempfile.TemporaryDirectory(prefix="lessor-disk-") as folder:
        try:
            tried = SmallDisk(Path(folder) / "tried")
        except (OSError, subprocess.SubprocessError):
            return "this machine lets this user mount no tmpfs"
        tried.close()
    return ""


def _mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True, capture_output=True, text=True, timeout=20)
