"""A worker's clone, and commits on the one branch that each place has at the remote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

from lessor.git.repository import find_repository
from lessor.model.lease import Holder
from lessor.publish.pushing import Errand, Published, publish
from lessor.service.lessor import Lessor

_WHO = {
    f"GIT_{role}_{what}": text
    for role in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "worker"), ("EMAIL", "worker@example.org"))
}
LONGEST_GIT_S = 60


class GitFailedError(OSError):
    """The harness's own git failed: a full disk, a remote that is away."""


class Clone:
    """A clone of the remote, made anew where an earlier process died while making it."""

    def __init__(self, folder: Path, remote: str) -> None:
        self.folder = folder
        if not (folder / ".made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            git(folder.parent, "clone", "--quiet", remote, str(folder))
            (folder / ".made").touch()
        self._repo = find_repository(folder)

    def commit(self, leaf: str, lease: dict[str, Any], rng: Random) -> Errand:
        """A commit of one file below `leaf`, on what the place's branch has now."""
        ref = ref_of(leaf)
        there = git(self.folder, "ls-remote", "origin", ref).split()
        if there:
            git(self.folder, "fetch", "--quiet", "origin", ref)
        parent = there[0] if there else git(self.folder, "rev-parse", "origin/main")
        text = json.dumps({**lease, "n": rng.randrange(10**9)})
        tree = git(self.folder, "hash-object", "-w", "--stdin", told=text)
        tree = git(self.folder, "mktree", told=f"100644 blob {tree}\tdata\n")
        for name in reversed(leaf.split("/")):
            tree = git(self.folder, "mktree", told=f"040000 tree {tree}\t{name}\n")
        commit = git(self.folder, "commit-tree", tree, "-p", parent, "-m", text)
        return Errand(repo=self._repo, remote="origin", ref=ref, commit=commit)

    def publish(self, lessor: Lessor, holder: Holder, errand: Errand) -> Published:
        """Push it as the holder of its lease."""
        return publish(lessor, holder, errand)


def ref_of(leaf: str) -> str:
    """The branch of a place at the remote."""
    return f"refs/heads/area/{leaf.replace('/', '-')}"


def git(folder: Path, *args: str, told: str = "") -> str:
    """What git says."""
    try:
        done = subprocess.run(
            ["git", *args],
            cwd=folder,
            input=told,
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST_GIT_S,
            env={**os.environ, **_WHO},
        )
    except subprocess.SubprocessError as failed:
        raise GitFailedError(str(getattr(failed, "stderr", "") or failed)) from failed
    return done.stdout.strip()
