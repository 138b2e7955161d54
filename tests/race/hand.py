"""What one process holds, and what it writes with that: in time, too late, and in others' names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from time import monotonic_ns
from typing import Any

from arena import random_scope
from journal import LOST, Journal
from telling import ends_told, leases_asked, renewals_told

from lessor.clock import SystemClock
from lessor.errors import LeaseLostError, LessorError
from lessor.ids import new_token
from lessor.model.grant import Failure, Grant, Result
from lessor.model.lease import Epoch, Holder
from lessor.model.scope import Mode
from lessor.service.lessor import Lessor

TRIES = 4
"""Sent again, with the same request id where there is one, while the answer is lost."""


@dataclass(slots=True)
class Held:
    """A lease that this process believes it has until its own deadline."""

    holder: Holder
    until_ns: int


class Hand:
    """The leases of one process, live and over."""

    def __init__(self, lessor: Lessor, journal: Journal, rng: Random, *, worker: str) -> None:
        self.lessor = lessor
        self.journal = journal
        self.rng = rng
        self.worker = worker
        self.held: list[Held] = []
        self.over: list[Holder] = []
        self._results: dict[tuple[str, int], Result] = {}

    def take(self, grants: list[Grant], *, sent_ns: int) -> None:
        """Believe in these grants, for as long as they last from the moment they were asked for."""
        have = {held.holder.lease for held in self.held}
        self.held.extend(
            Held(grant.holder, sent_ns + grant.ttl_ms * 1_000_000)
            for grant in grants
            if grant.lease not in have
        )

    def give(self, several: list[Held]) -> list[tuple[Holder, Result]]:
        """These are about to end: what they end with, were it a completion."""
        self.held = [held for held in self.held if held not in several]
        holders = [held.holder for held in several]
        self.over = [*self.over[-20:], *holders]
        return [(holder, self._result(holder)) for holder in holders]

    def end(self) -> None:
        """End one lease, or all at once, in one of the ways that a holder has."""
        if not self.held:
            return
        op = self.rng.choices(("complete", "fail", "release", "ask"), weights=(20, 5, 5, 1))[0]
        several = op == "complete" and self.rng.random() < 0.2
        given = self.give(list(self.held) if several else [self.rng.choice(self.held)])
        self.write(op, [holder for holder, _ in given])

    def renew(self) -> None:
        """Renew some of what is held; now and then the answer isn't taken notice of."""
        if not self.held:
            return
        several = self.rng.sample(self.held, self.rng.randrange(1, len(self.held) + 1))
        holders = [held.holder for held in several]
        sent = monotonic_ns()
        answers = self.journal.call(
            "renew",
            {"leases": leases_asked(self.lessor.naming, holders)},
            lambda: self.lessor.leases.renew(holders),
            renewals_told,
        )
        if isinstance(answers, LessorError):
            return
        for held, answer in zip(several, answers, strict=True):
            if isinstance(answer, LeaseLostError):
                self.give([held])
            elif self.rng.random() < 0.95:
                held.holder = replace(held.holder, version=answer.version)
                held.until_ns = sent + answer.ttl_ms * 1_000_000

    def widen(self) -> None:
        """Take more paths."""
        if self.held:
            self.write("widen", [self.rng.choice(self.held).holder])

    def oversleep(self) -> None:
        """Hold a lease for longer than it lasts, then try every write that there is."""
        if not self.held:
            return
        held = self.rng.choice(self.held)
        self.give([held])
        left = max(0, held.until_ns - monotonic_ns()) // 1_000_000
        SystemClock().wait(left + self.rng.randrange(60))
        ops = ["renew", "complete", "fail", "release", "ask", "widen"]
        self.rng.shuffle(ops)
        for op in ops:
            self.write(op, [held.holder])

    def try_over(self) -> None:
        """Write with a lease that was given back, or is held no longer."""
        if self.over:
            ops = ("complete", "complete", "renew", "fail", "release", "widen")
            self.write(self.rng.choice(ops), [self.rng.choice(self.over)])

    def forge(self) -> None:
        """Write with somebody else's lease: its ids are no secret, its token is."""
        live = self.journal.call(
            "leases", {}, lambda: self.lessor.leases.leases(live=True, most=20), lambda _: {}
        )
        theirs = [] if isinstance(live, LessorError) else live
        theirs = [one for one in theirs if one.kind == "lease" and one.worker != self.worker]
        if theirs:
            lease = self.rng.choice(theirs)
            holder = Holder(
                task=lease.task,
                epoch=Epoch(lease.epoch),
                worker=self.rng.choice((self.worker, str(lease.worker))),
                token=new_token(),
                version=lease.version,
            )
            self.write(self.rng.choice(("complete", "renew", "release")), [holder], forged=True)

    def write(self, op: str, holders: list[Holder], *, forged: bool = False) -> None:
        """One of a holder's writes; sent again while the answer is lost."""
        asked = {"leases": leases_asked(self.lessor.naming, holders), "forged": forged}
        items = [(holder, self._result(holder)) for holder in holders]
        for _ in range(TRIES):
            answer = self._write_once(op, items, asked)
            if not isinstance(answer, LessorError) or answer.code not in LOST:
                return

    def _write_once(
        self, op: str, items: list[tuple[Holder, Result]], asked: dict[str, Any]
    ) -> object:
        leases, call, holder = self.lessor.leases, self.journal.call, items[0][0]
        match op:
            case "complete":
                return call(op, asked, lambda: leases.complete(items), ends_told)
            case "renew":
                return call(op, asked, lambda: leases.renew([holder]), renewals_told)
            case "fail":
                failure = Failure(error="boom", retry=self.rng.random() < 0.95)
                return call(op, asked, lambda: [leases.fail(holder, failure)], ends_told)
            case "release":
                return call(op, asked, lambda: [leases.release(holder)], ends_told)
            case "ask":
                return call(op, asked, lambda: [leases.ask(holder, "which one?")], ends_told)
            case _:
                return self._widen_once(holder, asked)

    def _widen_once(self, holder: Holder, asked: dict[str, Any]) -> object:
        paths = [random_scope(self.rng) for _ in range(self.rng.choice((1, 1, 2)))]
        mode = self.rng.choice((Mode.WRITE, Mode.WRITE, Mode.READ))
        since_start = self.rng.random() < 0.2
        return self.journal.call(
            "widen",
            {**asked, "paths": paths, "mode": mode},
            lambda: self.lessor.leases.widen(holder, paths, mode=mode, since_start=since_start),
            lambda fence: {"leases": [{"ok": 1, "fence": fence}]},
        )

    def _result(self, holder: Holder) -> Result:
        """Mostly the result that it showed before, so that showing it again is a repeat."""
        if self.rng.random() < 0.3:
            return Result(said=new_token())
        known = (holder.task, holder.epoch)
        return self._results.setdefault(known, Result(said=new_token()))
