"""`lessor drill`: pause a worker, let another recover its task, resume the first.

"The first worker must be unable to renew, complete, or overwrite the newer result." It runs on the
store that is configured, with real processes and real signals, in a queue and a repository of its
own, so that nobody else's work is touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from lessor.clock import Clock
from lessor.demo.drilled import PATIENCE_MS, DrilledWorker, Step
from lessor.errors import LessorError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant, Result
from lessor.model.task import DRILL, NewTask
from lessor.model.worker import NewWorker
from lessor.service.lessor import Lessor

LEASE_MS = 2_000
WRITES = ("renew", "widen", "release", "fail", "ask", "complete")


class Drill:
    """One drill over one store."""

    def __init__(
        self, lessor: Lessor, *, store_url: str, clock: Clock, say: Callable[[Step], None]
    ) -> None:
        self._lessor = lessor
        self._store_url = store_url
        self._clock = clock
        self._say = say
        self._failed = 0

    def run(self) -> bool:
        """Run every step; whether all of them passed."""
        repository = self._lessor.registry.add_repository(DRILL, name=DRILL).id
        task = self._lessor.tasks.submit(
            [
                NewTask(
                    title="drill: pause and resume",
                    queue=DRILL,
                    repository=repository,
                    scopes=("drill/paths",),
                )
            ]
        )[0].task
        with tempfile.TemporaryDirectory(prefix="lessor-drill-") as folder:
            first = DrilledWorker(
                "lessor.demo.drill_worker",
                [task, repository, str(LEASE_MS)],
                store_url=self._store_url,
                words=Path(folder) / "a.jsonl",
                clock=self._clock,
            )
            try:
                self._steps(task, repository, first)
            finally:
                self._end(first, task)
        return self._failed == 0

    def _steps(self, task: str, repository: str, first: DrilledWorker) -> None:
        claimed = first.heard("claimed")
        self._step(
            f"worker A claims a task for {LEASE_MS} ms",
            passed=claimed is not None and claimed["epoch"] == 1,
        )
        if claimed is None:
            return
        first.pause()
        self._step("worker A is paused (SIGSTOP)", passed=True)
        grant = self._recover(task, repository)
        passed = (
            grant is not None
            and grant.epoch == claimed["epoch"] + 1
            and grant.fence > claimed["fence"]
        )
        self._step(
            "its lease runs out by the store's clock; worker B gets the task",
            passed=passed,
            detail=f"epoch {claimed['epoch']} -> {grant.epoch}, fence {claimed['fence']} -> {grant.fence}"
            if grant
            else "",
        )
        if grant is None:
            return
        first.resume()
        self._step("worker A is resumed (SIGCONT) while B works", passed=True)
        self._tries(first, round_number=1)
        self._lessor.leases.complete_one(grant.holder, Result(said="the newer result"))
        self._tries(first, round_number=2)
        self._judge(task, grant)

    def _tries(self, first: DrilledWorker, *, round_number: int) -> None:
        first.say("go")
        if first.heard("tried", after=round_number - 1) is None:
            self._step("worker A tries to write", passed=False, detail="it gave no answer")
            return
        when = "while B holds the task" if round_number == 1 else "after B has completed it"
        for name in WRITES:
            said = [line for line in first.lines() if line["what"] == name][round_number - 1]
            self._step(
                f"A can't {name} {when}",
                passed="refused" in said,
                detail=str(said.get("refused", "ACCEPTED")),
            )

    def _judge(self, task: str, grant: Grant) -> None:
        known = self._lessor.tasks.task(task)
        self._step(
            "the newer result stands",
            passed=known.said == "the newer result" and known.epoch == grant.epoch,
        )
        late = [event for event in self._lessor.tasks.history(task) if event.kind == "late"]
        self._step(
            "what A brought late is kept as evidence",
            passed=bool(late),
            detail=f"{len(late)} entries",
        )

    def _recover(self, task: str, repository: str) -> Grant | None:
        worker = self._lessor.registry.add_worker(NewWorker(agent="drill-b", kind="drill"))
        request = ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            queue=DRILL,
            repository=repository,
            task=task,
            ttl_ms=PATIENCE_MS * 2,
        )
        grants = self._lessor.leases.claim(request, wait_ms=PATIENCE_MS)
        return grants[0] if grants else None

    def _end(self, first: DrilledWorker, task: str) -> None:
        first.end()
        if self._failed:
            try:
                self._lessor.tasks.cancel([task], actor="drill", reason="the drill failed")
            except LessorError as refused:
                self._step("the drill's task is put away", passed=True, detail=str(refused))

    def _step(self, text: str, *, passed: bool, detail: str = "") -> None:
        self._failed += not passed
        self._say(Step(text=text, passed=passed, detail=detail))
