"""Tasks, leases and paths as people type them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from lessor.cli.invocation import Invocation
from lessor.errors import InvalidError, NotFoundError
from lessor.model.task import Task
from lessor.model.waiting import Held

_NUMBER = re.compile(r"#?(\d{1,15})")
_WILD = re.compile(r"[*?]")


def find_task(invocation: Invocation, text: str) -> Task:
    """The task called `14`, `#14` or `task_…`.

    Raises:
        InvalidError: it is neither a number nor a task's id.
        NotFoundError: there is no such task.
    """
    number = _NUMBER.fullmatch(text)
    if number is not None:
        return invocation.lessor.tasks.task_numbered(
            int(number[1]), repository=invocation.repository
        )
    if text.startswith("task_"):
        return invocation.lessor.tasks.task(text)
    raise InvalidError(
        f"{text[:80]!r} is no task.",
        next_step="Say its number, 14 or '#14', or its id, task_….",
    )


def find_tasks(invocation: Invocation, texts: Sequence[str]) -> list[Task]:
    """The same for several, each once, in their order."""
    tasks = {task.id: task for task in (find_task(invocation, text) for text in texts)}
    return list(tasks.values())


def lease_named(invocation: Invocation, text: str, *, free: str = "See: lessor why") -> str:
    """The id of the lease `lease_…`, or of the live one of a task.

    Args:
        free: what to do where nobody holds the task, without its number.

    Raises:
        NotFoundError: the task has no live lease.
        InvalidError: it is neither.
    """
    if text.startswith("lease_"):
        if not re.fullmatch(r"lease_[0-9a-z]{1,40}", text):
            raise NotFoundError(
                f"{text[:80]!r} is no lease of this store.",
                next_step="List the leases: lessor list --leases.",
            )
        return text
    task = find_task(invocation, text)
    for lease in invocation.lessor.leases.leases(task=task.id, live=True):
        if lease.kind == "lease":
            return lease.id
    raise NotFoundError(f"Nobody holds #{task.number} now.", next_step=f"{free} {task.number}.")


def holders_of(invocation: Invocation, path: str, *, repository: str) -> list[Held]:
    """Who holds a path, or something below it, now.

    The store keeps the paths of an ended lease until the next claim has drained them; such a lease
    holds nothing any more.
    """
    leases = invocation.lessor.leases
    return [
        held
        for held in leases.who(path, repository=repository)
        if leases.lease(held.lease).end is None
    ]


def path_from_top(invocation: Invocation, text: str) -> str:
    """A path or glob from the repository's top.

    One that exists from where the person is means that one; any other counts from the top, as
    Lessor prints them. An absolute path inside the clone is taken, too. What can't be meant is
    refused by the scope's own rules.
    """
    standing = invocation.standing
    checkout = standing.checkout
    if checkout is None or not text or _WILD.search(text) or text.startswith(("path:", "glob:")):
        return text
    top = os.fspath(checkout.cwd)
    for _ in PurePosixPath(checkout.prefix).parts:
        top = os.path.dirname(top)  # noqa: PTH120 - without touching the disk
    if os.path.isabs(text):  # noqa: PTH117
        inside = os.path.relpath(text, top)
        return text if inside.startswith("..") else inside
    joined = os.path.normpath(os.path.join(checkout.prefix, text))  # noqa: PTH118
    here = os.path.lexists(os.path.join(checkout.cwd, text))  # noqa: PTH118
    explicit = text.startswith(("./", "../")) or text in {".", ".."}
    if (here or explicit) and not joined.startswith(".."):
        return joined
    return text
