"""Giving a running task another branch, where its own can't be handed on safely.

A git command that was frozen with its locks held can't be stopped from moving the branch when it
wakes. So it keeps that branch, and the live holder goes on from its commits on another one.
"""

from __future__ import annotations

from dataclasses import replace

from lessor.errors import BranchInvalidError, InvalidError
from lessor.model.branch import is_branch
from lessor.model.label import format_label, parse_label
from lessor.model.lease import Holder
from lessor.service.branches import free_names
from lessor.service.naming import Naming
from lessor.service.proof import lock_holder
from lessor.service.rows import LeaseRow, pack_facts
from lessor.service.wording import LONGEST_NAME, LONGEST_TEXT, check_text
from lessor.store import Transaction


def check_wanted(branch: object, why: object) -> None:
    """Refuse what can't be a task's branch, or a reason that can't be kept; InvalidError."""
    text = check_text(branch, "branch", longest=LONGEST_NAME, empty=False)
    check_text(why, "reason", longest=LONGEST_TEXT, empty=False)
    if not is_branch(text):
        raise BranchInvalidError(
            f"{text!r} can't be a task's branch.",
            next_step="Use <type>/<description>, such as claude/14-billing-retry.",
        )


def move_branch(
    tx: Transaction, naming: Naming, holder: Holder, branch: str, *, why: str
) -> tuple[str, str]:
    """Give the holder's task and lease `branch`, or that with a number; the name and the label.

    Raises:
        HolderLostError: the caller isn't the live holder.
        InvalidError: the task has no branch.
        ConstraintError: another task was given the name just now; see `branches.is_taken`.
    """
    row = lock_holder(tx, naming, holder)
    before = LeaseRow._make(tx.rows("lease", lease_id=row.lease_id)[0])
    if before.branch is None:
        raise InvalidError(
            "The task has no repository, so its lease has no branch.", next_step="Leave it out."
        )
    if before.branch == branch:
        return branch, before.label
    (name,) = free_names(tx, [branch], repository=before.repository_id)
    label = format_label(replace(parse_label(before.label), branch=name))
    tx.rows("move_task_branch", task_id=row.task_id, branch=name)
    tx.rows("move_lease_branch", lease_id=row.lease_id, branch=name, label=label)
    facts = pack_facts(branch=name, before=before.branch, why=why, worker=holder.worker)
    tx.rows("append_event", task_id=row.task_id, kind="branch", epoch=holder.epoch, facts=facts)
    return name, label
