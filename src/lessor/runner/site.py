"""A repository on this host: its store, its clone, and where Lessor's things about it lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lessor.git.repository import Repository
from lessor.runner.host import Host
from lessor.service.lessor import Lessor


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What is needed to look at workspaces, and to take them away.

    Attributes:
        repository: the repository's id in the store.
        state_dir: the user's state directory on this host.
    """

    lessor: Lessor
    repo: Repository
    repository: str
    state_dir: Path
    host: Host

    def run_dir(self, lease: str) -> Path:
        """Where a lease's brief, log and report lie."""
        return self.state_dir / "runs" / lease

    @property
    def archive_dir(self) -> Path:
        """Where salvaged ignored files lie."""
        return self.state_dir / "salvage"

    @property
    def worktrees_dir(self) -> Path:
        """Where this repository's worktrees lie: outside of it, as tools scan nested ones."""
        return self.state_dir / "worktrees" / f"{self.repo.name}-{self.repository[-6:]}"
