"""Names in quotes: in git's own C way for those of its inputs that have no `-z`, and for people."""

from __future__ import annotations

import os


def c_quoted(name: str | os.PathLike[str]) -> bytes:
    """`name` in double quotes, every byte that isn't plain ASCII as an escape."""
    octets = (
        chr(byte) if 0x20 < byte < 0x7F and byte not in b'"\\' else f"\\{byte:03o}"  # noqa: PLR2004 - printable ASCII
        for byte in os.fsencode(name)
    )
    return f'"{"".join(octets)}"'.encode("ascii")


def shown_path(path: str) -> str:
    """A path as text that every store and terminal can take: quoted where it isn't printable."""
    return path if path.isprintable() else repr(path)
