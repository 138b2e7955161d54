"""Fence references: one a lease, at the remote, moved by every push of its holder.

`refs/lessor/fence/<lease>` is made when the lease is claimed, moved by compare-and-swap in the same
atomic push as the branch, and deleted when the lease ends: a push that expects it then fails. It
has to move in every push: git doesn't send a reference that is there already, so that nothing
would be compared. The name is the lease's id, which never holds a slash: `fence/feature` and
`fence/feature/x` couldn't both exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lessor.errors import GitError, RemoteUnreachableError
from lessor.git.command import run_git
from lessor.git.push import ASK_TIMEOUT_S, Fate, RefChange, push
from lessor.git.refs import OWN
from lessor.git.trailer import labelled

FENCES = f"{OWN}/fence/"
_TRIES = 3
_QUESTION = "what became of the push?"


def fence_ref(lease: str) -> str:
    """The fence reference of a lease."""
    return f"{FENCES}{lease}"


def first_fence(cwd: Path, *, lease: str, label: str, at_ms: int) -> str:
    """The commit that a lease's fence reference begins with: the same whenever it is made again."""
    return _commit(cwd, f"fence of {lease}", label=label, at_ms=at_ms)


def next_fence(cwd: Path, *, after: str, why: str, label: str, at_ms: int) -> str:
    """A commit that the fence reference moves to from `after`.

    It is that one's child, for remotes that take only fast-forwards, unless another clone made it.
    """
    there = run_git(["cat-file", "-e", after], cwd=cwd, check=False)
    parent = after if there.code == 0 else None
    return _commit(cwd, why, label=label, at_ms=at_ms, parent=parent)


def open_fence(
    cwd: Path, remote: str, ref: str, value: str, *, closing: Mapping[str, Sequence[str]]
) -> None:
    """Close the fence references of `closing` and make `ref` with `value`, in one push where it goes.

    Made again, it changes nothing.

    Args:
        closing: the values that each may have, the likeliest first.

    Raises:
        RemoteUnreachableError: the remote can't be asked.
        GitError: one of them can't be closed, or `ref` can't be made; some may be closed by then.
    """
    own = RefChange(ref=ref, expected=None, new=value)
    fates = push(
        cwd, remote, [*_likeliest(closing), own], atomic=False, timeout_s=ASK_TIMEOUT_S
    ).fates
    if fates[ref] not in {Fate.MOVED, Fate.SAME}:
        raise _refusal(remote, ref, fates[ref])
    for other, values in closing.items():
        if fates[other] is not Fate.MOVED:
            close_fence(cwd, remote, other, values)


def close_fences(cwd: Path, remote: str, closing: Mapping[str, Sequence[str]]) -> None:
    """Delete fence references, in one push where it goes; `closing` and errors as in `open_fence`."""
    if closing:
        fates = push(cwd, remote, _likeliest(closing), atomic=False, timeout_s=ASK_TIMEOUT_S).fates
        for ref, values in closing.items():
            if fates[ref] is not Fate.MOVED:
                close_fence(cwd, remote, ref, values)


def close_fence(cwd: Path, remote: str, ref: str, values: Sequence[str]) -> str | None:
    """Delete a fence reference that has one of `values`; which, or None where there was none.

    Every value is tried by compare-and-swap and nothing is read: what a remote hides from readers
    it may still compare. That there is none is proved by making one, and deleting that again. Where
    a question has moved it on from one of `values` (see `ask_fence`), that one is the answer. Somebody
    else who closes it at the same moment makes the same proof: then all of it is tried again.

    Args:
        values: the oldest first, so that a push that lands in between is met by the next.

    Raises:
        RemoteUnreachableError: the remote can't be asked.
        GitError: it has another value, or the remote refuses the deletion.
    """
    mark = _commit(cwd, "there was none", label="", at_ms=0)
    for _ in range(_TRIES):
        for value in values:
            if _swap(cwd, remote, ref, expected=value, new=None) is Fate.MOVED:
                return value
        if _swap(cwd, remote, ref, expected=None, new=mark) is not Fate.STALE:
            _swap(cwd, remote, ref, expected=mark, new=None)
            return None
        for value in values:
            for asked in _asked(cwd, value):
                if _swap(cwd, remote, ref, expected=asked, new=None) is Fate.MOVED:
                    return value
    raise GitError(
        f"{ref} at {remote} has a value that nobody recorded.",
        next_step=f"Look at it: git ls-remote {remote} {ref}. Delete it if nobody needs it.",
        ref=ref,
        remote=remote,
    )


