"""The manifest `lessor.toml`."""

from __future__ import annotations

from fuzz.promise import asked
from lessor.project.manifest import KEYS, read_manifest

_NAMES = {key.name for key in KEYS}


def one(data: bytes) -> None:
    """One input."""
    settings = asked(lambda: read_manifest(data))
    assert settings is None or settings.keys() <= _NAMES
