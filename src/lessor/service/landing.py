"""Operations on results: which haven't landed, and that one landed, can't, or is given up.

A terminal task stays terminal: what happens to its result is the result's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lessor.errors import NotFoundError
from lessor.model.lease import LeaseEnd, LeaseId
from lessor.model.lifecycle import TaskState
from lessor.model.scope import conflicts, parse_scopes
from lessor.model.task import Stage, TaskId
from lessor.model.waiting import Held
from lessor.service.blockers import stored_scope
from lessor.service.claims import Claims
from lessor.service.naming import Naming
from lessor.service.registry import path_rules
from lessor.service.rows import LeaseRow, ResultRow, pack, pack_facts, unpack
from lessor.service.scopes import held_by
from lessor.service.wording import LONGEST_TEXT, check_note, check_page, check_text
from lessor.store import Row, Store, Transaction

MOST_RESULTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlanded:
    """A result that neither landed nor was given up.

    Attributes:
        head: its commit as it was reported.
        on: the task on whose result it stands; it can't land first.
        below: all tasks on whose results it stands, the nearest first.
        trouble: why it couldn't land when that was tried last; a person has to see to it.
        shadow: the lease that lies on its paths; None once that is over.
        finished: whether its task is done; else it is the work of one that asked a person.
    """

    task: TaskId
    branch: str
    head: str
    on: TaskId | None
    below: tuple[TaskId, ...]
    trouble: str | None
    shadow: LeaseId | None
    finished: bool = True

    @property
    def shadowed(self) -> bool:
        """Whether its shadow still lies on its paths."""
        return self.shadow is not None

    @property
    def is_open(self) -> bool:
        """Whether it could land, or be given up: of work that goes on, while it casts a shadow."""
        return self.finished or self.shadowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocking:
    """A result whose shadow has kept somebody waiting for longer than the queue allows.

    Attributes:
        task: whose result it is.
        waiting: how many have waited for so long.
        first: the number of the one that was added first.
        since_ms: since when it has been queued.
    """

    task: TaskId
    waiting: int
    first: int
    since_ms: int


class Landings:
    """A refusal raises and changes nothing. What was recorded before is answered as it is."""

    def __init__(self, store: Store, naming: Naming, claims: Claims) -> None:
        self._store = store
        self._naming = naming
        self._claims = claims

    def results(
        self,
        *,
        repository: str | None = None,
        task: str | None = None,
        unfinished: bool = False,
        after: str | None = None,
        most: int = MOST_RESULTS,
    ) -> list[Unlanded]:
        """Results that haven't landed, oldest first: of a repository, of a task, or all.

        Args:
            unfinished: also the work of tasks that asked a person: it casts a shadow and can't land.
            after: only those of later tasks than this one.
        """
        rows = self._store.read(
            "results",
            repository_id=0 if repository is None else self._naming.repository_row(repository),
            task_id=0 if task is None else self._naming.task_row(task),
            unfinished=int(unfinished),
            after=0 if after is None else self._naming.task_row(after),
            most=check_page(most),
        )
        return [self._record(row) for row in rows]

    def all_results(
        self, *, repository: str | None = None, page: int = MOST_RESULTS
    ) -> Iterator[Unlanded]:
        """The same without a bound, unfinished ones too; read page by page."""
        after = None
        while some := self.results(repository=repository, unfinished=True, after=after, most=page):
            yield from some
            after = some[-1].task

    def blocking(self, *, repository: str | None = None) -> list[Blocking]:
        """Results that keep others waiting for too long: of a repository, or of all; oldest first.

        It knows of those that a claim has met; before that nobody wanted to have them.
        """
        rows = self._store.read(
            "overdue_shadows",
            repository_id=0 if repository is None else self._naming.repository_row(repository),
            most=MOST_RESULTS,
        )
        return [
            Blocking(task=self._naming.task(task), waiting=waiting, first=first, since_ms=since)
            for task, waiting, since, first in rows
        ]

    def over(self, path: str, *, repository: str) -> list[Held]:
        """The results whose shadow lies on `path`, or on something below it, oldest first."""
        row = self._naming.repository_row(repository)
        check_text(path, "path", longest=LONGEST_TEXT)
        asked = parse_scopes([path], rules=path_rules(self._store, row))
        results = self.all_results(repository=repository)
        shadows = [self._naming.lease_row(one.shadow) for one in results if one.shadow]
        paths: dict[int, list[str]] = {}
        for lease, _, text, key, mode, pattern in self._store.read(
            "shadow_scopes", leases=pack(shadows)
        ):
            its = stored_scope(key, mode, pattern, text=text)
            if any(conflicts(mine, its) for mine in asked):
                paths.setdefault(lease, []).append(text)
        return [
            held_by(self._naming, LeaseRow._make(self._store.read("lease", lease_id=one)[0]), texts)
            for one, texts in paths.items()
        ]

    def landed(self, task: str, *, commit: str, target: str, how: str = "") -> bool:
        """Record that `target` has the result, in `commit`; False where that was known.

        Args:
            how: in a word or two, for the history: "rebased", "squashed".

        Raises:
            NotFoundError: the task has no result that could land.
        """
        check_text(commit, "commit", longest=LONGEST_TEXT, empty=False)
        check_text(target, "target", longest=LONGEST_TEXT, empty=False)
        check_note(how, "how")

        def rule(tx: Transaction) -> bool:
            known = self._locked(tx, task)
            if known.landed is not None:
                return False
            tx.rows("set_result", task_id=known.task_id, landed=commit, target=target, trouble=None)
            if known.status == TaskState.SUCCEEDED:
                tx.rows("set_stage", task_id=known.task_id, stage=Stage.LANDED)
            self._lift(tx, known, LeaseEnd.LANDED, commit=commit, target=target, how=how)
            return True

        return self._changed(self._store.write(rule))

    def discarded(self, task: str, *, reason: str = "") -> bool:
        """Record that a person gave the result up; False where that was known, or it landed.

        What stands on it keeps its own commits: they are moved to the target when it lands.

        Raises:
            NotFoundError: the task has no result that could land.
        """
        check_note(reason, "reason")

        def rule(tx: Transaction) -> bool:
            known = self._locked(tx, task)
            if known.landed is not None or known.given_up:
                return False
            tx.rows("give_up_result", task_id=known.task_id)
            self._lift(tx, known, LeaseEnd.DISCARDED, reason=reason)
            return True

        return self._changed(self._store.write(rule))

    def refused(self, task: str, *, trouble: str) -> None:
        """Record why the result couldn't land; said again, it changes nothing.

        Raises:
            NotFoundError: the task has no result that could land.
        """
        check_text(trouble, "trouble", longest=LONGEST_TEXT, empty=False)

        def rule(tx: Transaction) -> None:
            known = self._locked(tx, task)
            if known.landed is None and known.trouble != trouble:
                tx.rows(
                    "set_result", task_id=known.task_id, landed=None, target=None, trouble=trouble
                )
                self._note(tx, known.task_id, "landing_refused", trouble=trouble)

        self._store.write(rule)

    def _locked(self, tx: Transaction, task: str) -> ResultRow:
        found = tx.rows("lock_result", task_id=self._naming.task_row(task))
        if not found:
            raise NotFoundError(
                f"{task} has no result that could land.", next_step="List the tasks: lessor list."
            )
        return ResultRow._make(found[0])

    def _lift(self, tx: Transaction, known: ResultRow, end: LeaseEnd, **facts: str) -> None:
        # A shadow that faded before has ended by itself.
        tx.rows("lift_shadow", lease_id=known.lease_id, reason=end)
        self._note(tx, known.task_id, end, **facts)

    @staticmethod
    def _note(tx: Transaction, row: int, kind: str, **facts: str) -> None:
        tx.rows("append_event", task_id=row, kind=kind, epoch=None, facts=pack_facts(**facts))

    def _changed(self, changed: bool) -> bool:
        if changed:
            self._claims.changed()
        return changed

    def _record(self, row: Row) -> Unlanded:
        task, _, lease, branch, head, below, trouble, ended_ms, finished, on = row
        name = self._naming.task
        return Unlanded(
            task=name(task),
            branch=branch,
            head=head,
            on=None if on is None else name(on),
            below=tuple(name(one) for one in unpack(below)),
            trouble=trouble,
            shadow=self._naming.lease(lease) if ended_ms is None else None,
            finished=bool(finished),
        )
