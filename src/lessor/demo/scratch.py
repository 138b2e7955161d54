"""A repository of the drill's own that reaches a person's remote, and what it leaves there.

Nothing of the person's is in it: no branch, no worktree, no remote-tracking reference and none of
their hooks. Their configuration is read along, as it says how the remote is reached.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import GitError
from lessor.git.command import run_git
from lessor.git.identity import LESSOR, identity
from lessor.git.push import ASK_TIMEOUT_S, Pushed, RefChange, push, remote_tips, tips_below
from lessor.git.refs import BRANCHES, OWN
from lessor.git.remote import place_of
from lessor.git.repository import Repository, find_repository

TRIALS = f"{OWN}/trial/"

# Git itself is stopped, after it has read what the remote has and before it sends anything. The
# file appears once its content is there.
_PAUSE = """#!/bin/sh
echo "$PPID" > {draft} && mv {draft} {place} && kill -STOP "$PPID"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A reference that couldn't be taken away, and the command that does it."""

    ref: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """The drill's own repository.

    Attributes:
        ref: the scratch branch at the remote.
        place: the remote's directory, where it is on this machine.
        paused: once a push is stopped before it sends, this file holds the process number of git.
        before: references of trials that the remote had before the drill.
    """

    repo: Repository
    remote: str
    ref: str
    place: Path | None
    paused: Path
    before: frozenset[str]

    @property
    def cwd(self) -> Path:
        """Where git is run."""
        return self.repo.root

    def tip(self) -> str | None:
        """What the remote has of the scratch branch.

        Raises:
            RemoteUnreachableError: it can't be asked.
        """
        return remote_tips(self.cwd, self.remote, self.ref).get(self.ref)

    def commit(self, text: str, *, parent: str | None = None) -> str:
        """A commit without any file, so that it touches nobody's paths."""
        tree = run_git(["hash-object", "-t", "tree", "-w", "--stdin"], cwd=self.cwd, input=b"").text
        args = ["commit-tree", *(["-p", parent] if parent else []), "-m", text, tree]
        return run_git(args, cwd=self.cwd, env=identity(LESSOR)).text

    def push_plainly(self, commit: str) -> Pushed:
        """Make the scratch branch as any program with the person's credentials could."""
        return self._move(None, commit)

    def takes_options(self, commit: str, *, on: str) -> bool:
        """Whether the remote takes push options; it is asked by a push that goes on from `on`."""
        return self._move(on, commit, option="lessor-drill").told

    def take_away(self) -> list[Left]:
        """Delete the scratch branch at the remote; what is left of the drill, as read there."""
        try:
            tip = self.tip()
            if tip is not None:
                with suppress(GitError):
                    self._move(tip, None)
            there = {*tips_below(self.cwd, self.remote, TRIALS)} - self.before
            if self.tip() is not None:
                there.add(self.ref)
        except GitError:
            there = {self.ref}
        return [self.left(ref) for ref in sorted(there)]

    def left(self, ref: str) -> Left:
        """A reference that is, or may be, left at the remote."""
        if self.place is None:
            return Left(ref=ref, command=shlex.join(["git", "push", self.remote, f":{ref}"]))
        # What a machine does to its own references is no push: no hook refuses it.
        args = ["git", "-C", str(self.place), "update-ref", "-d", ref]
        return Left(ref=ref, command=shlex.join(args))

    def _move(self, expected: str | None, new: str | None, *, option: str = "") -> Pushed:
        change = RefChange(ref=self.ref, expected=expected, new=new)
        return push(
            self.cwd,
            self.remote,
            [change],
            atomic=False,
            option=option,
            timeout_s=ASK_TIMEOUT_S,
        )


def make_scratch(folder: Path, theirs: Repository, remote: str, *, branch: str) -> Scratch:
    """Make the repository in `folder`, and look whether the remote answers.

    Args:
        theirs: the person's repository; only its configuration is read.

    Raises:
        RemoteUnreachableError: it doesn't answer.
        GitError: git can't make a repository there.
    """
    own, paused = folder / "scratch.git", folder / "paused"
    form = run_git(["rev-parse", "--show-object-format"], cwd=theirs.root).text
    run_git(["init", "-q", "--bare", f"--object-format={form}", str(own)], cwd=folder)
    place = _reach(own, theirs, remote)
    hook = own / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    draft, there = shlex.quote(f"{paused}.new"), shlex.quote(str(paused))
    hook.write_text(_PAUSE.format(draft=draft, place=there), encoding="utf-8")
    hook.chmod(0o700)
    run_git(["config", "core.hooksPath", str(hook.parent)], cwd=own)
    repo = find_repository(own)
    return Scratch(
        repo=repo,
        remote=remote,
        ref=f"{BRANCHES}{branch}",
        place=place,
        paused=paused,
        before=frozenset(tips_below(repo.root, remote, TRIALS)),
    )


def _reach(own: Path, theirs: Repository, remote: str) -> Path | None:
    """Let the new repository reach the remote as the person's does; its place on this machine.

    A path counts from where git runs, so that of a remote on this machine only the place is told.
    """
    place = place_of(theirs.root, remote)
    if place is not None:
        if remote in theirs.git(["remote"]).lines:
            run_git(["config", f"remote.{remote}.url", str(place)], cwd=own)
        return place
    made, config = (own / "config").read_bytes(), str(theirs.common_dir / "config")
    (own / "config").unlink()
    where = ["config", "--file", str(own / "config")]
    run_git([*where, "include.path", config], cwd=own.parent)
    # Of two values the later one counts: that this is bare, and no worktree of theirs.
    (own / "config").write_bytes((own / "config").read_bytes() + made)
    return None
