"""How known agents are started without a person at the keyboard."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

AGENT_COMMANDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "claude": ("claude", "-p", "{prompt}", "--permission-mode", "acceptEdits"),
        "codex": ("codex", "exec", "-s", "workspace-write", "{prompt}"),
        "gemini": ("gemini", "-p", "{prompt}", "--approval-mode", "auto_edit"),
    }
)
"""Argument lists; `{prompt}` becomes the brief, as one argument."""
