"""What a holder may believe of its lease between two answers of the store.

The belief ends `margin_ms` before the lease can: it is counted from the moment the accepted request
was *sent*, on the clock that counts suspend (Chubby's conservative lease; client-go's
`leaderelection` gave the relations). Past it the holder freezes. It is lost only by a refusal, or
by a further `margin_ms` of silence.
"""

from __future__ import annotations

from enum import StrEnum

from lessor.clock import Clock
from lessor.errors import TermsInvalidError
from lessor.model.lease import LeaseTerms

JITTER = 0.1
_GOLDEN = 0.618_033_988_749_895
_FROZEN_ATTEMPTS = 4


class Standing(StrEnum):
    """How a holder stands towards its lease; LOST and DROPPED are for good."""

    HELD = "held"
    FROZEN = "frozen"  # the deadline passed here; nobody has refused
    LOST = "lost"
    DROPPED = "dropped"  # given up before completing or releasing is sent


class Authority:
    """One holder's belief in one lease; pure but for the clock.

    Attributes:
        version: the newest version of the lease that the store confirmed.
        failures: renewals in a row that nobody answered.
        loss: why it is lost, for people; empty before.
    """

    def __init__(
        self, terms: LeaseTerms, *, clock: Clock, version: int, sent_ms: int, phase: float
    ) -> None:
        """Begin with a grant.

        Args:
            terms: the durations that the lease was granted under.
            clock: the holder's clock; its `boottime_ms` counts.
            version: the version of the grant.
            sent_ms: when the claim was sent, on that clock.
            phase: a number in [0, 1) of this holder's own, which sets its jitter apart.

        Raises:
            TermsInvalidError: the claim is said to have been sent in the future.
        """
        now = clock.boottime_ms()
        if sent_ms > now:
            raise TermsInvalidError(
                f"The claim can't have been sent at {sent_ms} ms: this host has run for {now} ms.",
                next_step="Give the boot-time clock's reading from before the claim was sent.",
                sent_ms=sent_ms,
                now_ms=now,
            )
        self.version = version
        self.failures = 0
        self.loss = ""
        self._terms = terms
        self._clock = clock
        self._phase = phase
        self._standing = Standing.HELD
        self._deadline = sent_ms + terms.ttl_ms - terms.margin_ms
        self._frozen_at = 0
        self._renew_at = self._next_renewal(sent_ms)

    @property
    def exhausted(self) -> bool:
        """Whether so many renewals in a row went unanswered that the work must stop."""
        return self.failures >= self._terms.renew_attempts

    def judge(self) -> Standing:
        """The standing now. Ask before anything that needs the lease, first of all after a wait."""
        now = self._clock.boottime_ms()
        if self._standing is Standing.HELD and now >= self._deadline:
            self._standing = Standing.FROZEN
            # From now, not from the deadline: after a suspend both lie hours apart, and silence
            # counts only while somebody listened.
            self._frozen_at = now
            self._renew_at = now
        if self._standing is Standing.FROZEN and now >= self._frozen_at + self._terms.margin_ms:
            self._lose(f"nobody answered for {self._terms.margin_ms} ms after the deadline")
        return self._standing

    def left_ms(self) -> int:
        """How long the belief lasts without another answer; 0 when there is none."""
        if self._standing is not Standing.HELD:
            return 0
        return max(0, self._deadline - self._clock.boottime_ms())

    def until_change_ms(self) -> int | None:
        """How long until `judge` may say something else; None when it won't."""
        if self._standing is Standing.HELD:
            return self.left_ms()
        if self._standing is Standing.FROZEN:
            end = self._frozen_at + self._terms.margin_ms
            return max(0, end - self._clock.boottime_ms())
        return None

    def until_renewal_ms(self) -> int | None:
        """How long until a renewal is due; None when there is nothing to renew."""
        if self._standing in (Standing.LOST, Standing.DROPPED):
            return None
        return max(0, self._renew_at - self._clock.boottime_ms())

    def sending(self) -> int:
        """Note that a renewal is sent now; returns the instant that its answer counts from."""
        now = self._clock.boottime_ms()
        self._renew_at = self._next_renewal(now)
        return now

    def confirmed(self, *, sent_ms: int, version: int, ttl_ms: int) -> bool:
        """Take an accepted renewal; False when it is an answer to an older version.

        The newest version decides, also when it shortens the lease. The same version twice is one
        answer repeated, and then the later of both deadlines holds. The version is noted even when
        authority was dropped meanwhile: whoever completes must show it.
        """
        if version < self.version:
            return False
        deadline = sent_ms + ttl_ms - self._terms.margin_ms
        self._deadline = max(deadline, self._deadline) if version == self.version else deadline
        self.version = version
        self.failures = 0
        if self._standing is Standing.FROZEN and self._clock.boottime_ms() < self._deadline:
            self._standing = Standing.HELD
        return True

    def unanswered(self) -> None:
        """Count a renewal that nobody answered, and set the next one.

        The attempts that are left are spread over what is left of the belief, so that the last one
        still finds it alive. While frozen they come faster: silence ends it soon.
        """
        self.failures += 1
        now = self._clock.boottime_ms()
        left = self._deadline - self._terms.margin_ms - now
        attempts = self._terms.renew_attempts - self.failures
        if self._standing is Standing.FROZEN or left <= 0 or attempts <= 0:
            self._renew_at = now + max(1, self._terms.margin_ms // _FROZEN_ATTEMPTS)
        else:
            self._renew_at = min(self._renew_at, now + left // attempts)

    def refused(self, reason: str) -> None:
        """The store said that the lease isn't ours."""
        if self._standing is not Standing.DROPPED:
            self._lose(reason)

    def drop(self) -> None:
        """Give the belief up, *before* completing or releasing is sent.

        With the answer it would be too late: between the store's commit and its answer another
        holder may have been granted the same.
        """
        if self._standing is not Standing.LOST:
            self._standing = Standing.DROPPED

    def _lose(self, reason: str) -> None:
        self._standing = Standing.LOST
        self.loss = self.loss or reason

    def _next_renewal(self, sent_ms: int) -> int:
        # Multiples of the golden ratio spread evenly over [0, 1): jitter without a generator.
        self._phase = (self._phase + _GOLDEN) % 1
        return sent_ms + round(self._terms.renew_every_ms * (1 + JITTER * (2 * self._phase - 1)))
