"""Fence references: one a lease, at the remote, moved by every push of its holder.

`refs/lessor/fence/<lease>` is made when the lease is claimed, moved by compare-and-swap in the same
atomic push as the branch, and deleted when the lease ends: a push that expects it then fails. It
has to move in every push: git doesn't send a reference that is there already, so that nothing
would be compared. It never begins twice with one value: what makes it may arrive when it is long
closed, and a push that is as late would find what it expects. The name is the lease's id, which never holds a slash: `fence/feature` and
`fence/feature/x` couldn't both exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lessor.errors import GitError, RemoteUnreachableError
from lessor.git.command import run_git
from lessor.git.compared import compared_names, compared_tip
from lessor.git.push import ASK_TIMEOUT_S, Fate, Pushed, RefChange, push
from lessor.git.refs import OWN
from lessor.git.trailer import labelled

FENCES = f"{OWN}/fence/"
_TRIES = 3
_QUESTION = "what became of the push?"


def fence_ref(lease: str) -> str:
    """The fence reference of a lease."""
    return f"{FENCES}{lease}"


def first_fence(cwd: Path, *, lease: str, once: str, label: str, at_ms: int) -> str:
    """A commit that a lease's fence reference begins with.

    Args:
        once: what no other try to make the reference has.
    """
    return _commit(cwd, f"fence of {lease}\n\n{once}", label=label, at_ms=at_ms)


def next_fence(cwd: Path, *, after: str, why: str, label: str, at_ms: int) -> str:
    """A commit that the fence reference moves to from `after`.

    It is that one's child, for remotes that take only fast-forwards, unless another clone made it.
    """
    there = run_git(["cat-file", "-e", after], cwd=cwd, check=False)
    parent = after if there.code == 0 else None
    return _commit(cwd, why, label=label, at_ms=at_ms, parent=parent)


def open_fence(
    cwd: Path, remote: str, ref: str, value: str, *, closing: Mapping[str, Sequence[str]]
) -> bool:
    """Close the fence references of `closing` and make `ref` with `value`, in one push where it goes.

    Made again, it changes nothing.

    Args:
        closing: the values that each may have, the likeliest first.

    Returns:
        Whether `ref` has `value`; False where it has another one.

    Raises:
        RemoteUnreachableError: the remote can't be asked.
        GitError: one of them can't be closed, or `ref` can't be made; some may be closed by then.
    """
    own = RefChange(ref=ref, expected=None, new=value)
    pushed = push(cwd, remote, [*_likeliest(closing), own], atomic=False, timeout_s=ASK_TIMEOUT_S)
    fates = pushed.fates
    if fates[ref] not in {Fate.MOVED, Fate.SAME, Fate.STALE}:
        raise _refusal(remote, ref, pushed)
    for other, values in closing.items():
        if fates[other] is not Fate.MOVED:
            close_fence(cwd, remote, other, values)
    return fates[ref] is not Fate.STALE


def open_anew(cwd: Path, remote: str, ref: str, value: str, *, mine: Callable[[], bool]) -> bool:
    """Make a fence reference with `value` in the place of what is there; False where it isn't ours to make.

    Args:
        mine: whether nobody else makes it since. Asked after each look at the remote: what somebody
            makes after that isn't what was seen, and isn't deleted.

    Raises:
        RemoteUnreachableError: the remote can't be asked; it may be closed by then.
        GitError: the remote refuses.
    """
    for _ in range(_TRIES):
        there = fence_tip(cwd, remote, ref)
        if not mine():
            return False
        if there is not None:
            _swap(cwd, remote, ref, expected=there, new=None)
        if _swap(cwd, remote, ref, expected=None, new=value) is not Fate.STALE:
            return True
    raise _refusal(remote, ref)


def close_fences(cwd: Path, remote: str, closing: Mapping[str, Sequence[str]]) -> None:
    """Delete fence references, in one push where it goes; `closing` and errors as in `open_fence`."""
    if closing:
        fates = push(cwd, remote, _likeliest(closing), atomic=False, timeout_s=ASK_TIMEOUT_S).fates
        for ref, values in closing.items():
            if fates[ref] is not Fate.MOVED:
                close_fence(cwd, remote, ref, values)


def close_fence(cwd: Path, remote: str, ref: str, values: Sequence[str]) -> str | None:
    """Delete a fence reference; which of `values` it had, or None where it had none of them.

    Every value is tried by compare-and-swap before anything is read. That there is none is proved by
    making one, and deleting that again. Where a question has moved it on from one of `values` (see
    `ask_fence`), that one is the answer. Any other value came too late to be on record; it is deleted
    as it is read. Somebody else who closes the reference at the same moment makes the same proof:
    then all of it is tried again.

    Args:
        values: the oldest first, so that a push that lands in between is met by the next.

    Raises:
        RemoteUnreachableError: the remote can't be asked.
        GitError: the remote refuses.
    """
    mark = _mark(cwd)
    for _ in range(_TRIES):
        for value in values:
            if _deleted(cwd, remote, ref, value):
                return value
        if _swap(cwd, remote, ref, expected=None, new=mark) is not Fate.STALE:
            _swap(cwd, remote, ref, expected=mark, new=None)
            return None
        for value in values:
            if any(_deleted(cwd, remote, ref, asked) for asked in _asked(cwd, value)):
                return value
        there = fence_tip(cwd, remote, ref)
        if there is not None and _deleted(cwd, remote, ref, there):
            return there if there in values else None
    raise _refusal(remote, ref)


def fence_tip(cwd: Path, remote: str, ref: str) -> str | None:
    """What a fence reference is at, also where the remote hides it from readers; None where it isn't there.

    Raises:
        RemoteUnreachableError: the remote can't be asked.
    """
    return compared_tip(cwd, remote, ref, other=_mark(cwd))


def fences_there(cwd: Path, remote: str) -> list[str]:
    """All fence references that a remote has, of whatever store; hidden ones and errors as in `fence_tip`."""
    return compared_names(cwd, remote, FENCES, other=_mark(cwd))


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


def _mark(cwd: Path) -> str:
    """A value that no lease's reference ever has."""
    return _commit(cwd, "there was none", label="", at_ms=0)


