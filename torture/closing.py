"""When the faults are over: healthy hands finish what is left, and somebody reads what the store says."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from lessor.clock import SystemClock
from lessor.errors import LessorError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant, Reach, Result
from lessor.model.worker import NewWorker
from lessor.publish.claiming import claim_ready
from lessor.service.lessor import Lessor
from torture.clone import Clone
from torture.hand import end_told, grant_told, lease_asked, request_asked
from torture.log import Log
from torture.place import Place

LONGEST_MS = 120_000
PAGE = 500
DECISIONS = ("needs_person", "quarantined", "reconciling")
DONE = frozenset({"succeeded", "failed", "cancelled", "blocked"})


class Closing:
    """Finishes and reads; `left` is what couldn't be finished."""

    def __init__(self, place: Place, rng: Random, *, ttl_ms: int) -> None:
        self._place = place
        self._rng = rng
        self._ttl_ms = ttl_ms
        self._clock = SystemClock()
        self._lessor = place.lessor()
        self._log = Log(place.logs / "closing.jsonl", begin="closing")
        self._worker = self._lessor.registry.add_worker(NewWorker(agent="closing")).id
        self._plain, self._fenced = place.repositories()
        self._clone: Clone | None = None
        self.left = 0

    def run(self) -> None:
        """Finish everything that can be, then read it all."""
        if self._fenced and self._place.remote is not None:
            self._clone = Clone(self._place.folder / "clone", str(self._place.remote.folder))
        latest = self._clock.boottime_ms() + LONGEST_MS
        while self._clock.boottime_ms() < latest:
            done = sum(
                self._work(where)
                for where in (self._plain, self._fenced, Reach.NO_REPOSITORY)
                if where
            )
            self.left = self._decide()
            if not self.left:
                break
            if not done:
                self._clock.wait(100)
        self._log.call(
            "read", {}, lambda: read_everything(self._lessor, self._repositories()), dict
        )
        self._lessor.close()

    def _repositories(self) -> list[str]:
        return [repository for repository in (self._plain, self._fenced) if repository]

    def _work(self, where: str | Reach) -> int:
        request = ClaimRequest(
            worker=self._worker,
            request_id=new_request_id(),
            secret=new_token(),
            repository=where,
            wanted=8,
            ttl_ms=max(self._ttl_ms, 30_000),
        )

        def claim(_: int = 0) -> list[Grant]:
            answer = self._log.call(
                "claim",
                request_asked(request),
                lambda: self._lessor.leases.claim(request),
                lambda grants: {"grants": [grant_told(grant) for grant in grants]},
            )
            if isinstance(answer, LessorError):
                raise answer
            return answer

        try:
            if where == self._fenced and self._clone is not None:
                grants = claim_ready(
                    self._lessor, self._clone.folder, str(where), claim, give_back=lambda *_: None
                )
            else:
                grants = claim()
        except LessorError:
            return 0
        for grant in grants:
            self._complete(grant)
        return len(grants)

    def _complete(self, grant: Grant) -> None:
        self._log.call(
            "complete",
            lease_asked(grant.holder),
            lambda: self._lessor.leases.complete_one(grant.holder, Result(said="closed")),
            end_told,
        )

    def _decide(self) -> int:
        """Let everything that waits for a person be tried again; how many are unfinished."""
        tasks = self._lessor.tasks
        waiting = tasks.tasks(everywhere=True, states=DECISIONS, most=PAGE)
        if waiting:
            ids = [task.id for task in waiting]
            self._log.call("requeue", {"ids": ids}, lambda: tasks.requeue(ids), lambda _: {})
        counts = tasks.counts(everywhere=True)
        return sum(number for state, number in counts.items() if state not in DONE)


def read_everything(lessor: Lessor, repositories: list[str]) -> dict[str, object]:
    """Every task's state, every lease, and every push that was announced."""
    states = dict(_tasks(lessor))
    leases: list[dict[str, object]] = []
    intents: list[dict[str, object]] = []
    for task in states:
        leases += [
            {
                "task": task,
                "epoch": lease.epoch,
                "term": lease.term,
                "fence": lease.fence,
                "version": lease.version,
                "end": str(lease.end or ""),
            }
            for lease in lessor.leases.leases(task=task)
            if lease.kind == "lease"
        ]
        if repositories:
            intents += [
                {
                    "task": task,
                    "epoch": intent.epoch,
                    "ref": intent.publish.ref,
                    "commit": intent.publish.new,
                    "outcome": None if intent.outcome is None else str(intent.outcome),
                }
                for intent in lessor.intents.of_task(task)
            ]
    return {"tasks": states, "leases": leases, "intents": intents}


def _tasks(lessor: Lessor) -> Iterator[tuple[str, str]]:
    before = ""
    while page := lessor.tasks.tasks(everywhere=True, before=before, most=PAGE):
        yield from ((task.id, str(task.state)) for task in page)
        before = page[-1].id
