"""The claim as a caller sees it: checked, routed to a repository, repeated, waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lessor.clock import Clock
from lessor.errors import ConstraintError, InvalidError, LessorError, NotFoundError
from lessor.model.grant import ClaimRequest, Grant, Reach
from lessor.model.lease import HEARTBEAT_TERMS, MANUAL_TERMS, YEAR, LeaseTerms, terms_for
from lessor.model.worker import Worker
from lessor.service.branches import is_taken
from lessor.service.claiming import Claimed, claim_locked
from lessor.service.completing import Ending
from lessor.service.lapsing import end_lapsed
from lessor.service.marks import START, Marks
from lessor.service.naming import Naming
from lessor.service.reading import LeaseRecord, lease_record, worker_record
from lessor.service.repeating import answer_again, grants_of
from lessor.service.requests import was_repeated
from lessor.service.rows import (
    CompletedRow,
    GrantRow,
    LapsedRow,
    LeaseRow,
    SurveyRow,
    WaitRow,
    WorkerRow,
    pack,
)
from lessor.service.scanning import WIDEST, Behind
from lessor.service.short_claims import claim_short
from lessor.service.wish import Claim, token_of
from lessor.service.wording import check_count, check_name, check_text
from lessor.store import Call, Row, Store, Transaction

MOST_WANTED = 1_000
LONGEST_WAIT_MS = 3_600_000
POLL_MS = 1_000
SHORTEST_SECRET = 16
NOTHING = Claimed([], None)
Answer = TypeVar("Answer")


class Claims:
    """Claims of one process; it keeps nothing that another process couldn't find in the store."""

    def __init__(self, store: Store, naming: Naming, clock: Clock) -> None:
        self._store = store
        self._naming = naming
        self._clock = clock
        self._marks = Marks(clock, used=store.concurrent)
        self._workers: dict[str, Worker] = {}

    def claim(self, request: ClaimRequest, *, wait_ms: int = 0) -> list[Grant]:
        """Claim up to `request.wanted` tasks, waiting up to `wait_ms` for the first."""
        claim = self._check(request)
        check_count(wait_ms, "wait in milliseconds", low=0, high=LONGEST_WAIT_MS)
        until = self._clock.boottime_ms() + wait_ms
        while True:
            rows = self._attempt(claim)
            left = until - self._clock.boottime_ms()
            if rows or left <= 0:
                return grants_of(rows, claim, self._naming)
            self._store.wait(min(left, POLL_MS))

    def complete_and_claim(
        self, ending: Ending, request: ClaimRequest
    ) -> tuple[list[Row], list[Grant]]:
        """End leases and claim the next in one transaction; the repository's lock comes first."""
        claim = self._check(request)
        if request.repository is Reach.ANYWHERE and request.task is None:
            raise InvalidError(
                "Completing and claiming in one call needs one place to claim in.",
                next_step="Name the repository, or say that there is none.",
            )

        # What the ending answered, once it is committed and the claim goes on in a transaction of its own:
        # tried again with another branch's name, it would be answered as repeated.
        written: list[list[Row]] = []

        def either_way(claim: Claim) -> tuple[list[Row], list[GrantRow]]:
            if written:
                return written[0], self._claim_on(claim, patient=True) or []
            before = ending.short or ending.calls
            short = claim_short(self._store, self._marks, claim, before=before, must=True)
            if short is not None:
                return short[0][0], short[1]
            ended, got = self._store.write(
                partial(self._complete_first, ending=ending.calls, claim=claim)
            )
            if got.grants or got.behind is None:
                return ended, got.grants
            written.append(ended)
            return ended, self._claim_on(claim, patient=True, behind=got.behind) or []

        def again(tx: Transaction) -> tuple[list[Row], list[GrantRow]]:
            # As in the rule: a grant that this very call completes isn't handed out again.
            ended = written[0] if written else tx.batch(*ending.calls)[0]
            return ended, answer_again(tx.rows, claim)

        ended, granted = self._carefully(
            claim,
            either_way,
            lambda: self._store.write(again),
        )
        return ended, grants_of(granted, claim, self._naming)

    def acquire(
        self,
        request: ClaimRequest,
        *,
        asked: str,
        make: Callable[[Transaction], int],
        refuse: Callable[[Transaction, int], LessorError],
    ) -> Grant:
        """Make a task and claim it in one transaction, which is given up when it can't be had.

        Args:
            asked: what beside the request a repeat has to come with again.
            make: writes the task; its row.
            refuse: why it can't be had now, read before the transaction is given up.
        """
        claim = replace(self._check(request), asked=asked, begins_work=False)

        def rule(tx: Transaction, claim: Claim) -> list[GrantRow]:
            again = answer_again(tx.rows, claim)
            if again:
                return again
            if claim.repository:
                tx.rows("lock_repository", repository_id=claim.repository)
            task = make(tx)
            rank = int(tx.rows("task_wait", task_id=task)[0][4])
            only, got = replace(claim, only=(rank, task)), Claimed([], Behind(START))
            while got.behind and not got.behind.late and not got.grants:
                got = (
                    claim_locked(tx, only, marks=self._marks, patient=True, behind=got.behind)
                    or NOTHING
                )
            if not got.grants:
                raise refuse(tx, task)
            return got.grants

        rows = self._carefully(
            claim,
            lambda claim: self._store.write(partial(rule, claim=claim)),
            lambda: answer_again(self._store.read, claim),
        )
        return grants_of(rows, claim, self._naming)[0]

    def sweep(self, repository: str | None) -> list[LeaseRecord]:
        """End leases that ran out and drain those that ended, in one repository or everywhere."""
        rows = (
            [self._naming.repository_row(repository)]
            if repository is not None
            else [0, *(int(r[0]) for r in self._store.read("repositories"))]
        )
        ended: list[int] = []
        for row in rows:
            more = True
            while more:
                found, more = self._store.write(partial(_sweep, repository=row))
                ended.extend(found)
        self.changed()
        read = [LeaseRow._make(self._store.read("lease", lease_id=lease)[0]) for lease in ended]
        return [lease_record(self._naming, row, []) for row in read]

    def worker(self, worker: str) -> Worker:
        """The worker with this id, remembered; NotFoundError otherwise."""
        row = self._naming.worker_row(worker)
        known = self._workers.get(worker)
        if known is None:
            rows = self._store.read("worker", worker_id=row)
            if not rows:
                raise NotFoundError(
                    f"{worker} isn't registered.", next_step="Register a worker first."
                )
            known = worker_record(self._naming, WorkerRow._make(rows[0]))
            self._workers[worker] = known
        return known

    def forget_worker(self, worker: str) -> None:
        """Read the worker again next time."""
        self._workers.pop(worker, None)

    def changed(self) -> None:
        """Something may be ready that wasn't: scan from the beginning, and wake who waits."""
        self._marks.forget()
        self._store.notify()

    def _complete_first(
        self, tx: Transaction, *, ending: Sequence[Call], claim: Claim
    ) -> tuple[list[Row], Claimed]:
        if claim.repository:
            tx.rows("lock_repository", repository_id=claim.repository)
        ended = tx.batch(*ending)[0]
        if any(CompletedRow._make(row).wakes for row in ended):
            self._marks.forget()
        got = claim_locked(tx, claim, marks=self._marks, patient=True) or NOTHING
        return ended, got if got.grants else got._replace(grants=answer_again(tx.rows, claim))

    def _attempt(self, claim: Claim) -> list[GrantRow]:
        rows = self._carefully(claim, self._route, list[GrantRow])
        if not rows:
            self.forget_worker(claim.request.worker)  # it may have retired in another process
        return rows or answer_again(self._store.read, claim)

    def _carefully(
        self, claim: Claim, rule: Callable[[Claim], Answer], repeated: Callable[[], Answer]
    ) -> Answer:
        """Run `rule`; again, looking for free branch names, where a new one was another task's."""
        try:
            return rule(claim)
        except ConstraintError as error:
            if was_repeated(error):
                return repeated()
            if claim.careful or not is_taken(error):
                raise
        return self._carefully(replace(claim, careful=True), rule, repeated)

    def _route(self, claim: Claim) -> list[GrantRow]:
        """Claim where the first ready task is; busy repositories are passed over at first."""
        if claim.request.repository is not Reach.ANYWHERE or claim.only:
            return self._claim_in(claim, claim.repository, patient=True) or []
        heads = self._store.read(
            "heads",
            queue=claim.queue,
            agent=claim.worker.agent,
            kind=claim.worker.kind,
            capabilities=pack(claim.worker.capabilities),
        )
        busy: list[int] = []
        for place in [int(row[0]) for row in heads]:
            rows = self._claim_in(claim, place, patient=False)
            if rows:
                return rows
            if rows is None:
                busy.append(place)
        for place in busy:
            rows = self._claim_in(claim, place, patient=True)
            if rows:
                return rows
        return []

    def _claim_in(self, claim: Claim, repository: int, *, patient: bool) -> list[GrantRow] | None:
        here = claim if repository == claim.repository else replace(claim, repository=repository)
        short = claim_short(self._store, self._marks, here) if patient or repository == 0 else None
        if short is not None and short[1]:
            return short[1]
        return self._claim_on(here, patient=patient or repository == 0)

    def _claim_on(
        self, claim: Claim, *, patient: bool, behind: Behind | None = None
    ) -> list[GrantRow] | None:
        """Claim in one transaction after another, until one grants or has looked at everything.

        What the others left is parked meanwhile, or made ready, so each has less to look at.
        """
        while True:
            if behind is not None and behind.late:
                if not patient:
                    return None
                self._store.once("await_ended", repository_id=claim.repository)
            got = self._store.write(
                partial(
                    claim_locked, claim=claim, marks=self._marks, patient=patient, behind=behind
                )
            )
            if got is None or got.grants or got.behind is None:
                return None if got is None else got.grants
            behind = got.behind

    def _check(self, request: ClaimRequest) -> Claim:
        if type(request) is not ClaimRequest:
            raise InvalidError(
                "A claim has to be a ClaimRequest.", next_step="Make one with ClaimRequest(…)."
            )
        check_name(request.request_id, "request id")
        check_name(request.queue, "queue")
        check_count(request.wanted, "number wanted", low=1, high=MOST_WANTED)
        if len(check_text(request.secret, "secret", longest=1_000)) < SHORTEST_SECRET:
            raise InvalidError(
                "The request's secret is too short.", next_step="Make one with ids.new_token()."
            )
        worker = self.worker(request.worker)
        if worker.retired_ms is not None:
            raise InvalidError(f"{request.worker} has retired.", next_step="Register a new worker.")
        claim = Claim(
            request=request,
            worker=worker,
            worker_row=self._naming.worker_row(request.worker),
            terms=self._terms(request, worker),
            queue=request.queue,
            repository=self._place(request),
            only=None,
            first_token=token_of(request, 0),
        )
        return claim if request.task is None else self._for_task(claim, request.task)

    def _place(self, request: ClaimRequest) -> int:
        return (
            0
            if isinstance(request.repository, Reach)
            else self._naming.repository_row(request.repository)
        )

    def _for_task(self, claim: Claim, task: str) -> Claim:
        """The claim of one task, in its own queue and, where none is named, in its own repository."""
        row = self._naming.task_row(task)
        found = self._store.read("task_wait", task_id=row)
        if not found:
            raise NotFoundError(f"{task} isn't there.", next_step="List the tasks: lessor list.")
        wait = WaitRow._make(found[0])
        anywhere = claim.request.repository is Reach.ANYWHERE
        return replace(
            claim,
            queue=wait.queue,
            repository=wait.repository_id if anywhere else claim.repository,
            only=(wait.rank, row),
        )

    @staticmethod
    def _terms(request: ClaimRequest, worker: Worker) -> LeaseTerms:
        if request.max_hold_ms is not None:
            check_count(request.max_hold_ms, "longest hold in milliseconds", low=1, high=YEAR)
        usual = HEARTBEAT_TERMS if worker.heartbeat else MANUAL_TERMS
        if request.ttl_ms is None and request.max_hold_ms is None:
            return usual
        ttl = usual.ttl_ms if request.ttl_ms is None else request.ttl_ms
        return terms_for(ttl, max_hold_ms=request.max_hold_ms)


def _sweep(tx: Transaction, *, repository: int) -> tuple[list[int], bool]:
    """The leases that were ended, and whether there may be more to end or to drain."""
    here = {"repository_id": repository}
    _, lapsed = tx.batch(
        ("lock_repository", here), ("lapsed_leases", {**here, "most": MOST_WANTED})
    )
    rows = [LapsedRow._make(row) for row in lapsed]
    if rows:
        end_lapsed(tx, rows)
    drained = tx.rows("drain", repository_id=repository, most=MOST_WANTED, wake=WIDEST)
    survey = SurveyRow._make(drained[0])
    if survey.drained:
        tx.rows("turn_repository", repository_id=repository)
    return [row.lease_id for row in rows], len(rows) == MOST_WANTED or bool(survey.undrained)
