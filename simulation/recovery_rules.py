"""Invariants of recovery: where the task of a lease goes that ended without a result, a row of the table each.

The rows are the design's, in its order; which one decides is found here from what was recorded and
what the holder said, never by the product's own table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lessor.model.grant import Failure
from lessor.model.task import AD_HOC
from simulation.judging import Commit
from simulation.tables import Row

SAME_ERRORS = 3
"""How often the same failure may come in a row."""
_BY_TABLE = frozenset({"lapsed", "gone", "released", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A task whose lease ended without a result.

    Attributes:
        row: of the table, the one that decides.
        state: where the task went; granted anew by the same claim, it was queued before.
    """

    row: str
    lease: Row
    task: Row
    state: str


def what_only_stood_for_its_paths_is_over(commit: Commit) -> Iterator[str]:
    """A task that only stood for acquired paths is cancelled when its lease ends."""
    return _unless(commit, "ad hoc", "cancelled")


def a_push_in_doubt_is_waited_for(commit: Commit) -> Iterator[str]:
    """A task of which a push isn't settled is reconciling once its lease has ended."""
    return _unless(commit, "unsettled effect", "reconciling")


def a_missing_credential_blocks(commit: Commit) -> Iterator[str]:
    """A task that failed for want of a credential is blocked."""
    return _unless(commit, "credential missing", "blocked")


def what_is_spent_is_quarantined(commit: Commit) -> Iterator[str]:
    """A task whose attempts are spent, or that failed the same way each time, is quarantined."""
    return _unless(commit, "spent", "quarantined")


def what_only_reads_is_tried_again(commit: Commit) -> Iterator[str]:
    """A read-only task is queued again."""
    return _unless(commit, "read-only", "queued")


def work_in_a_worktree_is_tried_again(commit: Commit) -> Iterator[str]:
    """A task whose effects are all in its worktree is queued again."""
    return _unless(commit, "workspace", "queued")


def what_has_a_key_is_tried_again(commit: Commit) -> Iterator[str]:
    """An idempotent task with a key is queued again."""
    return _unless(commit, "idempotent with a key", "queued")


def what_announced_nothing_is_tried_again(commit: Commit) -> Iterator[str]:
    """A brokered task that announced nothing is queued again."""
    return _unless(commit, "brokered, nothing announced", "queued")


def what_may_have_done_anything_waits_for_a_person(commit: Commit) -> Iterator[str]:
    """Any other task is reconciling: somebody has to look."""
    return _unless(commit, "anything else", "reconciling")


RECOVERY_RULES = (
    what_only_stood_for_its_paths_is_over,
    a_push_in_doubt_is_waited_for,
    a_missing_credential_blocks,
    what_is_spent_is_quarantined,
    what_only_reads_is_tried_again,
    work_in_a_worktree_is_tried_again,
    what_has_a_key_is_tried_again,
    what_announced_nothing_is_tried_again,
    what_may_have_done_anything_waits_for_a_person,
)


def count_errors(commit: Commit) -> None:
    """Remember for each task how often it failed in the same words; a person who requeues it forgets that."""
    errors = commit.memory.errors
    for event in commit.made("event"):
        if event["kind"] == "requeued":
            said, _ = errors.get(event["task_id"], ("", 0))
            errors[event["task_id"]] = (said, 0)
    for old, new in commit.rows("lease"):
        if old["ended_ms"] is None and new["end_reason"] == "failed":
            said = "" if commit.doing.failure is None else commit.doing.failure.error
            last, times = errors.get(new["task_id"], ("", 0))
            errors[new["task_id"]] = (said, times + 1 if said == last else 1)


def _unless(commit: Commit, row: str, state: str) -> Iterator[str]:
    for left in _left(commit):
        if left.row == row and left.state != state:
            reason = left.lease["end_reason"]
            yield f"task {left.task['id']} is {left.state} by {row!r} ({reason}), not {state}"


def _left(commit: Commit) -> Iterator[Left]:
    anew = {row["task_id"] for row in commit.made("lease") if row["kind"] == "lease"}
    for old, new in commit.rows("lease"):
        if old["ended_ms"] is not None or new["ended_ms"] is None or new["kind"] != "lease":
            continue
        by_person = new["end_reason"] == "forced" and commit.doing.kind == "force_release"
        task = commit.tables.task(new["task_id"])
        if task is None or not (new["end_reason"] in _BY_TABLE or by_person):
            continue
        failure = commit.doing.failure if new["end_reason"] == "failed" else None
        if failure is None or failure.retry:  # else its holder decided, for good
            state = "queued" if task["id"] in anew else task["status"]
            yield Left(row=_row(commit, task, failure), lease=new, task=task, state=state)


def _row(commit: Commit, task: Row, failure: Failure | None) -> str:
    intents = commit.tables.rows["intent"].values()
    same = 0 if failure is None else commit.memory.errors[task["id"]][1]
    asked = commit.tables.rows["submission"][task["id"],]
    rows = (
        ("ad hoc", task["queue"] == AD_HOC),
        (
            "unsettled effect",
            any(i["task_id"] == task["id"] and i["settled_ms"] is None for i in intents),
        ),
        ("credential missing", failure is not None and failure.credential),
        ("spent", task["charged"] >= task["max_attempts"] or same >= SAME_ERRORS),
        ("read-only", task["effects"] == "read-only"),
        ("workspace", task["effects"] == "workspace"),
        (
            "idempotent with a key",
            task["effects"] == "idempotent" and asked["idempotency_key"] is not None,
        ),
        ("brokered, nothing announced", task["effects"] == "brokered"),
    )
    return next((name for name, applies in rows if applies), "anything else")
