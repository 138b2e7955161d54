"""Operations on intents: a publish is announced before the push and settled after it.

The holder announces and settles, guarded by its proof. An intent that a dead holder left is
settled by whoever fenced the remote and read it; the task that waited for that moves on by the
recovery rules. Settling once is for good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

from lessor.errors import InvalidError, NotFoundError, TransitionRefusedError
from lessor.ids import token_hash
from lessor.model.intent import Intent, IntentKind, Outcome, Publish
from lessor.model.lease import Holder, LeaseEnd, is_live
from lessor.model.lifecycle import TaskEvent, TaskState, next_state
from lessor.model.recovery import decide_recovery
from lessor.model.retry import RetryPolicy
from lessor.service.fences import FenceState
from lessor.service.lapsing import ended_lease, move_to
from lessor.service.naming import Naming
from lessor.service.proof import held, lock_holder, lock_pusher
from lessor.service.publish_rows import FenceRefRow, IntentRow
from lessor.service.reading import repository_record
from lessor.service.rows import LockedRow, pack, pack_facts, unpack
from lessor.service.wording import LONGEST_TEXT, check_count, check_note, check_text
from lessor.store import RetryRule, Store, Transaction

MOST_UNSETTLED = 100
LONGEST_RESPONSE = 8_000
_EVENTS = {
    Outcome.DONE: "published",
    Outcome.FAILED: "not published",
    Outcome.CONFLICT: "publish in conflict",
}


class Intents:
    """A refusal raises and changes nothing."""

    def __init__(
        self, store: Store, naming: Naming, *, policy: RetryPolicy, changed: Callable[[], None]
    ) -> None:
        """Begin.

        Args:
            store: where they are kept.
            naming: its ids.
            policy: how often a task may fail the same way.
            changed: called when something may have become ready.
        """
        self._store = store
        self._naming = naming
        self._policy = policy
        self._changed = changed

    def announce(self, holder: Holder, publish: Publish, *, secret: str) -> int:
        """Record a push that is about to be made; the intent's number.

        Args:
            secret: by which the push shows that it is the announced one; only its hash is kept.

        Raises:
            LeaseLostError: the caller isn't the live holder.
            InvalidError: its task has no repository.
            TransitionRefusedError: an earlier push of this lease isn't settled, or the repository
                is fenced and the lease isn't ready at its remote.
        """
        _check(publish)
        check_text(secret, "secret", longest=LONGEST_TEXT, empty=False)

        def rule(tx: Transaction) -> int:
            row = lock_pusher(tx, self._naming, holder)
            if row.unsettled:
                raise TransitionRefusedError(
                    "Nobody knows yet what became of this task's last push.",
                    next_step="Run `lessor push` again: it asks the remote first.",
                    task=holder.task,
                )
            self._refuse_unready(tx, row, publish)
            made = tx.rows(
                "add_intent",
                kind=IntentKind.PUBLISH,
                repository_id=row.repository_id,
                task_id=row.task_id,
                lease_id=row.lease_id,
                epoch=row.epoch,
                target=f"{publish.remote} {publish.ref}",
                facts=pack_facts(**asdict(publish)),
                secret_hash=token_hash(secret),
            )
            _note(tx, row.task_id, row.epoch, "publishing", publish)
            return int(made[0][0])

        return held(self._store, self._naming, holder, rule, verb="published")

    def settle(
        self,
        holder: Holder,
        intent: int,
        outcome: Outcome,
        *,
        response: str = "",
        fence: str | None = None,
    ) -> None:
        """Record what became of the holder's own push.

        Args:
            response: what the remote said.
            fence: the value that the lease's fence reference has now. It is taken while the one
                on record is this push's own: another process of the holder may have got further.

        Raises:
            LeaseLostError: the caller isn't the live holder; whoever recovers the push settles it.
            NotFoundError: this lease has announced no such push.
        """
        _check_outcome(outcome)
        if fence is not None:
            check_text(fence, "fence", longest=LONGEST_TEXT, empty=False)

        def rule(tx: Transaction) -> None:
            row = lock_holder(tx, self._naming, holder)
            found = _found(tx, intent)
            if found.lease_id != row.lease_id:
                raise _missing(intent)
            publish = _publish(found)
            if fence is not None and _is_last(tx, row, publish):
                tx.rows(
                    "move_fence_ref",
                    lease_id=row.lease_id,
                    remote=publish.remote,
                    oid=fence,
                    state=FenceState.OPEN,
                )
            _settle(tx, found, outcome, response)

        held(self._store, self._naming, holder, rule, verb="recorded as published")

    def recover(self, intent: int, outcome: Outcome, *, response: str) -> None:
        """Record what became of a push whose lease has ended, once the remote was fenced and read.

        A task that waited for this goes where the recovery rules say; one in conflict waits for a
        person. Said again, it changes nothing.

        Raises:
            NotFoundError: there is no such push.
            TransitionRefusedError: its lease hasn't ended: its holder settles it.
        """
        _check_outcome(outcome)

        def rule(tx: Transaction) -> None:
            found = _found(tx, intent)
            if found.settled_ms is not None:
                return
            # Nobody's proof: only the facts of the lease, locked before the task.
            nobody = {"ord": 0, "worker_id": 0, "token_hash": ""}
            asked = {**nobody, "task_id": found.task_id, "epoch": found.epoch}
            row = LockedRow._make(tx.rows("lock_leases", rows=pack([asked]))[0])
            if row.end_reason is None:
                raise TransitionRefusedError(
                    f"#{found.number} is still held: its holder says what became of its push.",
                    next_step=f"See who that is: lessor why {found.number}.",
                    task=self._naming.task(found.task_id),
                )
            _settle(tx, found, outcome, response)
            if outcome is not Outcome.CONFLICT:
                _move_on(tx, row, same_limit=self._policy.same_error_limit)

        self._store.write(rule)
        self._changed()

    def unsettled(self, repository: str, *, after: int = 0) -> list[Intent]:
        """The pushes of ended leases that nobody knows the outcome of, oldest first; no more than some.

        Args:
            after: the number of the last one that was listed before.
        """
        check_count(after, "number of an intent", low=0, high=2**62)
        row = self._naming.repository_row(repository)
        rows = self._store.read(
            "unsettled_intents", repository_id=row, after=after, most=MOST_UNSETTLED
        )
        return [self._record(IntentRow._make(found)) for found in rows]

    def of_task(self, task: str) -> list[Intent]:
        """What was announced for a task, oldest first."""
        rows = self._store.read("task_intents", task_id=self._naming.task_row(task))
        return [self._record(IntentRow._make(found)) for found in rows]

    def shown(self, intent: int, secret: str) -> Intent | None:
        """The push that was announced with this number and secret; None where none was."""
        check_count(intent, "number of an intent", low=0, high=2**62)
        check_text(secret, "secret", longest=LONGEST_TEXT)
        rows = self._store.read("intent", intent_id=intent)
        if not rows or IntentRow._make(rows[0]).secret_hash != token_hash(secret):
            return None
        return self._record(IntentRow._make(rows[0]))

    def _refuse_unready(self, tx: Transaction, row: LockedRow, publish: Publish) -> None:
        (known,) = tx.rows("repository_by_id", repository_id=row.repository_id)
        fenced_at = repository_record(self._naming, known).fence_remote
        if fenced_at is None:
            return
        found = tx.rows("fence_ref", lease_id=row.lease_id, remote=publish.remote)
        fence = FenceRefRow._make(found[0]) if found else None
        is_open = (
            publish.remote == fenced_at and fence is not None and fence.state == FenceState.OPEN
        )
        if not is_open or publish.fence is None or publish.next_fence in {None, publish.fence}:
            raise TransitionRefusedError(
                f"The lease isn't ready at {fenced_at}: its fence reference isn't open there.",
                next_step="Push with `lessor push`: it makes the lease ready first.",
                remote=fenced_at,
            )
        if fence is not None and fence.oid != publish.fence:
            raise TransitionRefusedError(
                f"Another process has pushed to {fenced_at} under this lease meanwhile.",
                next_step="Run `lessor push` again: it goes on from there.",
                remote=fenced_at,
            )

    def _record(self, row: IntentRow) -> Intent:
        return Intent(
            id=row.id,
            task=self._naming.task(row.task_id),
            number=row.number,
            lease=self._naming.lease(row.lease_id),
            epoch=row.epoch,
            publish=_publish(row),
            announced_ms=row.announced_ms,
            settled_ms=row.settled_ms,
            outcome=Outcome(row.outcome) if row.outcome else None,
            response=row.response,
            over=row.ended_ms is not None,
            live=is_live(now=row.now, expires_ms=row.expires_ms, ended_ms=row.ended_ms),
            end=LeaseEnd(row.end_reason) if row.end_reason else None,
            age_ms=row.now - row.announced_ms,
        )


def _check(publish: Publish) -> None:
    if type(publish) is not Publish:
        raise InvalidError("A publish has to be a Publish.", next_step="Make one with Publish(…).")
    for value, what in ((publish.remote, "remote"), (publish.ref, "ref"), (publish.new, "new")):
        check_text(value, what, longest=LONGEST_TEXT, empty=False)
    for name in ("old", "fence", "next_fence"):
        if getattr(publish, name) is not None:
            check_text(getattr(publish, name), name, longest=LONGEST_TEXT, empty=False)


def _check_outcome(outcome: Outcome) -> None:
    if type(outcome) is not Outcome:
        raise InvalidError(
            "What became of a push has to be an Outcome.",
            next_step=f"Say one of: {', '.join(Outcome)}.",
        )


def _found(tx: Transaction, intent: int) -> IntentRow:
    check_count(intent, "number of an intent", low=1, high=2**62)
    rows = tx.rows("intent", intent_id=intent)
    if not rows:
        raise _missing(intent)
    return IntentRow._make(rows[0])


def _is_last(tx: Transaction, row: LockedRow, publish: Publish) -> bool:
    """Whether the fence reference on record is where this push found it, or where it moved it to."""
    found = tx.rows("fence_ref", lease_id=row.lease_id, remote=publish.remote)
    known = FenceRefRow._make(found[0]).oid if found else None
    return known in {publish.fence, publish.next_fence}


def _missing(intent: int) -> NotFoundError:
    return NotFoundError(
        f"There is no intent {intent} of this lease.", next_step="Announce it before the push."
    )


def _publish(row: IntentRow) -> Publish:
    return Publish(**unpack(row.facts))


def _settle(tx: Transaction, found: IntentRow, outcome: Outcome, response: str) -> None:
    check_note(response, "response")
    said = response[:LONGEST_RESPONSE]
    settled = tx.rows("settle_intent", intent_id=found.id, outcome=outcome, response=said)
    if settled:
        _note(tx, found.task_id, found.epoch, _EVENTS[outcome], _publish(found), said=said)


def _note(tx: Transaction, task: int, epoch: int, kind: str, publish: Publish, **more: str) -> None:
    facts = pack_facts(remote=publish.remote, ref=publish.ref, commit=publish.new, **more)
    tx.rows("append_event", task_id=task, kind=kind, epoch=epoch, facts=facts)


def _move_on(tx: Transaction, row: LockedRow, *, same_limit: int) -> None:
    """Move a task that was reconciling only because of the push: by the rule that else had decided.

    What its holder had said of the end counts as it did then: that it failed the same way as before, or
    for want of a credential, which is what a push fails of most of all.
    """
    (task,) = tx.rows("lock_tasks", tasks=pack([row.task_id]))
    unsettled = (IntentRow._make(r) for r in tx.rows("task_intents", task_id=row.task_id))
    if task[1] != TaskState.RECONCILING or any(r.settled_ms is None for r in unsettled):
        return
    end = LeaseEnd(row.end_reason or "")
    said = tx.rows("end_facts", task_id=row.task_id, epoch=row.epoch, kind=end)
    facts = ended_lease(
        row,
        end=end,
        same_errors=row.same_errors if end is LeaseEnd.FAILED else 0,
        same_limit=same_limit,
        credential=bool(said) and "credential" in unpack(said[0][0]),
    )
    rule = decide_recovery(replace(facts, charged=row.charged, unsettled_unsafe=False))
    if rule.event is TaskEvent.SUSPECT:
        return
    # As its lease's end had led there. From here on a person may not block it: that would be an end to
    # the look that it waits for.
    state = next_state(TaskState.RUNNING, rule.event)
    moved = {
        "task_id": row.task_id,
        "from_status": TaskState.RECONCILING,
        **move_to(state, now=row.now),
        "charged": None,
        "kind": "recovered",
        "facts": pack_facts(rule=rule.name, state=state),
    }
    if len(tx.rows("move_tasks", rows=pack([moved]), at_ms=row.now)) != 1:
        raise RetryRule
