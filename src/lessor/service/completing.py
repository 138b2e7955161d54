"""Completing: leases end with their results, a list in one statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from lessor.errors import InvalidError, LeaseLostError
from lessor.model.grant import Ended, Result
from lessor.model.lease import Holder, LeaseEnd
from lessor.model.lifecycle import TaskEvent, TaskState, next_state
from lessor.model.task import TaskId
from lessor.service.ending import MOST_ITEMS, digest_of, in_turn
from lessor.service.evidence import keep_late
from lessor.service.naming import Naming
from lessor.service.proof import guard, known_version
from lessor.service.refusing import lease_lost
from lessor.service.results import pack_result
from lessor.service.rows import CompletedRow, pack, pack_facts
from lessor.service.shadows import cast_shadows
from lessor.service.wording import check_several
from lessor.store import Call, LongWay, Row, Store

_COMPLETED = next_state(TaskState.RUNNING, TaskEvent.COMPLETE)
NO_LEASE = CompletedRow(-1, 0, 0, 0, None, None, None, None, 0, 0)
"""What complete_leases has no row for."""


class Ending(NamedTuple):
    """What ends leases with their results, as one transaction runs it.

    Attributes:
        several: what is completed, in the order of its answers.
        shadows: what follows from it, whichever way it is completed.
    """

    several: Sequence[Completion]
    shadows: Sequence[Call]

    @property
    def calls(self) -> list[Call]:
        """complete_leases, and what follows from it; packed when it is asked for."""
        rows = [{**item.row, "ord": place} for place, item in enumerate(self.several)]
        return [("complete_leases", {"rows": pack(rows), "status": _COMPLETED}), *self.shadows]

    @property
    def short(self) -> list[Call] | None:
        """The same for a single lease; None where there are several.

        A store of many writers leaves it to `calls` with LongWay where others need its task.
        """
        if len(self.several) != 1:
            return None
        return [("complete_one", {**self.several[0].row, "status": _COMPLETED}), *self.shadows]


class Completion(NamedTuple):
    """A holder's result, checked and packed once.

    Attributes:
        row: what complete_leases takes for it; its place in the list is 0 until it is in one.
    """

    holder: Holder
    packed: str
    digest: str
    row: dict[str, object]
    result: Result


def complete(
    store: Store,
    naming: Naming,
    items: Sequence[tuple[Holder, Result]],
    *,
    changed: Callable[[], None],
    first: Callable[[Ending], list[Row]] | None = None,
) -> list[Ended | LeaseLostError]:
    """End each lease with its result; a refused result is kept as evidence.

    Args:
        changed: called when something may have become ready.
        first: runs the ending inside a larger transaction, even for an empty list; the rows of
            complete_leases.
    """

    def once(
        several: Sequence[Completion],
        write: Callable[[Ending], list[Row]] = lambda ending: _write(store, ending),
    ) -> list[Ended | LeaseLostError]:
        ending = Ending(several, cast_shadows((item.row, item.result) for item in several))
        answers = [CompletedRow._make(row) for row in write(ending)]
        if any(row.wakes for row in answers):
            changed()
        return _read_completions(store, naming, several, answers)

    return in_turn(
        [_completion(naming, holder, result) for holder, result in check_items(items)],
        key=lambda item: (item.holder.task, item.holder.epoch),
        once=once,
        first=None if first is None else partial(once, write=first),
    )


def check_items(items: Sequence[tuple[Holder, Result]]) -> list[tuple[Holder, Result]]:
    """Pairs of a holder and its result; InvalidError otherwise."""
    several = check_several(items, "completions", most=MOST_ITEMS)
    for item in several:
        if len(check_several(item, "A completion", most=2)) != 2:  # noqa: PLR2004
            raise InvalidError(
                "A completion is a holder and its result.", next_step="Pass pairs of them."
            )
    return several


def _completion(naming: Naming, holder: Holder, result: Result) -> Completion:
    packed = pack_result(result)
    digest = digest_of("complete", packed)
    row = {
        **guard(naming, holder),
        "version": known_version(holder),
        "digest": digest,
        "result": packed,
        "stage": result.stage,
        "facts": pack_facts(stage=result.stage, commit=result.commit, worker=holder.worker),
    }
    return Completion(holder, packed, digest, row, result)


def _write(store: Store, ending: Ending) -> list[Row]:
    short = ending.short
    if short is not None:
        with suppress(LongWay):
            return store.together(*short)[0]
    return store.together(*ending.calls)[0]


def _read_completions(
    store: Store, naming: Naming, items: Sequence[Completion], rows: Sequence[CompletedRow]
) -> list[Ended | LeaseLostError]:
    """What complete_leases answered, item by item; late results are written down here."""
    answers: list[Ended | LeaseLostError] = []
    found = {row.ord: row for row in rows}
    for place, item in enumerate(items):
        row = found.get(place, NO_LEASE)
        repeated = bool(row.mine) and row.end_digest == item.digest
        if row.done or repeated:
            answers.append(
                Ended(
                    lease=naming.lease(row.lease_id),
                    task=TaskId(item.holder.task),
                    end=LeaseEnd.COMPLETED,
                    state=_COMPLETED,
                    repeated=not row.done,
                )
            )
            continue
        expired = row.expires_ms is not None and row.now >= row.expires_ms
        error = lease_lost(
            store,
            naming,
            item.holder,
            verb="completed",
            mine=bool(row.mine),
            end_reason=row.end_reason,
            expired=expired,
        )
        keep_late(
            store,
            naming,
            item.holder,
            verb="complete",
            body=item.packed,
            mine=bool(row.mine),
            error=error,
        )
        answers.append(error)
    return answers
