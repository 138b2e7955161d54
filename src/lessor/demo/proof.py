"""What the demo proves at its end, from git, the store and the agents' own ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.git.command import run_git
from lessor.git.repository import Repository
from lessor.service.lessor import Lessor


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Figures that were read, none that was assumed.

    Attributes:
        compared: files that the agents' ledger says were written.
        missing: those of them whose bytes are nowhere in the repository's references.
        refused: late writes that the store refused and kept as evidence.
    """

    compared: int
    missing: tuple[str, ...]
    refused: tuple[str, ...]
    salvage_refs: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Nothing is missing, and a stale write was refused."""
        return self.compared > 0 and not self.missing and bool(self.refused)


def prove(lessor: Lessor, repo: Repository, *, ledger: Path, tasks: Sequence[str]) -> Proof:
    """Compare every byte that the agents say they wrote with what git's references hold."""
    held = _held_blobs(repo)
    entries = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    missing = [
        f"{entry['path']} (#{entry['task']})"
        for entry in entries
        if _blob(repo, entry["text"]) not in held
    ]
    late = [
        f"#{lessor.tasks.task(task).number}: {event.facts['verb']} at epoch {event.epoch}, current {event.facts['current_epoch']}"
        for task in tasks
        for event in lessor.tasks.history(task)
        if event.kind == "late"
    ]
    refs = repo.git(
        ["for-each-ref", "--format=%(refname)", "refs/lessor/salvage"]
    ).text.splitlines()
    return Proof(
        compared=len(entries), missing=tuple(missing), refused=tuple(late), salvage_refs=tuple(refs)
    )


def _held_blobs(repo: Repository) -> frozenset[str]:
    """Every object that some reference leads to: branches, salvage, pins."""
    listed = repo.git(["rev-list", "--objects", "--all"]).text
    return frozenset(line.partition(" ")[0] for line in listed.splitlines())


def _blob(repo: Repository, text: str) -> str:
    return run_git(["hash-object", "--stdin"], cwd=repo.common_dir, input=text.encode()).text
