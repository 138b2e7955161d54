"""What a heartbeat asks of whoever granted the lease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """The answer to a renewal that was accepted.

    Attributes:
        version: the lease's version from now on.
        ttl_ms: how long it lives, from the store's clock when it answered.
        cancelled: whether the task was cancelled.
        stop: whether the holder is asked to end its work in good order.
    """

    version: int
    ttl_ms: int
    cancelled: bool = False
    stop: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What a look at the lease showed; nothing was written.

    Attributes:
        held: whether it is still ours and live.
        reason: why not, for people.
    """

    held: bool
    cancelled: bool = False
    stop: bool = False
    reason: str = ""


class Lifeline(Protocol):
    """One holder's line to the store.

    All calls come from one thread, one at a time. A call that gets no answer should give up within
    half of the lease's margin, so that two fit into it. A renewal whose answer was lost may have
    been accepted: the next one is then sent with the same request id, else it would be refused for
    its old version.
    """

    def renew(self) -> Renewal:
        """Extend the lease.

        Raises:
            LeaseLostError: refused; the lease is somebody else's or over.
            StoreUnavailableError, BusyError: nobody answered; the lease may live.
        """

    def watch(self) -> Watch:
        """Look, without a write, whether the lease is ours and whether its end is wished.

        Raises:
            LeaseLostError: it isn't ours.
            StoreUnavailableError, BusyError: nobody answered.
        """

    def end_gone(self, proof: str) -> None:
        """End the lease: its whole process tree is gone and nothing was completed.

        Args:
            proof: how the host's witness knows it.

        Raises:
            LeaseLostError: it was over before.
            StoreUnavailableError, BusyError: nobody answered; ask again.
        """
