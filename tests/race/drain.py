"""After a race: people decide what is theirs to decide, and healthy workers finish the rest."""

from __future__ import annotations

from pathlib import Path
from random import Random

from arena import AGENTS, DECISIONS, FOLDED, PLAIN, QUEUES
from journal import Journal
from telling import ends_told, grants_told, leases_asked, request_asked

from builders import StoreUnderTest
from lessor.errors import LessorError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Reach, Result
from lessor.model.worker import NewWorker, Worker
from lessor.service.lessor import Lessor

PASSES = 30
TTL_MS = 60_000


class Drain:
    """Finishes what can be finished; `claims` counts how often it had to ask."""

    def __init__(self, store: StoreUnderTest, lessor: Lessor, journals: Path, rng: Random) -> None:
        self._store = store
        self._lessor = lessor
        self._rng = rng
        self._workers = {
            agent: lessor.registry.add_worker(NewWorker(agent=agent)) for agent in AGENTS
        }
        self._journals = {
            agent: Journal(
                journals / f"drain-{agent}.jsonl",
                lessor,
                worker=lessor.naming.worker_row(worker.id),
            )
            for agent, worker in self._workers.items()
        }
        self.claims = 0
        self.finished = 0

    def run(self) -> None:
        """Pass after pass until one changed nothing; then one look at each repository."""
        for _ in range(PASSES):
            changed = self._decide()
            for agent, worker in self._workers.items():
                for queue in QUEUES:
                    while done := self._work(agent, worker, queue, Reach.ANYWHERE):
                        changed += done
            if not changed:
                break
        worker = self._workers[AGENTS[1]]
        for key in (PLAIN, FOLDED):
            place = str(self._lessor.registry.add_repository(key, fold_case=key == FOLDED).id)
            self._work(AGENTS[1], worker, QUEUES[0], place)

    def _work(self, agent: str, worker: Worker, queue: str, place: str | Reach) -> int:
        """Claim once and complete what that gave."""
        request = ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            queue=queue,
            repository=place,
            wanted=self._rng.randrange(1, 9),
            ttl_ms=TTL_MS,
        )
        self.claims += 1
        journal, naming = self._journals[agent], self._lessor.naming
        grants = journal.call(
            "claim",
            request_asked(request),
            lambda: self._lessor.leases.claim(request),
            lambda grants: {"grants": grants_told(naming, grants)},
        )
        assert not isinstance(grants, LessorError), grants
        if grants:
            journal.call(
                "complete",
                {"leases": leases_asked(naming, [grant.holder for grant in grants])},
                lambda: self._lessor.leases.complete(
                    [(grant.holder, Result(said="drained")) for grant in grants]
                ),
                ends_told,
            )
        self.finished += len(grants)
        return len(grants)

    def _decide(self) -> int:
        """Answer what was asked, and let everything else be tried again."""
        rows = self._store.sql("SELECT id, status FROM task ORDER BY id")
        decided = 0
        for row, status in rows:
            task = self._lessor.naming.task(row)
            match DECISIONS.get(status):
                case "answer":
                    self._lessor.tasks.answer(task, "the second")
                case "unblock":
                    self._lessor.tasks.unblock([task])
                case "requeue":
                    self._lessor.tasks.requeue([task])
                case _:
                    continue
            decided += 1
        return decided
