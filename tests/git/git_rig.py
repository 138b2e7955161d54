"""What the tests of worktrees share beside their fixtures."""

from __future__ import annotations

from pathlib import Path


def nobody(directory: Path) -> tuple[str, ...]:
    """Nobody is inside of any directory."""
    return ()
