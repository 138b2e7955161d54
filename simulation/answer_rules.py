"""Invariants of what is told: nothing acknowledged is lost, nothing refused is done."""

from __future__ import annotations

from collections.abc import Iterator

from lessor.model.grant import Ended, Grant, Renewed
from lessor.service.deciding import Decided
from lessor.service.naming import Naming
from simulation.ground import clash
from simulation.judging import Answer, names
from simulation.tables import Change, Row, Tables

_HOLDERS = frozenset({"renew", "complete", "fail", "release", "ask", "widen", "admit"})
_EVIDENCE = frozenset({"late_result", "event", "meta"})
_ENDS = {"complete": "completed", "fail": "failed", "release": "released", "ask": "asked"}
EXTENDED = ("expires_ms", "max_until_ms")


def what_is_told_as_granted_is_on_record(answer: Answer) -> Iterator[str]:
    """Who is told of a grant has a live lease with that epoch, fence, token and deadline."""
    for grant in grants_in(answer):
        row = answer.tables.lease(answer.naming.lease_row(grant.lease))
        if row is None or not names(answer.naming, grant.holder, row):
            yield f"{grant.lease} was told, and isn't on record"
        elif not answer.doing.interrupted and _is_over(answer, row):
            yield f"lease {row['id']} was told as granted, and is over"
        elif (grant.fence, grant.epoch) != (row["fence"], row["epoch"]):
            yield f"lease {row['id']} was told with fence {grant.fence}, epoch {grant.epoch}"
        elif grant.expires_ms > row["expires_ms"]:
            yield f"lease {row['id']} was told to last longer than it does"


def one_request_is_granted_once(answer: Answer) -> Iterator[str]:
    """The same request gets the same grants, however often it is delivered."""
    request = answer.doing.request
    told = frozenset(answer.naming.lease_row(grant.lease) for grant in grants_in(answer))
    if request is None or not told:
        return
    first = answer.memory.answers.setdefault(request, told)
    if not told <= first:
        yield f"request {request[1]} got {sorted(first)} and then {sorted(told)}"


def what_is_told_as_renewed_is_on_record(answer: Answer) -> Iterator[str]:
    """Who is told of a renewal has a live lease of that version and deadline."""
    for renewed in values(answer):
        if not isinstance(renewed, Renewed):
            continue
        row = answer.tables.lease(answer.naming.lease_row(renewed.lease))
        if answer.doing.interrupted:
            continue
        if row is None or row["ended_ms"] is not None or answer.now >= row["expires_ms"]:
            yield f"{renewed.lease} was told as renewed, and isn't live"
        elif (row["version"], row["expires_ms"]) != (renewed.version, renewed.expires_ms):
            yield f"lease {row['id']} was told as renewed otherwise than it is"


def what_is_told_as_ended_is_on_record(answer: Answer) -> Iterator[str]:
    """Who is told that its ending was taken finds the lease ended so, and the task where it was told."""
    for ended in values(answer):
        if not isinstance(ended, Ended):
            continue
        row = answer.tables.lease(answer.naming.lease_row(ended.lease))
        if row is None or row["end_reason"] != ended.end:
            yield f"{ended.lease} was told as {ended.end}, and isn't"
            continue
        if not any(names(answer.naming, holder, row) for holder in answer.doing.holders):
            yield f"lease {row['id']} was told as {ended.end} to somebody who never had it"
        task = answer.tables.task(row["task_id"])
        if ended.end == "completed" and (task is None or task["status"] != "succeeded"):
            yield f"lease {row['id']} was told as completed, and its task didn't succeed"


def what_is_told_as_decided_is_on_record(answer: Answer) -> Iterator[str]:
    """Who is told what became of a task by a decision finds it there."""
    # One that is repeated is told what was told before, whatever became of the task since.
    if answer.doing.interrupted or all(_is_evidence(*one) for one in _written(answer)):
        return
    for decided in values(answer):
        if not isinstance(decided, Decided):
            continue
        task = answer.tables.task(answer.naming.task_row(decided.task))
        if task is None or task["status"] != decided.state:
            yield f"{decided.task} was told as {decided.state}, and isn't"


