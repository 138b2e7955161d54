"""Agents that are installed on this machine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

KNOWN = ("claude", "codex", "gemini")
"""In the order in which one is chosen where several are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledAgent:
    """An agent's program; `path` is None where it isn't on PATH."""

    name: str
    path: str | None


def installed_agents() -> list[InstalledAgent]:
    """The agents that Lessor knows, in its order of choice."""
    return [InstalledAgent(name=name, path=shutil.which(name)) for name in KNOWN]
