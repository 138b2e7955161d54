"""The lifeline to the store: what a supervisor renews its lease by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from lessor.connect import connect
from lessor.errors import LeaseLostError, TransitionRefusedError
from lessor.ids import new_request_id
from lessor.model.lease import Holder, LeaseEnd
from lessor.runner.lease_file import read_holder, write_holder
from lessor.runner.lifeline import Renewal, Watch
from lessor.service.lessor import Lessor


def open_lifeline(argument: dict[str, Any]) -> StoreLifeline:
    """The lifeline for a supervisor's spec: {"store", "listen", "lease_file"}."""
    path = Path(argument["lease_file"])
    return StoreLifeline(
        connect(argument["store"], listen_dsn=argument["listen"]), read_holder(path), path
    )


class StoreLifeline:
    """One holder's line to an embedded store."""

    def __init__(self, lessor: Lessor, holder: Holder, path: Path) -> None:
        self._lessor = lessor
        self._holder = holder
        self._path = path
        self._request = ""

    def renew(self) -> Renewal:
        """Extend the lease; an unanswered request is sent again with its id."""
        self._request = self._request or new_request_id()
        renewed = self._lessor.leases.renew_one(self._holder, request_id=self._request)
        self._request = ""
        self._holder = replace(self._holder, version=renewed.version)
        write_holder(self._path, self._holder)
        return Renewal(version=renewed.version, ttl_ms=renewed.ttl_ms)

    def watch(self) -> Watch:
        """Look at the lease, without a write."""
        seen = self._lessor.leases.watch(self._holder)
        return Watch(
            held=seen.live,
            cancelled=seen.end is LeaseEnd.CANCELLED,
            reason="" if seen.live else (seen.end or "its time ran out"),
        )

    def end_gone(self, proof: str) -> None:
        """End the lease with the witness's proof."""
        try:
            self._lessor.leases.end_gone(self._holder.task, epoch=self._holder.epoch, proof=proof)
        except TransitionRefusedError as refused:
            raise LeaseLostError(refused.message, next_step=refused.next_step) from refused
