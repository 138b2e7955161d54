"""What the receive tests do with a repository that has Lessor's hooks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from builders import Yard
from lessor.errors import LessorError
from lessor.git.repository import find_repository
from lessor.git.server_hooks import FOLDER, install_server_hooks
from lessor.hook import client
from lessor.model.grant import Grant
from lessor.publish.pushing import Errand, Published, publish
from lessor.receive.keeper import SETTINGS, settings_text, stop_keeper

LONG = 600_000


def git(cwd: Path, *args: str, check: bool = True, **env: str) -> str:
    """Plain git as an agent or a person runs it; what it printed, both streams."""
    done = subprocess.run(
        [
            *("git", "-c", "user.name=Agent", "-c", "user.email=agent@example.org"),
            *("-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false", *args),
        ],
        cwd=cwd,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    said = os.fsdecode(done.stdout).rstrip("\n")
    assert done.returncode == 0 or not check, said
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """A store in real time, a bare repository with the hooks, and a clone."""

    yard: Yard
    bare: Path
    clone: Path

    def install(self, *, store: str = "") -> None:
        install_server_hooks(
            find_repository(self.bare),
            client=Path(client.__file__),
            base=sys.executable,
            python=sys.executable,
            beside={
                SETTINGS: settings_text(
                    store=store or self.yard.store.url,
                    listen=None,
                    repository=self.yard.repository.id,
                )
            },
        )

    def stop(self) -> None:
        stop_keeper(self.bare / FOLDER)

    def holding(self, *scopes: str, **more: object) -> Grant:
        """A task, claimed, its branch checked out in the clone."""
        task = self.yard.add(f"holds {scopes}", scopes=scopes, **more)
        grant = self.claim(task.task)
        git(self.clone, "checkout", "-q", "-B", grant.branch or "", "main")
        return grant

    def claim(self, task: str) -> Grant:
        return self.yard.claim_one(task=task, ttl_ms=LONG, worker=self.yard.other.id)

    def write(self, path: str, text: str = "work\n") -> None:
        place = self.clone / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def commit(self, *paths: str, text: str = "work\n") -> str:
        """A commit on what is checked out, that writes these paths."""
        for path in paths:
            self.write(path, text)
        git(self.clone, "add", "-A")
        git(self.clone, "commit", "-q", "--allow-empty", "-m", "work")
        return self.head()

    def head(self) -> str:
        return git(self.clone, "rev-parse", "HEAD")

    def push(self, grant: Grant, commit: str = "", **more: object) -> Published:
        """As `lessor push`, but the paths are judged by the remote alone."""
        errand = Errand(
            repo=find_repository(self.clone),
            remote="origin",
            ref=f"refs/heads/{grant.branch}",
            commit=commit or self.head(),
            judged=True,
        )
        return publish(self.yard.lessor, grant.holder, replace(errand, **more))

    def refused(self, grant: Grant, commit: str = "", **more: object) -> str:
        """What a push that is refused is told."""
        try:
            done = self.push(grant, commit, **more)
        except LessorError as refusal:
            return str(refusal)
        raise AssertionError(f"not refused: {done}")

    def plainly(self, *refspecs: str, **env: str) -> str:
        """What plain `git push` prints."""
        return git(self.clone, "push", "origin", *refspecs, check=False, **env)

    def tip(self, ref: str) -> str:
        ref = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
        return git(self.bare, "for-each-ref", "--format=%(objectname)", ref)

    def hook(self, name: str, text: str) -> Path:
        """A hook of the bare repository's own."""
        place = self.bare / "hooks" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\n{text}\n")
        place.chmod(0o755)
        return place


class Paused:
    """Something that pushes, in a thread, held by an `update` hook between the two looks."""

    def __init__(self, gated: Gated, folder: Path, push: Callable[[], object]) -> None:
        self._fifo, began = folder / "go", folder / "began"
        os.mkfifo(self._fifo)
        gated.hook("update", f"echo > {began}; timeout 60 cat {self._fifo} > /dev/null")
        self.said: object = None
        self._thread = threading.Thread(target=self._run, args=(push,), daemon=True)
        self._thread.start()
        while not began.exists():
            assert self._thread.is_alive(), self.said
            self._thread.join(0.01)

    def resume(self) -> object:
        self._fifo.write_text("go\n")
        self._thread.join()
        return self.said

    def _run(self, push: Callable[[], object]) -> None:
        try:
            self.said = push()
        except LessorError as refused:
            self.said = refused