def a_refused_write_changes_nothing(answer: Answer) -> Iterator[str]:
    """What is refused changes no task, lease, scope or intent; it is kept as evidence."""
    if answer.code not in {"lease_lost", "scope_held", "invalid"}:
        return
    if answer.doing.kind not in _HOLDERS:
        return
    for table, change in _written(answer):
        if not _is_evidence(table, change):
            yield f"{answer.doing.kind} was refused, and changed {table} {change.key}"


def no_constraint_is_reached(answer: Answer) -> Iterator[str]:
    """The rules refuse before the database has to: nobody is told of a constraint or of broken SQL."""
    if answer.code in {"constraint", "store", "store_corrupt"}:
        yield f"{answer.doing.kind} was refused by the database ({answer.code})"


def authority_is_exclusive(answer: Answer) -> Iterator[str]:
    """Nobody is told of a grant while somebody else still rightly believes in an overlapping one."""
    for grant in grants_in(answer) if answer.memory.clock_was_right else ():
        number = answer.naming.lease_row(grant.lease)
        granted = answer.tables.lease(number)
        if answer.doing.interrupted and granted is not None and _is_over(answer, granted):
            continue  # while the answer was on its way: its term counts from when it was asked for
        for other, (until, who) in list(answer.memory.believed.items()):
            row = answer.tables.lease(other)
            if other == number or row is None or until <= answer.at_ms:
                continue
            if _was_taken(row):
                continue
            if _overlap(answer.tables, number, other):
                yield f"lease {number} was granted while {who} believes in lease {other}"


def _was_taken(row: Row) -> bool:
    """Whether a person or a witness ended the lease, or its holder gave it back."""
    return row["end_reason"] not in {None, "lapsed"}


ANSWER_RULES = (
    what_is_told_as_granted_is_on_record,
    one_request_is_granted_once,
    what_is_told_as_renewed_is_on_record,
    what_is_told_as_ended_is_on_record,
    what_is_told_as_decided_is_on_record,
    a_refused_write_changes_nothing,
    no_constraint_is_reached,
    authority_is_exclusive,
)


def values(answer: Answer) -> list[object]:
    """The answer, flat: a list of lists is one list."""
    return flatten(answer.value)


def flatten(value: object) -> list[object]:
    """A value, or the values of lists and pairs in it."""
    if isinstance(value, list) or type(value) is tuple:
        return [one for part in value for one in flatten(part)]
    return [value]


def grants_in(answer: Answer) -> list[Grant]:
    """The grants of an answer."""
    return [value for value in values(answer) if isinstance(value, Grant)]


def lease_of(naming: Naming, grant: Grant) -> int:
    """The row of a grant's lease."""
    return naming.lease_row(grant.lease)


def _is_over(answer: Answer, lease: Row) -> bool:
    return lease["ended_ms"] is not None or answer.now >= lease["expires_ms"]


def _written(answer: Answer) -> Iterator[tuple[str, Change]]:
    for changes in answer.doing.wrote:
        for table, rows in changes.items():
            for change in rows:
                yield table, change


def _is_evidence(table: str, change: Change) -> bool:
    """Whether any call may write it: that something happened, and by how much a suspend extends leases."""
    if table in _EVIDENCE or (table == "task" and _only(change.old, change.new, "events")):
        return True
    return table == "lease" and _only(change.old, change.new, *EXTENDED)


def _only(old: Row | None, new: Row | None, *columns: str) -> bool:
    if old is None or new is None:
        return False
    return all(old[name] == new[name] for name in old if name not in columns)


def _overlap(tables: Tables, one: int, other: int) -> bool:
    some, held = tables.lease(one), tables.lease(other)
    if some is None or held is None or some["repository_id"] != held["repository_id"]:
        return False
    if some["task_id"] == held["task_id"]:
        return True
    mine, theirs = ([*tables.paths(row["task_id"])] for row in (some, held))
    return any(clash(a["text"], a["mode"], b["text"], b["mode"]) for a in mine for b in theirs)
