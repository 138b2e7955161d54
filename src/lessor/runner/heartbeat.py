"""The heartbeat of one lease: what to ask the store when, and what its answers mean."""

from __future__ import annotations

from dataclasses import dataclass

from lessor.clock import Clock
from lessor.runner.authority import Authority, Standing
from lessor.runner.calls import Answer, Ask, Call, StoreCalls
from lessor.runner.lifeline import Renewal, Watch
from lessor.runner.report import EventKind, ReportWriter

RECORD_AGAIN_MS = 1_000
_NO_HURRY_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the store wants of the holder."""

    cancelled: bool = False
    stop: bool = False


class Heartbeat:
    """Renews and watches a lease, and at the end records the proof that its agent is gone."""

    def __init__(
        self,
        authority: Authority,
        calls: StoreCalls,
        *,
        clock: Clock,
        report: ReportWriter,
        watch_every_ms: int,
    ) -> None:
        self._authority = authority
        self._calls = calls
        self._clock = clock
        self._report = report
        self._watch_every_ms = watch_every_ms
        self._watch_at = clock.boottime_ms() + watch_every_ms
        self._proof = ""
        self._record_at = 0
        self._record_until = 0
        self._over: bool | None = None

    @property
    def exhausted(self) -> bool:
        """Whether too many renewals in a row went unanswered."""
        return self._authority.exhausted

    @property
    def in_flight(self) -> bool:
        """Whether an answer is still to come."""
        return self._calls.busy

    @property
    def version(self) -> int:
        """The newest version of the lease that the store confirmed."""
        return self._authority.version

    @property
    def loss(self) -> str:
        """Why the lease is lost; empty before."""
        return self._authority.loss

    def judge(self) -> Standing:
        """The standing now."""
        return self._authority.judge()

    def drop(self) -> None:
        """Believe in the lease no longer, and renew it no more."""
        self._authority.drop()

    def record(self, proof: str, *, within_ms: int) -> None:
        """From now on tell the store that the agent is gone, until it answers or time is over."""
        if not self._proof:
            self._proof = proof
            self._record_at = self._clock.boottime_ms()
            self._record_until = self._record_at + within_ms

    def recorded(self) -> bool | None:
        """Whether the store has taken the proof, or said that the lease was over; None: not yet."""
        if self._over is None and self._proof and self._clock.boottime_ms() >= self._record_until:
            self._over = False
        return self._over

    def beat(self) -> None:
        """Ask what is due, when nothing is in flight."""
        if self._calls.busy:
            return
        now = self._clock.boottime_ms()
        if self._proof:
            if now >= self._record_at and self._over is None:
                self._record_at = now + RECORD_AGAIN_MS
                self._calls.submit(Call(ask=Ask.END_GONE, proof=self._proof))
        elif self._authority.until_renewal_ms() == 0:
            self._calls.submit(Call(ask=Ask.RENEW, sent_ms=self._authority.sending()))
        elif now >= self._watch_at and self._authority.until_renewal_ms() is not None:
            self._calls.submit(Call(ask=Ask.WATCH))

    def hear(self) -> Wishes:
        """Take the answer that has come in, if one has."""
        answer = self._calls.answer()
        if answer is None:
            return Wishes()
        self._watch_at = self._clock.boottime_ms() + self._watch_every_ms
        if answer.call.ask is Ask.END_GONE:
            self._hear_of_proof(answer)
        elif answer.refusal:
            self._authority.refused(answer.refusal)
        elif answer.silence:
            self._hear_nothing(answer)
        elif isinstance(answer.result, Renewal):
            return self._hear_renewal(answer.call, answer.result)
        elif isinstance(answer.result, Watch):
            return self._hear_watch(answer.result)
        return Wishes()

    def until_beat_ms(self) -> int:
        """How long until something is to be asked or judged; an answer wakes by itself."""
        now = self._clock.boottime_ms()
        due = [_NO_HURRY_MS]
        if (change := self._authority.until_change_ms()) is not None:
            due.append(change)
        if self._proof:
            due.append(self._record_until - now)
        if not self._calls.busy:
            renewal = self._authority.until_renewal_ms()
            if self._proof:
                due.append(self._record_at - now)
            elif renewal is not None:
                due += [renewal, self._watch_at - now]
        return max(0, min(due))

    def _hear_renewal(self, call: Call, renewal: Renewal) -> Wishes:
        if self._authority.confirmed(
            sent_ms=call.sent_ms, version=renewal.version, ttl_ms=renewal.ttl_ms
        ):
            self._report.append(
                EventKind.RENEWED, version=renewal.version, left_ms=self._authority.left_ms()
            )
        return Wishes(cancelled=renewal.cancelled, stop=renewal.stop)

    def _hear_watch(self, watch: Watch) -> Wishes:
        if not watch.held and not watch.cancelled:
            self._authority.refused(watch.reason or "the lease is over")
        return Wishes(cancelled=watch.cancelled, stop=watch.stop)

    def _hear_nothing(self, answer: Answer) -> None:
        # A look that failed says nothing: the next renewal finds out.
        if answer.call.ask is Ask.RENEW:
            self._authority.unanswered()
            self._report.append(
                EventKind.UNANSWERED, failures=self._authority.failures, message=answer.silence
            )

    def _hear_of_proof(self, answer: Answer) -> None:
        if not answer.silence:
            self._over = True
            self._report.append(
                EventKind.RECORDED, accepted=not answer.refusal, message=answer.refusal
            )
