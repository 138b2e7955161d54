"""What the publish tests do with a fenced repository, in short words."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from builders import TTL, Yard
from lessor.git.fence import FENCES, fence_ref
from lessor.git.repository import find_repository
from lessor.model.grant import Grant
from lessor.publish.claiming import claim_ready
from lessor.publish.pushing import Errand, Published, publish
from lessor.service.lessor import Lessor


def git(cwd: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=Agent", "-c", "user.email=agent@example.org", *args],
        cwd=cwd,
        capture_output=True,
        check=True,
    )
    return os.fsdecode(done.stdout).rstrip("\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A store, a bare remote and a clone."""

    yard: Yard
    bare: Path
    clone: Path

    @property
    def lessor(self) -> Lessor:
        return self.yard.lessor

    def claim(self, **more: object) -> list[Grant]:
        """A claim as commands make it: what it grants is ready."""
        leases = self.lessor.leases
        request = self.yard.request(**more)
        return claim_ready(
            self.lessor,
            self.clone,
            self.yard.repository.id,
            lambda wait: leases.claim(request, wait_ms=wait),
            give_back=lambda grant, why: leases.release(grant.holder, reason=why),
        )

    def holding(self, *scopes: str, **more: object) -> Grant:
        """A task with these scopes, claimed and ready."""
        task = self.yard.add(f"holds {scopes}", scopes=scopes)
        (grant,) = self.claim(task=task.task, **more)
        return grant

    def commit(self, text: str = "work", *, on: str | None = None) -> str:
        """A commit that nothing points at."""
        parent = on or git(self.clone, "rev-parse", "main")
        tree = git(self.clone, "rev-parse", "main^{tree}")
        return git(self.clone, "commit-tree", "-p", parent, "-m", text, tree)

    def errand(self, grant: Grant, commit: str, **more: object) -> Errand:
        repo = find_repository(self.clone)
        values = {"repo": repo, "remote": "origin", "ref": self.ref(grant), "commit": commit}
        return Errand(**{**values, **more})

    def push(self, grant: Grant, commit: str, **more: object) -> Published:
        """A push as `lessor push` makes it."""
        return publish(self.lessor, grant.holder, self.errand(grant, commit, **more))

    def ref(self, grant: Grant) -> str:
        return f"refs/heads/{grant.branch}"

    def tip(self, grant: Grant) -> str:
        """What the remote has of the grant's branch."""
        return git(self.bare, "for-each-ref", "--format=%(objectname)", self.ref(grant))

    def fences(self) -> list[str]:
        """The leases that the remote has a fence reference of."""
        listed = git(self.bare, "for-each-ref", "--format=%(refname)", FENCES)
        return [name.removeprefix(FENCES) for name in listed.splitlines()]

    def fence(self, grant: Grant) -> str:
        ref = fence_ref(grant.lease)
        return git(self.bare, "for-each-ref", "--format=%(objectname)", ref)

    def lapse(self) -> None:
        """Let every lease run out."""
        self.yard.store.advance(TTL)

    def hook(self, where: Path, name: str, text: str) -> None:
        """A hook of the remote or of the clone."""
        place = where / ("hooks" if where == self.bare else ".git/hooks") / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\n{text}\n")
        place.chmod(0o755)
