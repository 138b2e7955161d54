"""A small disk of its own (tmpfs), which can be filled to the last byte and emptied again."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

MEGABYTES = 192
CHUNK = 1 << 20


class SmallDisk:
    """A tmpfs mounted at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / ".ballast"
        folder.mkdir()
        command = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"size={MEGABYTES}m,mode=755",
            "lessor",
            str(folder),
        ]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)

    def fill(self) -> None:
        """Leave not a byte."""
        with suppress(OSError), self._ballast.open("ab", buffering=0) as out:
            while True:
                out.write(bytes(CHUNK))
        with suppress(OSError), self._ballast.open("ab", buffering=0) as out:
            while True:
                out.write(bytes(512))

    def empty(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it; what is on it is gone."""
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)


def why_not() -> str:
    """Why no small disk can be mounted here; empty where one can."""
    return "" if os.geteuid() == 0 else "only root may mount a small disk"
