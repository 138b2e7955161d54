"""The lifeline to the store: what a supervisor, or a runner without one, keeps a lease by."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessor.connect import connect
from lessor.errors import LeaseLostError, TransitionRefusedError
from lessor.ids import new_request_id
from lessor.model.lease import Holder, LeaseEnd
from lessor.runner.lease_file import read_holder, write_holder
from lessor.runner.lifeline import Renewal, Watch

if TYPE_CHECKING:
    # Only named here: a supervisor reads this module before its agent starts.
    from lessor.service.leases import Leases
    from lessor.service.lessor import Lessor


def open_lifeline(argument: dict[str, Any]) -> StoreLifeline:
    """The lifeline for a supervisor's spec: {"store", "listen", "lease_file"}.

    Raises:
        LeaseLostError: the token can't be read.
    """
    path = Path(argument["lease_file"])
    # A store that can't be opened now isn't the agent's fault: it counts as silence, later.
    return StoreLifeline(
        partial(connect, argument["store"], listen_dsn=argument["listen"]), read_holder(path), path
    )


class StoreLifeline:
    """One holder's line to an embedded store, which is opened by the first call.

    Attributes:
        holder: what is shown, with the newest version of the lease that is known here.
        path: the token's file.
    """

    def __init__(self, open_store: Callable[[], Lessor], holder: Holder, path: Path) -> None:
        self.holder = holder
        self._open_store = open_store
        self._opened: Lessor | None = None
        self.path = path
        self._request = ""

    def renew(self) -> Renewal:
        """Extend the lease; an unanswered request is sent again with its id."""
        if not self._request:
            self._request = new_request_id()
            self.learn()
        try:
            renewed = self._leases.renew_one(self.holder, request_id=self._request)
        except LeaseLostError as lost:
            if lost.facts.get("end_reason") != LeaseEnd.CANCELLED:
                raise
            return Renewal(version=self.holder.version, ttl_ms=0, cancelled=True)
        self._request = ""
        self.holder = replace(self.holder, version=renewed.version)
        # The file serves whoever renews by hand; on a full disk the lease lives on without it.
        with suppress(OSError):
            write_holder(self.path, self.holder)
        return Renewal(version=renewed.version, ttl_ms=renewed.ttl_ms)

    def watch(self) -> Watch:
        """Look at the lease, without a write."""
        seen = self._leases.watch(self.holder)
        return Watch(
            held=seen.live,
            cancelled=seen.end is LeaseEnd.CANCELLED,
            reason="" if seen.live else (seen.end or "its time ran out"),
        )

    def end_gone(self, proof: str) -> None:
        """End the lease with the witness's proof."""
        try:
            self._leases.end_gone(self.holder.task, epoch=self.holder.epoch, proof=proof)
        except TransitionRefusedError as refused:
            raise LeaseLostError(refused.message, next_step=refused.next_step) from refused

    @property
    def _leases(self) -> Leases:
        if self._opened is None:
            self._opened = self._open_store()
        return self._opened.leases

    def learn(self) -> None:
        """Take the version from the file where it is newer: an agent may have renewed by itself."""
        with suppress(LeaseLostError):
            known = read_holder(self.path)
            if known.epoch == self.holder.epoch and known.version > self.holder.version:
                self.holder = replace(self.holder, version=known.version)