def ask_fence(
    cwd: Path, remote: str, ref: str, values: Sequence[str]
) -> tuple[str, str] | tuple[None, None]:
    """Move a fence reference on that has one of `values`; that value and the new one, or None twice.

    The new value follows from the old one alone: whoever asks after a question that was cut short
    finds it again, and asking twice moves it once.

    Args:
        values: the oldest first, so that a push that lands in between is met by the next.

    Raises:
        RemoteUnreachableError: the remote can't be asked.
        GitError: it refuses the move.
    """
    for value in values:
        asked = next_fence(cwd, after=value, why=_QUESTION, label="", at_ms=0)
        if _swap(cwd, remote, ref, expected=value, new=asked) in {Fate.MOVED, Fate.SAME}:
            return value, asked
    return None, None


def _asked(cwd: Path, value: str) -> list[str]:
    """What `ask_fence` makes of a value, in a clone that has it and in one that hasn't; not written."""
    return [
        _commit(cwd, _QUESTION, label="", at_ms=0, parent=parent, keep=False)
        for parent in (value, None)
    ]


def _likeliest(closing: Mapping[str, Sequence[str]]) -> list[RefChange]:
    return [RefChange(ref=ref, expected=v[0], new=None) for ref, v in closing.items()]


def _swap(cwd: Path, remote: str, ref: str, *, expected: str | None, new: str | None) -> Fate:
    change = RefChange(ref=ref, expected=expected, new=new)
    pushed = push(cwd, remote, [change], atomic=False, timeout_s=ASK_TIMEOUT_S)
    if pushed.locked:
        raise RemoteUnreachableError(
            f"Another push keeps {ref} locked at {remote}.",
            next_step=f"Try again. If none runs there any more, remove {ref}.lock there.",
            ref=ref,
            remote=remote,
        )
    fate = pushed.fate(ref)
    if fate in {Fate.REFUSED, Fate.UNKNOWN}:
        raise _refusal(remote, ref, fate)
    return fate


def _refusal(remote: str, ref: str, fate: Fate) -> GitError:
    if fate is Fate.UNKNOWN:
        return RemoteUnreachableError(
            f"{remote} gave no answer about {ref}.",
            next_step="Try again once it does.",
            ref=ref,
            remote=remote,
        )
    what = "has another value for" if fate is Fate.STALE else "refuses to change"
    return GitError(
        f"{remote} {what} {ref}.",
        next_step="It has to let you make, move and delete references below refs/lessor/.",
        ref=ref,
        remote=remote,
    )


def _commit(
    cwd: Path,
    text: str,
    *,
    label: str,
    at_ms: int,
    parent: str | None = None,
    keep: bool = True,
) -> str:
    message = labelled(text.encode(), label) if label else f"{text}\n".encode()
    who = f"Lessor <lessor@localhost> {at_ms // 1000} +0000"
    headers = [
        f"tree {_object(cwd, 'tree', b'')}",
        *([] if parent is None else [f"parent {parent}"]),
        f"author {who}",
        f"committer {who}",
    ]
    return _object(cwd, "commit", "\n".join(headers).encode() + b"\n\n" + message, keep=keep)


def _object(cwd: Path, kind: str, content: bytes, *, keep: bool = True) -> str:
    args = ["hash-object", "-t", kind, *(["-w"] if keep else []), "--stdin"]
    return run_git(args, cwd=cwd, input=content).text
