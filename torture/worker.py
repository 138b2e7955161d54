"""A worker: one process that claims, works, renews, widens, pushes and ends, until it is told to stop.

A careful one asks its own clock before it writes, as the runner does. A careless one never does: it
goes on after a pause as if nothing had happened, and only the store and the remote can stop it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from lessor.clock import SystemClock
from lessor.connect import connect
from lessor.errors import LessorError, StoreError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Failure, Grant, Reach, Result
from lessor.model.lease import terms_for
from lessor.model.task import NewTask
from lessor.model.worker import NewWorker
from lessor.publish.claiming import claim_ready
from lessor.runner.authority import Standing
from lessor.service.lessor import Lessor
from torture.arena import LEAVES, POLICY, random_paths, random_tasks
from torture.clocks import FileClock
from torture.clone import Clone
from torture.hand import (
    Held,
    end_told,
    grant_told,
    lease_asked,
    renewal_told,
    request_asked,
    take,
)
from torture.log import LOST, Log

T = TypeVar("T")
TRIES = 6
MOST_HELD = 2
DYING_S = (0.0001, 0.03)
"""How long after a call was begun the doomed die: a call takes about as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a worker is started with.

    Attributes:
        plain: the repository that is fenced nowhere.
        fenced: the one that is fenced at a remote; empty without git.
        clone: where the worker keeps its clone of it.
        remote: what it is cloned from.
        spared: where it claims what others lost ("plain" or "fenced"): it works quickly, and is never stopped
            or killed. A slow remote keeps only one of them.
        long: how many of a hundred leases are worked on for longer than a moment, up to one and a half terms.
        enough: so many open tasks, and the worker adds no more.
        clock: a file that says how far the wall clock is ahead; empty for the machine's own.
    """

    url: str
    log: str
    seed: int
    agent: str
    ttl_ms: int
    careless: bool
    plain: str
    fenced: str = ""
    clone: str = ""
    remote: str = ""
    spared: str = ""
    clock: str = ""
    long: int = 30
    enough: int = 12


class Worker:
    """One process's work."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.rng = Random(orders.seed)
        self.clock = SystemClock()
        self.terms = terms_for(orders.ttl_ms)
        self.stopped = False
        self.doomed = False
        self.hand: list[Held] = []
        self.sent_ms = 0
        self.log = Log(Path(orders.log), begin=orders.agent, careless=orders.careless)
        self.lessor = self._connected()
        self.worker = self._registered()
        self.log.note(ready=True)
        self.clone: Clone | None = None

    def work(self) -> None:
        """Turn after turn, as long as the harness lives."""
        parent = os.getppid()
        while not self.stopped and os.getppid() == parent:
            self._turn()
            self.clock.wait(self.rng.randrange(10, 80))

    def _turn(self) -> None:
        for held in [*self.hand]:
            if (held.authority.until_renewal_ms() or 0) <= 0:
                self._renew(held)
        for held in [*self.hand]:
            if held in self.hand and self._may(held):
                self._go_on(held)
        if len(self.hand) < MOST_HELD:
            self._look_for_work()

    def _go_on(self, held: Held) -> None:
        """Something that work does now and then; its end when it is done."""
        if self.clock.boottime_ms() >= held.ready_at_ms:
            self._end(held)
        elif held.grant.repository and self.rng.random() < 0.04:
            self._widen(held)
        elif held.grant.repository == self.orders.fenced and self.rng.random() < 0.5:
            self._push(held)

    def _may(self, held: Held) -> bool:
        """Whether the worker believes that the lease is its own; the careless always do."""
        standing = held.authority.judge()
        if standing is Standing.LOST and (not self.orders.careless or self.rng.random() < 0.2):
            self.hand.remove(held)
            return False
        return self.orders.careless or standing is Standing.HELD

    def _look_for_work(self) -> None:
        places: list[str | Reach] = [self.orders.plain, self.orders.plain, Reach.NO_REPOSITORY]
        if self.orders.fenced:
            places.append(self.orders.fenced)
        if self.orders.spared:
            fenced = self.orders.spared == "fenced"
            for place in (
                [self.orders.fenced] if fenced else [self.orders.plain, Reach.NO_REPOSITORY]
            ):
                self._claim(place)
            return None
        place = self.rng.choice(places)
        if place is not Reach.NO_REPOSITORY and self.rng.random() < 0.15:
            return self._acquire(str(place))
        grants = self._claim(place)
        if not grants and place is Reach.NO_REPOSITORY:
            self._add(random_tasks(self.rng, self.rng.randrange(1, 9), repositories=[None]))
        elif not grants and self.rng.random() < 0.5:
            self._submit()
        return None

    def _claim(self, place: str | Reach) -> list[Grant]:
        request = ClaimRequest(
            worker=self.worker,
            request_id=new_request_id(),
            secret=new_token(),
            repository=place,
            wanted=self.rng.choice((1, 1, 2)),
            ttl_ms=self.orders.ttl_ms,
        )
        return self._granted(
            place,
            "claim",
            request_asked(request),
            lambda: self.lessor.leases.claim(request),
        )

    def _acquire(self, repository: str) -> None:
        paths = random_paths(self.rng)
        request, secret = new_request_id(), new_token()
        task = NewTask(title="a bare scope", repository=repository, scopes=paths)
        self._granted(
            repository,
            "acquire",
            {"request": request, "wanted": 1, "ttl": self.orders.ttl_ms, "paths": paths},
            lambda: [
                self.lessor.leases.acquire(
                    task,
                    worker=self.worker,
                    ttl_ms=self.orders.ttl_ms,
                    request_id=request,
                    secret=secret,
                )
            ],
        )

    def _granted(
        self,
        place: str | Reach,
        op: str,
        asked: dict[str, Any],
        ask: Callable[[], list[Grant]],
    ) -> list[Grant]:
        """What was granted and made ready; all of it is in the hand then."""

        def claim(_: int = 0) -> list[Grant]:
            answer = self._call(
                op, asked, ask, lambda grants: {"grants": [grant_told(grant) for grant in grants]}
            )
            if isinstance(answer, LessorError):
                raise answer
            return answer

        try:
            if place == self.orders.fenced and place:
                grants = claim_ready(
                    self.lessor, self._place().folder, str(place), claim, give_back=self._give_back
                )
            else:
                grants = claim()
        except (LessorError, OSError):
            return []
        for grant in grants:
            held = take(
                grant,
                self.terms,
                sent_ms=self.sent_ms,
                work_ms=self._work_ms(),
                phase=self.rng.random(),
            )
            if held is not None:
                self.hand.append(held)
        return grants

    def _give_back(self, grant: Grant, why: str) -> object:
        return self._call(
            "release",
            lease_asked(grant.holder),
            lambda: self.lessor.leases.release(grant.holder, reason=why[:200]),
            end_told,
        )

    def _renew(self, held: Held) -> None:
        sent = held.authority.sending()
        request = held.renew_request()
        answer = self._once(
            "renew",
            {**lease_asked(held.holder), "request": request, "version": held.holder.version},
            lambda: self.lessor.leases.renew_one(held.holder, request_id=request),
            renewal_told,
        )
        if not isinstance(answer, LessorError):
            held.renewed(answer, sent_ms=sent)
        elif answer.code in LOST:
            held.authority.unanswered()
        else:
            held.authority.refused(answer.message)

    def _widen(self, held: Held) -> None:
        leaf = self.rng.choice(LEAVES)
        fence = self._once(
            "widen",
            {**lease_asked(held.holder), "paths": [leaf], "repository": held.grant.repository},
            lambda: self.lessor.leases.widen(held.holder, [leaf]),
            lambda fence: {"fence": fence},
        )
        if not isinstance(fence, LessorError):
            held.fences.setdefault(leaf, fence)

    def _push(self, held: Held) -> None:
        if not held.fences:
            return
        leaf = self.rng.choice(sorted(held.fences))
        try:
            clone = self._place()
            errand = clone.commit(leaf, lease_asked(held.holder), self.rng)
        except OSError:
            return
        self._once(
            "push",
            {
                **lease_asked(held.holder),
                "ref": errand.ref,
                "commit": errand.commit,
                "fence": [held.grant.term, held.fences[leaf]],
            },
            lambda: clone.publish(self.lessor, held.holder, errand),
            lambda published: {"moved": published.moved},
        )

    def _end(self, held: Held) -> None:
        self.hand.remove(held)
        held.authority.drop()
        kind = self.rng.random()
        leases = self.lessor.leases
        if kind < 0.1:
            return  # it is forgotten, and lapses
        if kind < 0.25:
            error = f"failed {self.rng.randrange(10**6)}"
            failure = Failure(error=error, fingerprint=error)
            self._ended("fail", held, lambda: leases.fail(held.holder, failure))
        elif kind < 0.4:
            self._ended("release", held, lambda: leases.release(held.holder))
        else:
            self._ended(
                "complete", held, lambda: leases.complete_one(held.holder, Result(said="done"))
            )

    def _ended(self, op: str, held: Held, action: Callable[[], Any]) -> None:
        self._call(op, lease_asked(held.holder), action, end_told)
        if self.orders.careless and self.rng.random() < 0.1:
            self._call(op, lease_asked(held.holder), action, end_told)

    def _submit(self) -> None:
        counts = self._once(
            "counts", {}, lambda: self.lessor.tasks.counts(everywhere=True), lambda _: {}
        )
        if isinstance(counts, LessorError) or counts.get("queued", 0) > self.orders.enough:
            return
        places = [place for place in (self.orders.plain, self.orders.fenced) if place]
        self._add(random_tasks(self.rng, self.rng.randrange(1, 5), repositories=places))

    def _add(self, batch: list[NewTask]) -> None:
        self._once(
            "submit",
            {},
            lambda: self.lessor.tasks.submit(batch),
            lambda made: {"tasks": [one.task for one in made]},
        )

    def _work_ms(self) -> int:
        """Mostly quick; sometimes longer than a term, so that it has to be renewed."""
        is_long = not self.orders.spared and self.rng.randrange(100) < self.orders.long
        return self.rng.randrange(self.orders.ttl_ms * 3 // 2 if is_long else 300)

    def _call(
        self,
        op: str,
        asked: dict[str, Any],
        action: Callable[[], T],
        told: Callable[[T], dict[str, Any]],
    ) -> T | LessorError:
        """Ask until there is an answer: the same request, again and again."""
        answer = self._once(op, asked, action, told)
        for _ in range(TRIES):
            if self.stopped or not isinstance(answer, LessorError) or answer.code not in LOST:
                break
            self.clock.wait(self.rng.randrange(50, 400))
            answer = self._once(op, asked, action, told)
        return answer

    def _once(
        self,
        op: str,
        asked: dict[str, Any],
        action: Callable[[], T],
        told: Callable[[T], dict[str, Any]],
    ) -> T | LessorError:
        return self.log.call(op, asked, action, told, sent=self._sent)

    def _sent(self) -> None:
        self.sent_ms = self.clock.boottime_ms()
        if self.doomed:  # SIGALRM's own action, in the middle of whatever the process does then
            low, high = DYING_S
            signal.setitimer(signal.ITIMER_REAL, low * (high / low) ** self.rng.random())

    def _place(self) -> Clone:
        """The worker's clone, made when it is first needed."""
        if self.clone is None:
            self.clone = Clone(Path(self.orders.clone), self.orders.remote)
        return self.clone

    def _connected(self) -> Lessor:
        while True:
            with suppress(StoreError):
                clock = FileClock(Path(self.orders.clock)) if self.orders.clock else None
                return connect(self.orders.url, policy=POLICY, clock=clock)
            self.clock.wait(200)

    def _registered(self) -> str:
        while True:
            with suppress(LessorError):
                wish = NewWorker(agent=self.orders.agent, heartbeat=True)
                return self.lessor.registry.add_worker(wish).id
            self.clock.wait(200)

    def stop(self, *_: object) -> None:
        """Begin nothing new."""
        self.stopped = True

    def doom(self, *_: object) -> None:
        """Die in the middle of one of the next calls."""
        self.doomed = True


def main() -> None:
    """Work as ordered."""
    orders = Orders(**json.loads(sys.argv[1]))
    os.environ.pop(
        "LD_PRELOAD", None
    )  # the stepped clock is the store's, which is in here, not git's
    early: list[int] = []
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda n, _: early.append(n))
    worker = Worker(orders)
    signal.signal(signal.SIGTERM, worker.stop)
    signal.signal(signal.SIGUSR1, worker.doom)
    worker.stopped = worker.stopped or signal.SIGTERM in early
    worker.doomed = worker.doomed or signal.SIGUSR1 in early
    worker.work()
    os._exit(0)  # nothing is given back: what is held lapses


if __name__ == "__main__":
    main()
