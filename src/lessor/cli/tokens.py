"""Lease tokens of this machine: one 0600 file a lease, never printed, never in an argument."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lessor.cli.invocation import Invocation
from lessor.clock import SystemClock
from lessor.errors import BusyError, ConflictError, DeniedError, HostError, LeaseLostError
from lessor.model.lease import Holder
from lessor.runner.lease_file import forget_holder, lease_file, read_holder, write_holder
from lessor.runner.left_tokens import forget_left

__all__ = [
    "forget_left_tokens",
    "forget_token",
    "held",
    "holding",
    "keep_granted",
    "keep_token",
    "token_path",
]

PATIENCE_MS = 10_000
"""How long another command of this machine that has a lease's token is waited for."""
_LOOK_MS = 20


def token_path(invocation: Invocation, lease: str) -> Path:
    """Where the token of `lease` lies."""
    return lease_file(invocation.settings.tokens_dir, lease)


def keep_token(invocation: Invocation, holder: Holder) -> None:
    """Write the token of a lease, or its new version."""
    write_holder(token_path(invocation, holder.lease), holder)


def keep_granted(invocation: Invocation, holders: Sequence[Holder]) -> None:
    """Write the tokens of leases that were just granted; what can't be kept is given back.

    Raises:
        HostError: a file can't be written; without it nobody could renew or end its lease.
    """
    for place, holder in enumerate(holders):
        if _is_newer(token_path(invocation, holder.lease), holder):
            continue
        try:
            keep_token(invocation, holder)
        except OSError as error:
            for lost in holders[place:]:
                invocation.lessor.leases.release(lost, reason="its token couldn't be written")
            folder = invocation.settings.tokens_dir
            raise HostError(
                f"The token of {holder.lease} can't be kept in {folder}: {error.strerror}. "
                "The lease was given back.",
                next_step=f"Check free space and rights of {folder}, then try again.",
                lease=holder.lease,
                path=str(folder),
            ) from error


def _is_newer(path: Path, holder: Holder) -> bool:
    """Whether a repeated claim's lease has been renewed meanwhile."""
    with suppress(LeaseLostError):
        return read_holder(path).version > holder.version
    return False


def forget_token(invocation: Invocation, lease: str) -> None:
    """Remove the token of a lease that is over."""
    forget_holder(token_path(invocation, lease))


def forget_left_tokens(invocation: Invocation) -> None:
    """Remove tokens that crashes left behind, of leases that are over."""
    forget_left(
        invocation.lessor.leases,
        invocation.settings.tokens_dir,
        now_ms=invocation.clock.wall_ms(),
    )


@contextmanager
def holding(invocation: Invocation, lease: str) -> Iterator[Holder]:
    """The holder of `lease`, alone among the processes of this machine.

    Two renewals at once would both send the version that the file has, and one would be refused.

    Raises:
        LeaseLostError: the lease is over, and its token is gone with it.
        DeniedError: it is live, and its token isn't here.
        ConflictError: a run keeps it, and would lose it by another's renewal.
        BusyError: another command has it, and doesn't let go; it may be stopped.
    """
    path = token_path(invocation, lease)
    descriptor = _locked(path)
    if descriptor is None:
        raise _refusal(invocation, lease)
    try:
        holder = read_holder(path)
        if invocation.lessor.registry.worker(holder.worker).heartbeat:
            number = invocation.lessor.leases.lease(lease).number
            raise ConflictError(
                f"The lease of #{number} is kept by a run, which renews and ends it.",
                next_step=f"Stop the run, or cancel the task: lessor cancel {number}.",
                lease=lease,
                number=number,
            )
        yield holder
    finally:
        os.close(descriptor)


def held(invocation: Invocation, lease: str) -> Holder:
    """The holder of `lease`, for what neither renews nor ends it.

    Raises:
        LeaseLostError: the lease is over, and its token is gone with it.
        DeniedError: it is live, and its token isn't here.
    """
    path = token_path(invocation, lease)
    if not path.is_file():
        raise _refusal(invocation, lease)
    return read_holder(path)


def _locked(path: Path) -> int | None:
    """A descriptor of the file that is there now, locked; None where there is none."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            _lock(descriptor, path)
        except BusyError:
            os.close(descriptor)
            raise
        # A renewal puts a new file in the old one's place: whoever waited for the old one looks again.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    clock = SystemClock()
    until_ms = clock.boottime_ms() + PATIENCE_MS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock.boottime_ms() < until_ms:
                clock.wait(_LOOK_MS)
                continue
            raise BusyError(
                f"Another command on this machine has the token of {path.stem}, and doesn't let go.",
                next_step=f"Look at it: fuser -v {shlex.quote(str(path))}. Where it is stopped (T), let it "
                "go on (kill -CONT) or end it; else try again.",
                retry_ms=1_000,
                path=str(path),
            ) from None
        return


def _refusal(invocation: Invocation, lease: str) -> LeaseLostError | DeniedError:
    found = invocation.lessor.leases.lease(lease)
    if not found.live:
        why = found.end or "its time ran out"
        return LeaseLostError(
            f"{lease} of #{found.number} is over: {why}.",
            next_step=f"See what became of it: lessor show {found.number}.",
            lease=lease,
            number=found.number,
            end_reason=found.end or "lapsed",
        )
    return DeniedError(
        f"The token of {lease} isn't on this machine; {found.agent} holds it.",
        next_step=f"Only its holder can use it. See: lessor why {found.number}.",
        lease=lease,
        holder=found.agent,
        number=found.number,
    )
