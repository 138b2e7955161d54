"""Operations on fence references: on record before a remote has them, until it has them no more.

A lease is ready at a remote once its own reference is open there and those of the leases that ended
before it are closed. Whoever claims closes them, after the claim's commit and before the agent
hears of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lessor.errors import TransitionRefusedError
from lessor.model.lease import Holder, LeaseId
from lessor.service.naming import Naming
from lessor.service.proof import held, lock_holder, lock_pusher
from lessor.service.publish_rows import FenceRefRow
from lessor.service.rows import pack
from lessor.service.wording import LONGEST_NAME, LONGEST_TEXT, check_text
from lessor.store import Store, Transaction

MOST_UNCLOSED = 1_000


class FenceState(StrEnum):
    """Whether a remote has a lease's fence reference."""

    OPENING = "opening"  # it may: whoever makes it hasn't said so
    OPEN = "open"
    CLOSED = "closed"  # it hasn't, and never will again


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceRef:
    """A lease's fence reference at a remote.

    Attributes:
        oid: its latest value that is known.
    """

    lease: LeaseId
    remote: str
    oid: str
    state: FenceState


class Fences:
    """A refusal raises and changes nothing."""

    def __init__(self, store: Store, naming: Naming) -> None:
        self._store = store
        self._naming = naming

    def announce(self, holder: Holder, *, remote: str, oid: str) -> FenceRef:
        """Record that the holder is about to make its lease's reference; one that is open stays.

        Args:
            oid: the value that it will begin with. Said again before it is open, this is the one:
                whoever said it before can't open it any more.

        Raises:
            LeaseLostError: the caller isn't the live holder.
            InvalidError: its task has no repository.
        """
        _check(remote, oid)

        def rule(tx: Transaction) -> FenceRef:
            row = lock_pusher(tx, self._naming, holder)
            made = tx.rows(
                "put_fence_ref",
                lease_id=row.lease_id,
                repository_id=row.repository_id,
                remote=remote,
                oid=oid,
            ) or tx.rows("fence_ref", lease_id=row.lease_id, remote=remote)
            return self._record(FenceRefRow._make(made[0]))

        return held(self._store, self._naming, holder, rule, verb="fenced")

    def opened(self, holder: Holder, *, remote: str, oid: str) -> FenceRef:
        """Record that the remote has the reference: the lease is ready there; said again, it stays.

        Raises:
            LeaseLostError: the caller isn't the live holder: what it made stays behind.
            TransitionRefusedError: another process of the holder has announced it since.
        """
        _check(remote, oid)

        def rule(tx: Transaction) -> FenceRef:
            row = lock_holder(tx, self._naming, holder)
            found = tx.rows("fence_ref", lease_id=row.lease_id, remote=remote)
            known = [self._record(FenceRefRow._make(one)) for one in found]
            if known and known[0].state is FenceState.OPEN:
                return known[0]  # another process of the holder may have pushed since it was read
            if not known or known[0].oid != oid:
                raise TransitionRefusedError(
                    f"Another process is making this lease ready at {remote}.",
                    next_step="Try again.",
                    remote=remote,
                )
            moved = tx.rows(
                "move_fence_ref",
                lease_id=row.lease_id,
                remote=remote,
                oid=oid,
                state=FenceState.OPEN,
            )
            return self._record(FenceRefRow._make(moved[0]))

        return held(self._store, self._naming, holder, rule, verb="fenced")

    def at(self, lease: str, remote: str) -> FenceRef | None:
        """A lease's reference at a remote; None where none was ever announced."""
        check_text(remote, "remote", longest=LONGEST_TEXT, empty=False)
        rows = self._store.read("fence_ref", lease_id=self._naming.lease_row(lease), remote=remote)
        return self._record(FenceRefRow._make(rows[0])) if rows else None

    def unclosed(self, repository: str, *, remote: str = "") -> list[FenceRef]:
        """What remotes may still have of leases that have ended, oldest first; no more than some.

        Args:
            remote: only what this one has; else all of them.
        """
        check_text(remote, "remote", longest=LONGEST_TEXT)
        rows = self._store.read(
            "unclosed_fence_refs",
            repository_id=self._naming.repository_row(repository),
            remote=remote,
            most=MOST_UNCLOSED,
        )
        return [self._record(FenceRefRow._make(found)) for found in rows]

    def closed(self, leases: Sequence[str], *, remote: str) -> None:
        """Record that a remote has these references no more; of leases that haven't ended, nothing."""
        check_text(remote, "remote", longest=LONGEST_TEXT, empty=False)
        rows = [self._naming.lease_row(lease) for lease in leases]
        if rows:
            self._store.once("close_fence_refs", leases=pack(rows), remote=remote)

    def _record(self, row: FenceRefRow) -> FenceRef:
        return FenceRef(
            lease=self._naming.lease(row.lease_id),
            remote=row.remote,
            oid=row.oid,
            state=FenceState(row.state),
        )


def _check(remote: str, oid: str) -> None:
    check_text(remote, "remote", longest=LONGEST_TEXT, empty=False)
    check_text(oid, "object id", longest=LONGEST_NAME, empty=False)