def _deleted(cwd: Path, remote: str, ref: str, expected: str) -> bool:
    return _swap(cwd, remote, ref, expected=expected, new=None) is Fate.MOVED


def _likeliest(closing: Mapping[str, Sequence[str]]) -> list[RefChange]:
    return [RefChange(ref=ref, expected=v[0], new=None) for ref, v in closing.items()]


def _swap(cwd: Path, remote: str, ref: str, *, expected: str | None, new: str | None) -> Fate:
    change = RefChange(ref=ref, expected=expected, new=new)
    pushed = push(cwd, remote, [change], atomic=False, timeout_s=ASK_TIMEOUT_S)
    if pushed.locked:
        raise RemoteUnreachableError(
            f"Another git keeps {ref} locked at {remote}: {pushed.why.splitlines()[0]}",
            next_step="Try again. If none runs there any more, remove that lock there.",
            ref=ref,
            remote=remote,
        )
    fate = pushed.fate(ref)
    if fate in {Fate.REFUSED, Fate.UNKNOWN}:
        raise _refusal(remote, ref, pushed)
    return fate


def _refusal(remote: str, ref: str, pushed: Pushed | None = None) -> GitError:
    if pushed is not None and pushed.fate(ref) is Fate.UNKNOWN:
        return RemoteUnreachableError(
            f"{remote} gave no answer about {ref}.",
            next_step="Try again once it does.",
            ref=ref,
            remote=remote,
        )
    why = "it has another value at every look." if pushed is None else pushed.why
    return GitError(
        f"{remote} refuses to change {ref}: {why}",
        next_step="It has to let you make, move and delete references below refs/lessor/.",
        ref=ref,
        remote=remote,
        said=[] if pushed is None else list(pushed.said),
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
