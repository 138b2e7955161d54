"""Keeping a lease alive in this process, while a worktree is prepared and there is no supervisor."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from lessor.errors import LeaseLostError, LessorError
from lessor.ids import new_random
from lessor.loop import PeriodicLoop
from lessor.runner.authority import Authority, Standing
from lessor.runner.desk import Desk
from lessor.runner.keeping import StoreLifeline


class Tending:
    """Renews a lease in time and looks whether it is still held; a block of it ends the renewing.

    A store that doesn't answer is nobody's loss until the holder's own deadline has passed.
    """

    def __init__(self, desk: Desk, lifeline: StoreLifeline, *, sent_ms: int) -> None:
        terms = desk.options.terms
        self.sent_ms = sent_ms
        self.cancelled = False
        self._lifeline = lifeline
        self._authority = Authority(
            terms,
            clock=desk.clock,
            version=lifeline.holder.version,
            sent_ms=sent_ms,
            phase=new_random().random(),
        )
        every_ms = min(desk.options.patience.watch_every_ms, terms.renew_every_ms // 2)
        self._loop = PeriodicLoop(self._once, interval_ms=max(1, every_ms), name="tending")

    def __enter__(self) -> Self:
        self._loop.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.stop()

    @property
    def over(self) -> bool:
        """Whether there is no lease to work under any more."""
        return self.cancelled or self._authority.judge() is Standing.LOST

    def refuse_lost(self) -> None:
        """Refuse to go on without the lease.

        Raises:
            LeaseLostError: it is over.
        """
        if self.over:
            raise LeaseLostError(self._authority.loss or "The task was cancelled.")

    def _once(self) -> None:
        if self.over:
            return
        if self._authority.until_renewal_ms():
            self._look()
        else:
            self._renew()

    def _renew(self) -> None:
        sent_ms = self._authority.sending()
        try:
            renewal = self._lifeline.renew()
        except LeaseLostError as lost:
            self._authority.refused(str(lost))
        except LessorError:
            self._authority.unanswered()
        else:
            self.cancelled = renewal.cancelled
            if self._authority.confirmed(
                sent_ms=sent_ms, version=renewal.version, ttl_ms=renewal.ttl_ms
            ):
                self.sent_ms = sent_ms

    def _look(self) -> None:
        try:
            seen = self._lifeline.watch()
        except LeaseLostError as lost:
            self._authority.refused(str(lost))
        except LessorError:
            return  # a look that failed says nothing: the next renewal finds out
        else:
            self.cancelled = seen.cancelled
            if not (seen.held or seen.cancelled):
                self._authority.refused(seen.reason)
