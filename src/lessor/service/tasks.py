"""Operations on tasks: submit, look, decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from lessor.errors import ConstraintError, NotFoundError
from lessor.model.lifecycle import TaskState
from lessor.model.path import DEFAULT_RULES
from lessor.model.task import NewTask, Submitted, Task
from lessor.model.waiting import Why
from lessor.service import (
    amending,
    branches,
    checking,
    deciding,
    reading,
    requests,
    submitting,
    waiting,
)
from lessor.service.claims import Claims
from lessor.service.naming import Naming
from lessor.service.registry import path_rules, path_rules_of
from lessor.service.rows import pack
from lessor.service.wording import (
    LONGEST_PROMPT,
    check_count,
    check_name,
    check_note,
    check_page,
    check_several,
    check_text,
)
from lessor.store import Store, Transaction

MAX_ROW = 2**62 - 1
MOST_BRANCHES = 10_000


class Tasks:
    """A refusal raises and changes nothing.

    Operations that take a `request_id` can be repeated with it: the same request gets the same
    answer, another one is refused.
    """

    def __init__(self, store: Store, naming: Naming, claims: Claims) -> None:
        self._store = store
        self._naming = naming
        self._claims = claims

    def submit(
        self, tasks: Sequence[NewTask], *, submitter: str = "", request_id: str = ""
    ) -> list[Submitted]:
        """Add tasks, all or none, in one transaction.

        Raises:
            ConflictError: an unfinished task of the repository has the branch that one asks for.
            TransitionRefusedError: one needs a task that can't succeed any more.
        """
        checking.check_tasks(tasks)
        checking.refuse_ad_hoc(tasks)
        check_note(submitter, "submitter")
        digest = requests.digest("submit", [asdict(task) for task in tasks])
        try:
            answer = self._once(
                submitter,
                request_id,
                digest,
                lambda tx: self._submit(tx, tasks, submitter=submitter),
            )
        except ConstraintError as error:
            raise branches.taken(self._store, self._naming, tasks, error) from error
        return [Submitted(**row) for row in answer]

    def submit_within(
        self, connection: Any, tasks: Sequence[NewTask], *, submitter: str = ""
    ) -> list[Submitted]:
        """Add tasks in the caller's own open transaction: they exist exactly when it commits.

        The commit also wakes the claims that wait for work. A refusal leaves the transaction as it was before the call.

        Args:
            connection: a psycopg or apsw connection to this store's database, in a transaction.
        """
        checking.check_tasks(tasks)
        checking.refuse_ad_hoc(tasks)
        check_note(submitter, "submitter")
        self._claims.changed()
        try:
            with self._store.join(connection) as tx:
                return [Submitted(**row) for row in self._submit(tx, tasks, submitter=submitter)]
        except ConstraintError as error:
            raise branches.taken(self._store, self._naming, tasks, error) from error

    def task(self, task: str) -> Task:
        """The task with this id; NotFoundError otherwise."""
        return reading.read_tasks(self._store, self._naming, [self._naming.task_row(task)])[0]

    def task_numbered(self, number: int, *, repository: str | None) -> Task:
        """The task that people call #number; NotFoundError otherwise."""
        row = self._naming.repository_row(repository) if repository else 0
        check_count(number, "number", low=0, high=MAX_ROW)
        found = self._store.read("task_by_number", repository_id=row, number=number)
        if not found:
            raise NotFoundError(
                f"There is no #{number} here.",
                next_step="List the tasks: lessor list.",
                number=number,
            )
        return reading.read_tasks(self._store, self._naming, [int(found[0][0])])[0]

    def tasks(
        self,
        *,
        repository: str | None = None,
        everywhere: bool = False,
        queue: str = "",
        states: Sequence[str] = (),
        before: str = "",
        most: int = 100,
    ) -> list[Task]:
        """Tasks, newest first; `before` goes on from an earlier page's last."""
        row = self._naming.repository_row(repository) if repository else (-1 if everywhere else 0)
        found = self._store.read(
            "list_tasks",
            repository_id=row,
            queue=check_note(queue, "queue"),
            states=pack(
                [check_note(s, "state") for s in check_several(states, "states", most=100)]
            ),
            before=self._naming.task_row(before) if before else 0,
            most=check_page(most),
        )
        return reading.read_tasks(self._store, self._naming, [int(r[0]) for r in found])

    def open_tasks(self, *, repository: str | None, most: int = 1000) -> list[Task]:
        """Unfinished tasks, oldest first."""
        row = self._naming.repository_row(repository) if repository else 0
        found = self._store.read("list_open_tasks", repository_id=row, most=check_page(most))
        return reading.read_tasks(self._store, self._naming, [int(r[0]) for r in found])

    def with_keys(self, keys: Sequence[str], *, repository: str | None) -> list[Task]:
        """The newest task of each unique key, finished or not; a key that none has is left out."""
        row = self._naming.repository_row(repository) if repository else 0
        named = [
            check_name(key, "unique key")
            for key in check_several(keys, "keys", most=checking.MOST_TASKS)
        ]
        found = self._store.read("newest_by_key", repository_id=row, keys=pack(named))
        return reading.read_tasks(self._store, self._naming, [int(r[0]) for r in found])

    def newest_on(self, branches: Sequence[str], *, repository: str | None) -> list[Task]:
        """The newest task of each branch, finished or not, oldest first; a branch that none has is left out."""
        row = self._naming.repository_row(repository) if repository else 0
        named = [
            check_name(branch, "branch")
            for branch in check_several(branches, "branches", most=MOST_BRANCHES)
        ]
        found = self._store.read("newest_on_branches", repository_id=row, branches=pack(named))
        return reading.read_tasks(self._store, self._naming, [int(r[0]) for r in found])

    def open_with_keys(
        self, beginning: str, *, repository: str | None, most: int = 1000
    ) -> list[Task]:
        """Unfinished tasks whose unique keys begin so, oldest first."""
        row = self._naming.repository_row(repository) if repository else 0
        first = check_name(beginning, "beginning of a key")
        found = self._store.read(
            "open_by_key",
            repository_id=row,
            first=first,
            behind=first[:-1] + chr(ord(first[-1]) + 1),
            most=check_page(most),
        )
        return reading.read_tasks(self._store, self._naming, [int(r[0]) for r in found])

    def ready(
        self, *, repository: str | None, queue: str = "default", most: int = 100
    ) -> list[Task]:
        """What a claim would look at, in its order."""
        row = self._naming.repository_row(repository) if repository else 0
        found = self._store.read(
            "ready_tasks",
            queue=check_name(queue, "queue"),
            repository_id=row,
            most=check_page(most),
        )
        return reading.read_tasks(self._store, self._naming, [int(r[0]) for r in found])

    def overdue(self, *, repository: str | None, most: int = 100) -> list[Task]:
        """Queued tasks that have waited longer than their queue allows."""
        row = self._naming.repository_row(repository) if repository else 0
        return reading.read_tasks(
            self._store,
            self._naming,
            [
                int(r[0])
                for r in self._store.read("overdue", repository_id=row, most=check_page(most))
            ],
        )

    def counts(self, *, repository: str | None = None, everywhere: bool = False) -> dict[str, int]:
        """How many tasks are in each state."""
        row = self._naming.repository_row(repository) if repository else (-1 if everywhere else 0)
        return {
            str(s): int(n) for s, n in self._store.read("count_tasks", repository_id=row, queue="")
        }

    def needs(self, task: str) -> list[str]:
        """Ids of the tasks that this one needs."""
        row = self._naming.task_row(task)
        found = self._store.read("needs", task_id=row)
        if not found:
            self.task(task)  # none, or no such task
        return [self._naming.task(r[0]) for r in found]

    def taken(self, task: str) -> list[str]:
        """Of a task's paths those that its leases were widened over; it was submitted without them."""
        rows = self._store.read("task_scopes", tasks=pack([self._naming.task_row(task)]))
        return [text for _, _, text, _, _, _, widened in rows if widened]

    def why(self, task: str) -> Why:
        """Why a task is where it is, in one sentence."""
        return waiting.why(self._store, self._naming, self._naming.task_row(task))

    def history(self, task: str, *, after: int = 0, most: int = 1000) -> list[reading.HistoryEntry]:
        """A task's changes, oldest first."""
        found = reading.read_history(
            self._store,
            self._naming.task_row(task),
            after=check_count(after, "number", low=0, high=MAX_ROW),
            most=check_page(most),
        )
        if not found:
            self.task(task)  # nothing after that number, or no such task
        return found

    def amend(self, task: str, changed: NewTask, *, actor: str = "", request_id: str = "") -> Task:
        """Change what a queued task asks for: `AMENDABLE` fields, all of them; the others stay.

        Raises:
            InvalidError: `changed` asks for another value of a field that stays; the error names it.
            TransitionRefusedError: the task isn't queued, or a need can't succeed any more.
            CycleError: it would wait for itself.
        """
        checking.check_task(changed)
        known = self.task(task)
        amending.refuse_fixed(known, changed)
        row = self._naming.repository_row(known.repository) if known.repository else 0
        rules = path_rules(self._store, row) if row else DEFAULT_RULES

        def rule(tx: Transaction) -> list[Any]:
            amending.amend(tx, self._naming, task, changed, actor=actor, rules=rules)
            return []

        digest = requests.digest("amend", [task, asdict(changed)])
        self._once(actor, request_id, digest, rule)
        return self.task(task)

    def cancel(
        self, tasks: Sequence[str], *, actor: str = "", reason: str = "", request_id: str = ""
    ) -> list[deciding.Decided]:
        """End tasks for good; live leases are revoked at once."""
        return self._decided(
            "cancel",
            tasks,
            actor,
            reason,
            request_id,
            lambda tx: deciding.cancel(tx, self._naming, tasks, actor=actor, reason=reason),
        )

    def block(
        self, tasks: Sequence[str], *, actor: str = "", reason: str = "", request_id: str = ""
    ) -> list[deciding.Decided]:
        """Keep tasks from being claimed."""
        return self._decided(
            "block",
            tasks,
            actor,
            reason,
            request_id,
            lambda tx: deciding.block(tx, self._naming, tasks, actor=actor, reason=reason),
        )

    def unblock(
        self, tasks: Sequence[str], *, actor: str = "", reason: str = "", request_id: str = ""
    ) -> list[deciding.Decided]:
        """Let blocked tasks be claimed again."""
        return self._decided(
            "unblock",
            tasks,
            actor,
            reason,
            request_id,
            lambda tx: deciding.unblock(tx, self._naming, tasks, actor=actor, reason=reason),
        )

    def requeue(
        self,
        tasks: Sequence[str],
        *,
        actor: str = "",
        reason: str = "",
        addition: str = "",
        request_id: str = "",
    ) -> list[deciding.Decided]:
        """Queue tasks again, with `addition` appended to what they ask."""
        return self._decided(
            "requeue",
            tasks,
            actor,
            reason,
            request_id,
            lambda tx: deciding.requeue(
                tx, self._naming, tasks, actor=actor, reason=reason, addition=addition
            ),
            addition=addition,
        )

    def answer(
        self, task: str, text: str, *, actor: str = "", request_id: str = ""
    ) -> list[deciding.Decided]:
        """Answer a task's question; it is queued again."""
        return self._decided(
            "answer",
            [task],
            actor,
            text,
            request_id,
            lambda tx: deciding.answer(tx, self._naming, task, actor=actor, text=text),
        )

    def _submit(
        self, tx: Transaction, tasks: Sequence[NewTask], *, submitter: str
    ) -> list[dict[str, Any]]:
        done = submitting.submit(
            tx,
            self._naming,
            tasks,
            submitter=submitter,
            now=tx.now(),
            rules=path_rules_of(self._store, self._naming, tasks),
        )
        return [asdict(row) for row in done]

    def _decided(
        self,
        verb: str,
        tasks: Sequence[str],
        actor: str,
        text: str,
        request_id: str,
        rule: Callable[[Transaction], list[deciding.Decided]],
        *,
        addition: str = "",
    ) -> list[deciding.Decided]:
        named = check_several(tasks, "tasks", most=checking.MOST_TASKS)
        check_note(text, "reason")
        check_text(addition, "addition", longest=LONGEST_PROMPT)
        digest = requests.digest(verb, [named, text, addition])
        answer = self._once(actor, request_id, digest, lambda tx: [asdict(d) for d in rule(tx)])
        return [deciding.Decided(**{**row, "state": TaskState(row["state"])}) for row in answer]

    def _once(
        self, actor: str, request_id: str, digest: str, rule: Callable[[Transaction], list[Any]]
    ) -> list[Any]:
        answer = requests.once(self._store, actor, request_id, digest, rule)
        self._claims.changed()
        return answer
