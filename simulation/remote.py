"""A git remote: branches and fence references, moved by compare-and-swap, sometimes late or in silence.

Lessor's own code of publishing and fencing runs against it: only what it asks git for is answered here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol
from unittest import mock

from lessor.errors import RemoteUnreachableError
from lessor.git import fence as git_fence
from lessor.git.command import GitResult
from lessor.git.fence import FENCES
from lessor.git.push import Fate, Pushed, RefChange
from lessor.publish import pushing, recovering
from simulation.plan import Plan

HEADS = "refs/heads/"
LATEST_MS = 800_000
"""Lessor's own git is stopped before a push has been under way for `UNDER_WAY_MS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A push of a branch that the remote took.

    Attributes:
        lease: the id of the lease whose fence reference moved with it; empty without one.
        fence: what that became.
    """

    ref: str
    old: str | None
    new: str
    lease: str
    fence: str | None


class Surroundings(Protocol):
    """What the remote asks of the world around it."""

    plan: Plan

    def step(self, what: str) -> None: ...
    def may_crash(self) -> None: ...
    def hit(self, fault: str) -> bool: ...
    def sleep(self, milliseconds: int) -> None: ...
    def span(self, name: str, low: int, high: int) -> int: ...
    def record(self, text: str) -> None: ...
    def later(self, what: str, after_ms: int, act: Callable[[], None]) -> None: ...
    def taken(self, push: Taken) -> None: ...


class Remote:
    """References by name, commits by their parents."""

    def __init__(self, world: Surroundings) -> None:
        self._world = world
        self.refs: dict[str, str] = {}
        self.log: list[Taken] = []
        self.down = False
        self._parents: dict[str, str | None] = {}

    def commit(self, parent: str | None) -> str:
        """A new commit; made in a clone, where it costs nothing."""
        oid = _oid("work", len(self._parents), parent)
        self._parents[oid] = parent
        return oid

    def leads_to(self, commit: str, ancestor: str) -> bool:
        """Whether a commit has another one in its history."""
        at: str | None = commit
        while at is not None and at != ancestor:
            at = self._parents.get(at)
        return at == ancestor

    def push(
        self,
        _cwd: object,
        remote: str,
        changes: Sequence[RefChange],
        *,
        atomic: bool = True,
        **_options: object,
    ) -> Pushed:
        """What `lessor.git.push.push` promises."""
        world = self._world
        ttl = world.plan.ttl_ms
        world.step("push")
        self._refuse_down(remote)
        world.sleep(world.span("push", 5, 400))
        branches = [change for change in changes if change.ref.startswith(HEADS)]
        if branches and world.hit("hook_refuses"):
            return Pushed(fates=dict.fromkeys((c.ref for c in changes), Fate.REFUSED))
        if world.hit("push_late"):
            world.later(
                "a late push",
                min(world.span("push_late", ttl // 3, 6 * ttl), LATEST_MS),
                lambda: self._apply_late(changes, atomic=atomic),
            )
            world.may_crash()
            world.sleep(world.span("push", 5_000, 60_000))
            return Pushed(fates=dict.fromkeys((c.ref for c in changes), Fate.UNKNOWN))
        fates = self._apply(changes, atomic=atomic)
        if world.hit("push_unanswered"):
            world.may_crash()
            world.sleep(world.span("push", 5_000, 60_000))
            return Pushed(fates=dict.fromkeys((c.ref for c in changes), Fate.UNKNOWN))
        world.sleep(world.span("push", 5, 400))
        return Pushed(fates=fates)

    def tips(self, _cwd: object, remote: str, *refs: str) -> dict[str, str]:
        """What `lessor.git.push.remote_tips` promises."""
        self._world.step("look at the remote")
        self._refuse_down(remote)
        self._world.sleep(self._world.span("push", 5, 200))
        return {ref: self.refs[ref] for ref in refs if ref in self.refs}

    def compared_tip(self, cwd: object, remote: str, ref: str, *, other: str) -> str | None:  # noqa: ARG002 - it is never the answer
        """What `lessor.git.compared.compared_tip` promises."""
        return self.tips(cwd, remote, ref).get(ref)

    def compared_names(self, _cwd: object, remote: str, prefix: str, *, other: str) -> list[str]:  # noqa: ARG002
        """What `lessor.git.compared.compared_names` promises."""
        self._refuse_down(remote)
        return [ref for ref in self.refs if ref.startswith(prefix)]

    def place_of(self, _cwd: object, _remote: str) -> None:
        """What `lessor.git.remote.place_of` promises of a remote on another machine."""

    def run_git(self, args: Sequence[str], **_options: object) -> GitResult:
        """The two questions that are asked of the clone itself."""
        if args[:2] == ["merge-base", "--is-ancestor"]:
            code = 0 if self.leads_to(args[3], args[2]) else 1
        elif args[0] == "cat-file":
            code = 0
        else:
            raise NotImplementedError(args)
        return GitResult(code=code, out=b"", err=b"")

    def _refuse_down(self, remote: str) -> None:
        if self.down:
            raise RemoteUnreachableError(
                f"{remote} can't be reached.", next_step="Try again.", remote=remote
            )

    def _apply_late(self, changes: Sequence[RefChange], *, atomic: bool) -> None:
        fates = self._apply(changes, atomic=atomic)
        self._world.record(f"a late push arrived: {', '.join(fates.values())}")

    def _apply(self, changes: Sequence[RefChange], *, atomic: bool) -> dict[str, Fate]:
        if len({change.ref for change in changes}) < len(changes):
            # Git: "dst ref receives from more than one src", and says nothing of any of them.
            return dict.fromkeys((c.ref for c in changes), Fate.UNKNOWN)
        fates = {change.ref: self._fate(change) for change in changes}
        if atomic and not set(fates.values()) <= {Fate.MOVED, Fate.SAME}:
            return {
                ref: Fate.REFUSED if fate is Fate.MOVED else fate for ref, fate in fates.items()
            }
        moved = [change for change in changes if fates[change.ref] is Fate.MOVED]
        for change in moved:
            if change.new is None:
                del self.refs[change.ref]
            else:
                self.refs[change.ref] = change.new
        fence = next((change for change in moved if change.ref.startswith(FENCES)), None)
        for change in moved:
            if change.ref.startswith(HEADS) and change.new is not None:
                push = Taken(
                    ref=change.ref,
                    old=change.expected,
                    new=change.new,
                    lease="" if fence is None else fence.ref.removeprefix(FENCES),
                    fence=None if fence is None else fence.new,
                )
                self.log.append(push)
                self._world.taken(push)
        return fates

    def _fate(self, change: RefChange) -> Fate:
        there = self.refs.get(change.ref)
        if there == change.new and there is not None:
            return Fate.SAME
        return Fate.MOVED if there == change.expected else Fate.STALE


@contextmanager
def wired(remote: Remote) -> Iterator[None]:
    """Let Lessor's own publishing ask this remote where it would run git."""

    def commit(
        _cwd: object,
        text: str,
        *,
        label: str,
        at_ms: int,
        parent: str | None = None,
        keep: bool = True,  # noqa: ARG001 - a clone costs nothing here
    ) -> str:
        return _oid(text, parent, label, at_ms)

    with ExitStack() as stack:
        for module, name, instead in (
            (git_fence, "push", remote.push),
            (git_fence, "run_git", remote.run_git),
            (git_fence, "_commit", commit),
            (git_fence, "compared_tip", remote.compared_tip),
            (git_fence, "compared_names", remote.compared_names),
            (recovering, "remote_tips", remote.tips),
            (recovering, "place_of", remote.place_of),
            (pushing, "remote_tips", remote.tips),
            (pushing, "push", remote.push),
            (pushing, "run_git", remote.run_git),
            (pushing, "refuse_several_places", lambda _cwd, _remote: None),
        ):
            stack.enter_context(mock.patch.object(module, name, instead))
        yield


def _oid(*parts: object) -> str:
    return hashlib.sha1(repr(parts).encode(), usedforsecurity=False).hexdigest()
