"""Workers: they claim, renew, widen, push and end; some stand still, crash, or go on for too long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from lessor.errors import GitError, LeaseLostError, LessorError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Ended, Failure, Grant, Reach, Renewed, Result
from lessor.model.lease import Holder, terms_for
from lessor.model.task import AD_HOC, NewTask, Stage
from lessor.model.worker import NewWorker
from lessor.publish.claiming import claim_ready
from lessor.publish.pushing import Errand, publish
from lessor.service.lessor import Lessor
from simulation.client import Client, SilenceError
from simulation.ground import FILES, NARROW
from simulation.people import QUEUES, REMOTE
from simulation.scheduler import CrashedError
from simulation.world import World

CLONE = Path("/simulated")
KINDS = ("claude", "codex")


@dataclass(slots=True, kw_only=True)
class Held:
    """A lease as its holder sees it.

    Attributes:
        until: when its authority ends on its own clock, which counts suspend.
    """

    grant: Grant
    holder: Holder
    until: int
    renewed: int
    commit: str | None = None

    @property
    def name(self) -> str:
        """Its branch at the remote."""
        return f"refs/heads/{self.grant.branch}"


class Worker:
    """One session of an agent runner after another."""

    def __init__(self, world: World, name: str, kind: str, places: list[str]) -> None:
        self.world = world
        self.name = name
        self.kind = kind
        self.places = places
        self.client = Client(world, name)
        self.chance = world.chance(f"worker/{name}")
        self.worker = ""
        self._terms = terms_for(world.plan.ttl_ms)
        self._clones = 0
        self._shown: list[Holder] = []
        self._left_to_ask: list[tuple[str | Reach, str]] = []

    def live(self) -> None:
        """Work until the run is over; a crash is the end of a session, not of the worker."""
        while True:
            try:
                self._session()
            except CrashedError:
                self.world.record("crashed")
                self._forget()
                self.world.sleep(self.world.span("restart", 100, self.world.plan.ttl_ms))
                self.client.restart()
            except (SilenceError, LessorError) as error:
                self.world.record(f"gave up: {getattr(error, 'code', 'silence')}")
                self.world.sleep(self.world.span("rest", 100, 10_000))

    def clone(self, grant: Grant, until: int) -> None:
        """Be a second process with the identity and the lease of another."""
        held = Held(grant=grant, holder=grant.holder, until=until, renewed=0)
        try:
            self._work([held])
        except (SilenceError, LessorError, CrashedError) as error:
            self.world.record(f"the clone ended: {type(error).__name__}")

    def _session(self) -> None:
        if not self.worker or self.chance.random() < 0.1:
            new = NewWorker(agent=self.name, kind=self.kind, heartbeat=True)
            self.worker = self.client.insist("register", lambda a: a.registry.add_worker(new)).id
        if self.chance.random() < 0.07 and self.world.faulty:
            grants = self._acquire()
        else:
            grants = self._claim()
        self._work([self._hold(grant) for grant in grants])
        self.world.sleep(self.world.span("rest", 100, 8_000))

    def _claim(self) -> list[Grant]:
        place, queue = self._wish()
        request = self._request(place, queue)
        self._shown = []
        sent = self.world.clock.boottime_ms()
        fenced = self.world.plan.fenced or self.chance.random() < 0.3
        repository = None if isinstance(place, Reach) else place
        if not fenced or repository is None:
            if self.world.plan.fenced and place is Reach.ANYWHERE:
                return []
            grants = self._granted(request)
        else:
            grants = self.client.here(
                "claim and fence",
                lambda a: claim_ready(
                    a,
                    CLONE,
                    repository,
                    lambda _: self._granted(request),
                    give_back=lambda grant, why: self._release(grant.holder, why),
                ),
                holders=self._shown,
            )
        return [replace(grant, ttl_ms=self._left(grant, sent)) for grant in grants]

    def _wish(self) -> tuple[str | Reach, str]:
        """Where to look for work: anywhere, and in turn when all has to heal."""
        reaches = [*self.places] * 2 + [Reach.ANYWHERE, Reach.NO_REPOSITORY]
        if self.world.faulty:
            return self.chance.choice(reaches), self.chance.choice(QUEUES)
        if not self._left_to_ask:
            self._left_to_ask = [(reach, queue) for reach in reaches for queue in QUEUES]
        return self._left_to_ask.pop()

    def _granted(self, request: ClaimRequest) -> list[Grant]:
        grants = self.client.insist(
            "claim", lambda a: a.leases.claim(request), request=(self.worker, request.request_id)
        )
        self._shown.extend(grant.holder for grant in grants)
        return grants

    def _acquire(self) -> list[Grant]:
        task = NewTask(
            title="bare scope",
            queue=AD_HOC,
            repository=self.chance.choice(self.places),
            scopes=(self.chance.choice(NARROW),),
        )
        request, secret, worker = new_request_id(), new_token(), self.worker
        sent = self.world.clock.boottime_ms()
        grant = self.client.insist(
            "acquire",
            lambda a: a.leases.acquire(
                task,
                worker=worker,
                ttl_ms=self._terms.ttl_ms,
                request_id=request,
                secret=secret,
            ),
            request=(worker, request),
        )
        return [replace(grant, ttl_ms=self._left(grant, sent))]

    def _request(self, place: str | Reach, queue: str) -> ClaimRequest:
        return ClaimRequest(
            worker=self.worker,
            request_id=new_request_id(),
            secret=new_token(),
            queue=queue,
            repository=place,
            wanted=self.chance.choice((1, 1, 1, 2, 3)),
            ttl_ms=self._terms.ttl_ms,
        )

    def _hold(self, grant: Grant) -> Held:
        now = self.world.clock.boottime_ms()
        held = Held(
            grant=grant,
            holder=grant.holder,
            until=now + grant.ttl_ms - self._terms.margin_ms,
            renewed=now,
        )
        self._believe(held)
        if grant.branch is not None:
            held.commit = self.world.remote.refs.get(held.name)
        if self.world.hit("clone"):
            self._clones += 1
            twin = Worker(self.world, f"{self.name}'{self._clones}", self.kind, self.places)
            twin.worker = self.worker
            self.world.scheduler.spawn(twin.name, lambda: twin.clone(grant, held.until))
        return held

    def _left(self, grant: Grant, sent: int) -> int:
        """What is left of a grant's term, counted from when the request was sent."""
        return grant.ttl_ms - (self.world.clock.boottime_ms() - sent)

    def _believe(self, held: Held) -> None:
        if "clone" not in self.world.plan.rates:
            number = self.world.naming.lease_row(held.grant.lease)
            self.world.memory.believed[number] = (held.until, self.name)

    def _drop(self, held: Held) -> None:
        self.world.memory.believed.pop(self.world.naming.lease_row(held.grant.lease), None)

    def _forget(self) -> None:
        believed = self.world.memory.believed
        for number in [n for n, (_, who) in believed.items() if who == self.name]:
            del believed[number]

    def _work(self, several: list[Held]) -> None:
        """Work on leases until each has ended or is lost."""
        while several:
            busy = self._terms.ttl_ms // 2 if self.world.faulty else 2_000
            self.world.sleep(self.world.span(f"work/{self.name}", 500, busy))
            several = self._renewed(several)
            if len(several) > 1 and self.chance.random() < 0.1:
                several = self._complete_together(several)
            kept = []
            for held in several:
                lost = self.world.clock.boottime_ms() >= held.until
                if lost and not self.world.hit("careless"):
                    self._give_up(held)
                elif not self._act(held):
                    kept.append(held)
            several = kept

    def _renewed(self, several: list[Held]) -> list[Held]:
        now = self.world.clock.boottime_ms()
        due = [
            h for h in several if h.grant.progress and now - h.renewed >= self._terms.renew_every_ms
        ]
        if not due:
            return several
        request, holders = new_request_id(), [held.holder for held in due]
        try:
            answers = self.client.insist(
                "renew",
                lambda a: a.leases.renew(holders, request_id=request),
                holders=holders,
                tries=self.chance.choice((1, 3)),
            )
        except (SilenceError, LessorError):
            return several
        for held, answer in zip(due, answers, strict=True):
            if isinstance(answer, Renewed):
                held.holder = replace(held.holder, version=answer.version)
                held.until = now + answer.ttl_ms - self._terms.margin_ms
                held.renewed = now
                self._believe(held)
            else:
                held.until = now
        return several

    def _act(self, held: Held) -> bool:
        """Do one thing with a lease; whether it is over."""
        what = self.chance.random()
        try:
            if what < 0.2:
                self._widen(held)
            elif what < (0.6 if self.world.plan.fenced else 0.35):
                self._push(held)
            elif what < 0.7 and self.world.faulty:
                self._look(held)
            else:
                return self._end(held)
        except LeaseLostError:
            self._give_up(held)
            return True
        except (SilenceError, LessorError):
            return False
        return False

    def _widen(self, held: Held) -> None:
        if held.grant.repository is None:
            return
        holder, path = held.holder, self.chance.choice(FILES)
        if self.chance.random() < 0.5:
            self.client.insist("widen", lambda a: a.leases.widen(holder, [path]), holders=[holder])
        else:
            self.client.insist("admit", lambda a: a.leases.admit(holder, [path]), holders=[holder])

    def _push(self, held: Held) -> None:
        if held.grant.repository is None or held.grant.branch is None:
            return
        held.commit = self.world.remote.commit(held.commit)
        errand = Errand(
            repo=cast("Any", SimpleNamespace(root=CLONE)),
            remote=REMOTE,
            ref=held.name,
            commit=held.commit,
            judged=True,
        )
        try:
            self.client.here(
                "push", lambda a: publish(a, held.holder, errand), holders=[held.holder]
            )
        except GitError as error:
            self.world.record(f"pushed nothing: {error.code}")
            held.commit = self.world.remote.refs.get(held.name)

    def _look(self, held: Held) -> None:
        holder = held.holder
        seen = self.client.insist("watch", lambda a: a.leases.watch(holder), holders=[holder])
        held.holder = replace(holder, version=seen.version)
        if not seen.live:
            raise LeaseLostError("It is over.")

    def _give_up(self, held: Held) -> None:
        self._drop(held)
        holder = held.holder
        if self.chance.random() < 0.5:
            with suppress(SilenceError, LessorError):
                self.client.ask(
                    "acknowledge", lambda a: a.leases.acknowledge(holder), holders=[holder]
                )

    def _end(self, held: Held) -> bool:
        """End a lease, its authority dropped before the call is sent; whether it is over."""
        if self.world.hit("forged"):
            self._forge(held.holder)
        self._drop(held)
        holder, what = held.holder, self.chance.random()
        if self.world.hit("check_fails"):
            error = self.chance.choice(("red", "red", "timeout"))
            final = self.chance.random() < 0.05
            failure = Failure(error=error, retry=not final, credential=self.chance.random() < 0.03)
            self.client.insist(
                "fail", lambda a: a.leases.fail(holder, failure), holders=[holder], failure=failure
            )
        elif what < 0.1 and self.world.faulty:
            self._release(holder, "enough")
        elif what < 0.16 and self.world.faulty and held.grant.queue in QUEUES:
            self.client.insist(
                "ask", lambda a: a.leases.ask(holder, "which one?"), holders=[holder]
            )
        elif what < 0.2 and self.world.faulty:
            self.world.record("walked away")
        elif what < 0.45 and held.grant.repository is not None and not self.world.plan.fenced:
            self._complete_and_claim(held)
        else:
            item = (holder, self._result(held))
            answers = self.client.insist(
                "complete", lambda a: a.leases.complete([item]), holders=[holder]
            )
            self._heed(answers)
        return True

    def _complete_together(self, several: list[Held]) -> list[Held]:
        """Complete in one call what is still held; what is left."""
        now = self.world.clock.boottime_ms()
        done = [held for held in several if now < held.until]
        for held in done:
            self._drop(held)
        items = [(held.holder, self._result(held)) for held in done]
        try:
            self.client.insist(
                "complete", lambda a: a.leases.complete(items), holders=[who for who, _ in items]
            )
        except (SilenceError, LessorError):
            return several
        return [held for held in several if now >= held.until]

    def _forge(self, holder: Holder) -> None:
        """Try to renew or end the lease with something of its proof changed."""
        changed: dict[str, Any] = self.chance.choice(
            (
                {"token": new_token()},
                {"epoch": holder.epoch + 1},
                {"epoch": max(1, holder.epoch - 1)},
                {"version": holder.version + 1},
                {"version": max(1, holder.version - 1)},
            )
        )
        false = replace(holder, **changed)
        if false == holder:
            return
        result = Result(said="forged")
        another = replace(false, epoch=false.epoch + 1)
        acts: tuple[Callable[[Lessor], object], ...] = (
            lambda a: a.leases.complete([(false, result)]),
            lambda a: a.leases.complete([(false, result), (another, result)]),
            lambda a: a.leases.renew([false]),
            lambda a: a.leases.release(false),
            lambda a: a.leases.fail(false, Failure(error="forged")),
            lambda a: a.leases.widen(false, ["d"]),
        )
        kinds = ("complete", "complete", "renew", "release", "fail", "widen")
        which = self.chance.randrange(len(acts))
        with suppress(SilenceError, LessorError):
            self.client.ask(kinds[which], acts[which], holders=[false, another])

    def _complete_and_claim(self, held: Held) -> None:
        holder, item = held.holder, (held.holder, self._result(held))
        place = held.grant.repository or Reach.NO_REPOSITORY
        request = self._request(place, self.chance.choice(QUEUES))
        sent = self.world.clock.boottime_ms()
        ended, grants = self.client.insist(
            "complete and claim",
            lambda a: a.leases.complete_and_claim([item], request),
            holders=[holder],
            request=(self.worker, request.request_id),
        )
        self._heed(ended)
        self._work([self._hold(replace(g, ttl_ms=self._left(g, sent))) for g in grants])

    def _heed(self, answers: list[Ended | LeaseLostError]) -> None:
        for answer in answers:
            if isinstance(answer, LeaseLostError):
                raise answer

    def _release(self, holder: Holder, why: str) -> Ended:
        return self.client.insist(
            "release", lambda a: a.leases.release(holder, reason=why), holders=[holder]
        )

    def _result(self, held: Held) -> Result:
        has_work = held.commit is not None and held.grant.branch is not None
        return Result(
            stage=Stage.PUSHED if has_work else Stage.UNVERIFIED,
            said=f"done by {self.name}",
            commit=held.commit if has_work else None,
            base="0" * 40 if has_work else None,
        )
