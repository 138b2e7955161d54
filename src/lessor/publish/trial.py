"""Trying whether a remote can be a fence: on scratch references that are gone afterwards."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from lessor.errors import GitError
from lessor.git.fence import first_fence, next_fence
from lessor.git.push import ASK_TIMEOUT_S, Fate, Pushed, RefChange, push, refuse_several_places
from lessor.git.refs import OWN
from lessor.ids import new_token


def try_remote(cwd: Path, remote: str) -> None:
    """Make, compare, move and delete two references of the remote together, as a fence has to.

    Raises:
        RemoteUnreachableError: the remote can't be asked, or takes no atomic push.
        GitError: it does one of them in another way, and what it was given is taken back; or its
            name leads to several places.
    """
    refuse_several_places(cwd, remote)
    scratch = f"{OWN}/trial/{new_token()[:16]}"
    branch, fence = f"{scratch}/branch", f"{scratch}/fence"
    first = first_fence(cwd, lease="trial", once="", label="", at_ms=0)
    second = next_fence(cwd, after=first, why="trial", label="", at_ms=0)

    def swap(expected: str | None, new: str | None, *, stale: bool = False) -> Pushed:
        changes = [
            RefChange(ref=branch, expected=expected, new=new),
            RefChange(ref=fence, expected=second if stale else expected, new=new),
        ]
        return push(cwd, remote, changes, timeout_s=ASK_TIMEOUT_S)

    try:
        _expect(remote, swap(None, first), taken=True, what="make")
        _expect(remote, swap(first, second, stale=True), taken=False, what="refuse a stale push of")
        _expect(remote, swap(first, second), taken=True, what="move")
        _expect(remote, swap(second, None), taken=True, what="delete")
    except GitError:
        with suppress(GitError):
            for value in (first, second):
                swap(value, None)
        raise


def _expect(remote: str, pushed: Pushed, *, taken: bool, what: str) -> None:
    fates = set(pushed.fates.values())
    if (fates == {Fate.MOVED}) is taken and not (Fate.MOVED in fates and not taken):
        return
    raise GitError(
        f"{remote} can't be a fence: it doesn't {what} references below {OWN}/ together.",
        next_step="See what it says: it has to allow making, moving and deleting them, atomically.",
        remote=remote,
        said=list(pushed.said),
    )
