"""This host's own id, made once: a supervisor is told it and never imports this module."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from lessor.ids import new_token

MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def host_id(state: Path) -> str:
    """This host's random id, kept in the user's state directory.

    The file's name holds a digest of the machine's own id, so that a home directory shared by two
    machines gives each its own: equal host ids make a changed boot id a proof of death. Several
    processes may make it at once; all get the same one.

    Raises:
        OSError: the directory can't be read or written.
    """
    path = state / f"host-{hashlib.sha256(_machine_id()).hexdigest()[:16]}"
    if not path.exists():
        _offer(path, f"host_{new_token()[:32]}")
    return path.read_text().strip()


def _offer(path: Path, own: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{own}")
    try:
        draft.write_text(f"{own}\n")
        # A link appears with its whole content or not at all, and only the first one succeeds.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _machine_id() -> bytes:
    for path in MACHINE_IDS:
        with suppress(OSError):
            if text := path.read_bytes().strip():
                return text
    # A renamed machine gets a new id, and what it knew of the old one becomes "unknown".
    return os.uname().nodename.encode()
