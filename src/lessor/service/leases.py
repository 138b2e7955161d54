"""Operations on leases: claim, renew, complete, give back, widen, look."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TypeVar

from lessor.errors import ConstraintError, InvalidError, LeaseLostError
from lessor.ids import Chance
from lessor.model.grant import ClaimRequest, Ended, Failure, Grant, Renewed, Result
from lessor.model.label import MAX_EPOCH
from lessor.model.lease import Holder, LeaseEnd
from lessor.model.lifecycle import TaskState
from lessor.model.retry import RetryPolicy
from lessor.model.scope import MAX_SCOPES, Mode, parse_scopes
from lessor.model.task import NewTask
from lessor.model.waiting import Held
from lessor.service import (
    acquiring,
    branches,
    checking,
    completing,
    deciding,
    ending,
    holding,
    reading,
    rebranching,
    requests,
)
from lessor.service.admitting import Admission, admit, no_packages
from lessor.service.claims import Claims
from lessor.service.naming import Naming
from lessor.service.proof import guard, held
from lessor.service.registry import path_rules, path_rules_of
from lessor.service.results import check_failure, pack_result
from lessor.service.rows import LeaseRow
from lessor.service.scopes import confined, conflicting, held_by, widen
from lessor.service.tasks import Tasks
from lessor.service.wording import (
    LONGEST_TEXT,
    check_count,
    check_note,
    check_page,
    check_several,
    check_text,
)
from lessor.store import Row, Store, Transaction

T = TypeVar("T")


class Leases:
    """A refusal raises and changes nothing; what a refused ending brought is kept as evidence."""

    def __init__(
        self,
        store: Store,
        naming: Naming,
        claims: Claims,
        tasks: Tasks,
        *,
        policy: RetryPolicy,
        chance: Chance,
    ) -> None:
        self._store = store
        self._naming = naming
        self._claims = claims
        self._tasks = tasks
        self._policy = policy
        self._chance = chance

    def claim(self, request: ClaimRequest, *, wait_ms: int = 0) -> list[Grant]:
        """Claim up to `request.wanted` tasks; an empty list when there is nothing.

        Args:
            wait_ms: how long to wait for something to claim.

        Raises:
            RequestReusedError: the request id came with another request before.
            GrantOverError: the request was answered, and what it was granted has ended.
        """
        return self._claims.claim(request, wait_ms=wait_ms)

    def complete_and_claim(
        self, items: Sequence[tuple[Holder, Result]], request: ClaimRequest
    ) -> tuple[list[Ended | LeaseLostError], list[Grant]]:
        """End leases with their results and claim the next, in one transaction: one commit a task.

        A repeat gets the same answers; its grants as `claim` gives them again.
        """
        grants: list[Grant] = []

        def first(ending: completing.Ending) -> list[Row]:
            rows, granted = self._claims.complete_and_claim(ending, request)
            grants.extend(granted)
            return rows

        ended = completing.complete(
            self._store, self._naming, items, changed=self._claims.changed, first=first
        )
        return ended, grants

    def acquire(
        self,
        task: NewTask,
        *,
        worker: str,
        ttl_ms: int | None = None,
        max_hold_ms: int | None = None,
        request_id: str = "",
        secret: str = "",
    ) -> Grant:
        """Lease paths without a queued task: it is made and claimed at once, or refused.

        Args:
            secret: from which the token is derived. A retry needs the same `request_id` and
                `secret`; without one of them each call is a new request.

        Raises:
            ScopeHeldError: a live grant overlaps; nothing was made.
            ConflictError: it can't be had now for another reason.
        """
        return acquiring.acquire(
            self._claims,
            self._naming,
            task,
            path_rules_of(self._store, self._naming, _checked(task)),
            worker=worker,
            ttl_ms=ttl_ms,
            max_hold_ms=max_hold_ms,
            request_id=request_id,
            secret=secret,
        )

    def renew(
        self, holders: Sequence[Holder], *, request_id: str = ""
    ) -> list[Renewed | LeaseLostError]:
        """Renew leases for another term; refusals are answered in their places."""
        return ending.renew(self._store, self._naming, holders, request_id=request_id)

    def renew_one(self, holder: Holder, *, request_id: str = "") -> Renewed:
        """Renew one lease; LeaseLostError when it is refused."""
        return _only(self.renew([holder], request_id=request_id))

    def complete(self, items: Sequence[tuple[Holder, Result]]) -> list[Ended | LeaseLostError]:
        """End leases with their results; refusals are answered in their places, their results kept."""
        return completing.complete(self._store, self._naming, items, changed=self._claims.changed)

    def complete_one(self, holder: Holder, result: Result) -> Ended:
        """End one lease with its result; LeaseLostError when it is refused."""
        return _only(self.complete([(holder, result)]))

    def fail(self, holder: Holder, failure: Failure) -> Ended:
        """End a lease because the attempt failed; the recovery rules say what follows."""
        check_failure(failure)
        result = replace(_kept(failure.result), error=failure.error)
        return self._stop(
            holder,
            ending.Stop(
                end=LeaseEnd.FAILED, verb="failed", result=pack_result(result), failure=failure
            ),
        )

    def release(self, holder: Holder, *, reason: str = "") -> Ended:
        """Give a lease back unfinished; no attempt is spent."""
        return self._stop(
            holder,
            ending.Stop(
                end=LeaseEnd.RELEASED, verb="released", result=pack_result(Result(said=reason))
            ),
        )

    def ask(self, holder: Holder, question: str, *, result: Result | None = None) -> Ended:
        """End a lease with a question for a person; its paths stay held for four hours."""
        check_text(question, "question", longest=LONGEST_TEXT, empty=False)
        kept = replace(_kept(result), said=question)
        return self._stop(
            holder,
            ending.Stop(
                end=LeaseEnd.ASKED,
                verb="handed to a person",
                result=pack_result(kept),
                question=question,
            ),
        )

    def force_release(
        self, task: str, *, actor: str, reason: str, checked: str, request_id: str = ""
    ) -> deciding.Decided:
        """End somebody else's lease; a person's decision, kept with what they checked."""
        for text, what in ((actor, "actor"), (reason, "reason"), (checked, "what was checked")):
            check_note(text, what)
        return self._decided(
            actor,
            request_id,
            ["force_release", task, reason, checked],
            lambda tx: deciding.force_release(
                tx, self._naming, task, actor=actor, reason=reason, checked=checked
            ),
        )

    def end_gone(
        self, task: str, *, epoch: int, proof: str, actor: str = "", request_id: str = ""
    ) -> deciding.Decided:
        """End a lease whose process tree is proved gone; only its host's own witness may say so."""
        check_count(epoch, "epoch", low=1, high=MAX_EPOCH)
        check_text(proof, "proof", longest=LONGEST_TEXT, empty=False)
        return self._decided(
            actor,
            request_id,
            ["end_gone", task, epoch, proof],
            lambda tx: deciding.end_gone(tx, self._naming, task, epoch=epoch, proof=proof),
        )

    def acknowledge(self, holder: Holder) -> str:
        """Say that the end of the lease was noticed and work has stopped; why it ended."""
        return holding.acknowledge(self._store, self._naming, holder)

    def watch(self, holder: Holder) -> holding.Watched:
        """Whether the lease is still the caller's; reads only."""
        return holding.watch(self._store, self._naming, holder)

    def widen(
        self,
        holder: Holder,
        paths: Sequence[str],
        *,
        mode: Mode = Mode.WRITE,
        since_start: bool = False,
        request_id: str = "",
    ) -> int:
        """Add paths to a lease that nobody else holds; the new fence.

        A repeat with the same `request_id` gets the first answer.

        Raises:
            ScopeHeldError: somebody else holds one of them (or took it since the lease began, with
                `since_start`), or the task is strict; nothing was added.
            LeaseLostError: the caller isn't the live holder.
        """
        shown = guard(self._naming, holder)
        named = check_several(paths, "paths", most=MAX_SCOPES)
        for path in named:
            check_text(path, "path", longest=LONGEST_TEXT)
        if not isinstance(mode, Mode):
            raise InvalidError(f"{str(mode)[:40]!r} is no mode.", next_step="Read or write.")
        task = self._tasks.task(holder.task)
        if task.strict:
            raise confined(task, named)
        if task.repository is None:
            raise InvalidError(
                "The task has no repository, so its lease has no paths.",
                next_step="Leave the paths out.",
            )
        repository = self._naming.repository_row(task.repository)
        scopes = parse_scopes(named, mode=mode, rules=path_rules(self._store, repository))
        asked = requests.digest("widen", [shown, list(named), mode, since_start])
        once = partial(requests.once, self._store, holder.worker, request_id, asked)
        (fence,) = held(
            self._store,
            self._naming,
            holder,
            lambda tx: [
                widen(
                    tx, self._naming, holder, scopes, repository=repository, since_start=since_start
                )
            ],
            verb="widened",
            write=once if request_id else None,
        )
        return int(fence)

    def move_branch(self, holder: Holder, branch: str, *, why: str) -> tuple[str, str]:
        """Go on on another branch, as the task's own can't be handed on; the name and the label.

        The name gets a number where another unfinished task has it. What is on the old branch stays
        there; bringing it along is the caller's.

        Raises:
            BranchInvalidError: it can't be a task's branch.
            InvalidError: the task has none.
            LeaseLostError: the caller isn't the live holder.
        """
        rebranching.check_wanted(branch, why)

        def once() -> tuple[str, str]:
            return held(
                self._store,
                self._naming,
                holder,
                lambda tx: rebranching.move_branch(tx, self._naming, holder, branch, why=why),
                verb="given another branch",
            )

        try:
            return once()
        except ConstraintError as error:
            if not branches.is_taken(error):
                raise
            return once()  # now the name is seen to be another's

    def admit(
        self,
        holder: Holder,
        paths: Sequence[str],
        *,
        packages: Callable[[], Collection[str]] = no_packages,
        verb: str = "committed",
    ) -> Admission:
        """Whether the lease may have these paths, all or none; see `admitting`.

        Raises:
            LeaseLostError: the caller isn't the live holder.
        """
        return admit(self._store, self._naming, holder, paths, packages=packages, verb=verb)

    def who(self, path: str, *, repository: str) -> list[Held]:
        """Who holds or has reserved `path`, or something below it."""
        row = self._naming.repository_row(repository)
        check_text(path, "path", longest=LONGEST_TEXT)
        scopes = parse_scopes([path], rules=path_rules(self._store, row))
        hits = [
            hit for _, hit in conflicting(self._store.read, scopes, repository=row, reserved=True)
        ]
        leases = {
            hit.lease_id: [h.text for h in hits if h.lease_id == hit.lease_id] for hit in hits
        }
        return [
            held_by(
                self._naming, LeaseRow._make(self._store.read("lease", lease_id=lease)[0]), paths
            )
            for lease, paths in sorted(leases.items())
        ]

    def leases(
        self, *, task: str = "", repository: str | None = None, live: bool = False, most: int = 1000
    ) -> list[reading.LeaseRecord]:
        """Leases of a task, of a repository or of all, oldest first."""
        return reading.read_leases(
            self._store,
            self._naming,
            task=self._naming.task_row(task) if task else 0,
            repository=self._naming.repository_row(repository) if repository else -1,
            live=live,
            most=check_page(most),
        )

    def lease(self, lease: str) -> reading.LeaseRecord:
        """The lease with this id; NotFoundError otherwise."""
        return reading.read_lease(self._store, self._naming, lease)

    def sweep(self, *, repository: str | None = None) -> list[reading.LeaseRecord]:
        """End what ran out, now; every claim does it too. The leases that were ended."""
        return self._claims.sweep(repository)

    def _decided(
        self,
        actor: str,
        request_id: str,
        asked: list[object],
        rule: Callable[[Transaction], deciding.Decided],
    ) -> deciding.Decided:
        digest = requests.digest("decide", asked)
        answer = requests.once(
            self._store, actor, request_id, digest, lambda tx: [asdict(rule(tx))]
        )
        self._claims.changed()
        return deciding.Decided(task=answer[0]["task"], state=TaskState(answer[0]["state"]))

    def _stop(self, holder: Holder, how: ending.Stop) -> Ended:
        return ending.stop(
            self._store,
            self._naming,
            holder,
            how,
            policy=self._policy,
            chance=self._chance,
            changed=self._claims.changed,
        )


def _checked(task: NewTask) -> list[NewTask]:
    checking.check_tasks([task])
    return [task]


def _kept(result: Result | None) -> Result:
    if result is None:
        return Result()
    pack_result(result)
    return result


def _only(answers: Sequence[T | LeaseLostError]) -> T:
    answer = answers[0]
    if isinstance(answer, LeaseLostError):
        raise answer
    return answer
