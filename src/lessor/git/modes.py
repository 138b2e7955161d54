"""The permissions of saved files that git doesn't keep, written into the salvage's message.

A tree knows of a file whether it is executable; that a key was readable by its owner alone, it
forgets. One line a file: its mode in octal, its path as JSON text.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from lessor.git.understood import understood

_HEAD = "Modes that git doesn't keep:"
_EXECUTABLE = 0o755
_PLAIN = 0o644


def modes_text(top: Path, paths: Iterable[str]) -> str:
    """The lines for the regular files among `paths` that git would give back with another mode."""
    lines: list[str] = []
    for path in sorted(paths):
        try:
            found = (top / path).lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        mode = stat.S_IMODE(found)
        if stat.S_ISREG(found) and mode != (_EXECUTABLE if mode & stat.S_IXUSR else _PLAIN):
            lines.append(f"{mode:04o} {json.dumps(path)}\n")
    return f"\n{_HEAD}\n{''.join(lines)}" if lines else ""


def read_modes(message: str) -> Mapping[str, int]:
    """The modes in a salvage's message, by path; empty where it has none."""
    _, _, listed = message.partition(f"\n{_HEAD}\n")
    modes: dict[str, int] = {}
    for line in listed.splitlines():
        mode, _, path = line.partition(" ")
        with understood("the modes in a salvage"):
            modes[str(json.loads(path))] = int(mode, 8)
    return modes
