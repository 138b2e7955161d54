"""One unfinished task for a branch: who has one that was asked for, and free names for new ones."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.errors import ConflictError, ConstraintError, LessorError
from lessor.model.branch import BRANCH_BYTES
from lessor.model.task import NewTask
from lessor.service.naming import Naming
from lessor.service.rows import pack
from lessor.store import Store, Transaction

TRIED = 20
UNTITLED = "task"  # stands in for a title of which a branch can keep nothing


def is_taken(error: ConstraintError) -> bool:
    """Whether a write failed because another unfinished task has the branch."""
    return "branch" in str(error.facts.get("constraint"))


def taken(
    store: Store, naming: Naming, tasks: Sequence[NewTask], error: ConstraintError
) -> LessorError:
    """The refusal of a submit that the branches' index forbade; any other error as it is."""
    if not is_taken(error):
        return error
    for task in tasks:
        if task.branch is not None and task.repository is not None:
            rows = store.read(
                "branch_owners",
                repository_id=naming.repository_row(task.repository),
                branches=pack([task.branch]),
            )
            if rows:
                branch, row, number = rows[0]
                return ConflictError(
                    f"The branch {branch} belongs to #{number}, which isn't finished.",
                    next_step=f"Name another branch, or see: lessor show {number}.",
                    branch=branch,
                    task=naming.task(row),
                    number=number,
                )
    return error


def free_names(tx: Transaction, wanted: Sequence[str], *, repository: int) -> list[str]:
    """`wanted`, with a number appended to those that an unfinished task has already."""
    tried = [name for branch in wanted for name in _variants(branch)]
    rows = tx.rows("branch_owners", repository_id=repository, branches=pack(tried))
    used = {str(row[0]) for row in rows}
    names = []
    for branch in wanted:
        name = next((n for n in _variants(branch) if n not in used), branch)
        used.add(name)
        names.append(name)
    return names


def _variants(branch: str) -> list[str]:
    longest = BRANCH_BYTES - len(f"-{TRIED}")
    return [branch, *(f"{branch[:longest].rstrip('-.')}-{n}" for n in range(2, TRIED + 1))]
