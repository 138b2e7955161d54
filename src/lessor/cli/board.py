"""What the page is about: who works, who waits and why, what needs a person, what is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lessor.cli.halts import halt_here
from lessor.cli.invocation import Invocation
from lessor.cli.repositories import Checkout
from lessor.cli.results import block_words, changed_files
from lessor.cli.to_land import read_to_land
from lessor.errors import GitError
from lessor.git.repository import current_branch, head_commit
from lessor.model.lease import LeaseKind
from lessor.model.lifecycle import TaskState
from lessor.model.task import AD_HOC, DRILL, Task, TaskId
from lessor.model.waiting import Cause, Why
from lessor.runner.liveness import Halt
from lessor.service.landing import Blocking
from lessor.service.reading import LeaseRecord

MOST_WAITS = 20
MOST_SIZED = 12
RECENT_MS = 24 * 3_600_000
FOR_A_PERSON = frozenset({TaskState.NEEDS_PERSON, TaskState.QUARANTINED, TaskState.RECONCILING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One look at a repository.

    Attributes:
        branch: the one that the person is on; empty on a detached HEAD.
        commit: where it stands; empty before the first commit, or without a clone.
        running: live leases of queued tasks.
        halts: those of them whose agent, on this machine, doesn't seem to get on, by the lease's id.
        holds: live leases that were taken without a queued task.
        waits: the first queued tasks that something is in the way of.
        blocked: by whom and why a person blocked one of them, by its id.
        ready: queued tasks that nothing is in the way of, among those that were looked at.
        queued: how many tasks are queued in all.
        to_land: results that the branch doesn't contain yet, in the order in which they can land.
        behind: whose results have to wait until another one has landed.
        unseen: how many more results nobody looked at.
        troubles: why the result of a task couldn't land when that was tried last, by its id.
        blocking: results that keep others waiting for longer than their queue allows, by their task's id.
        sizes: how much each of them changed, by its task's id.
        failed: tasks that failed within the last day.
    """

    name: str
    branch: str
    commit: str
    now_ms: int
    running: Sequence[LeaseRecord]
    halts: Mapping[str, Halt]
    holds: Sequence[LeaseRecord]
    waits: Sequence[tuple[Task, Why]]
    blocked: Mapping[TaskId, str]
    ready: Sequence[Task]
    queued: int
    needs_you: Sequence[Task]
    to_land: Sequence[Task]
    troubles: Mapping[TaskId, str]
    behind: Collection[TaskId]
    unseen: int
    blocking: Mapping[TaskId, Blocking]
    sizes: Mapping[str, str]
    failed: Sequence[Task]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing at all to show."""
        return not (
            self.running
            or self.holds
            or self.queued
            or self.needs_you
            or self.to_land
            or self.failed
        )


def read_board(invocation: Invocation) -> Board:
    """Look at the repository that the command is about; reads only."""
    standing, lessor = invocation.standing, invocation.lessor
    branch, commit = _where(standing.checkout)
    unfinished = lessor.tasks.open_tasks(repository=standing.id)
    tasks = {task.id: task for task in unfinished if task.queue != DRILL}
    drilled = {task.id for task in unfinished if task.queue == DRILL}
    leases = [
        lease
        for lease in lessor.leases.leases(repository=standing.id, live=True)
        if lease.kind is LeaseKind.LEASE and lease.task not in drilled
    ]
    ad_hoc = {task.id for task in tasks.values() if task.queue == AD_HOC}
    queued = [
        task
        for task in tasks.values()
        if task.state in {TaskState.QUEUED, TaskState.BLOCKED} and task.id not in ad_hoc
    ]
    whys = [(task, lessor.tasks.why(task.id)) for task in queued[:MOST_WAITS]]
    now = lessor.now_ms()
    results = read_to_land(invocation, commit=commit)
    troubles = results.troubles
    # Without a repository there are no results; asked without one, the store answers of all.
    late = lessor.landings.blocking(repository=standing.id) if standing.id else []
    blocking = {one.task: one for one in late}
    urgent = [lessor.tasks.task(task) for task in blocking if not troubles.get(task)]
    running = [lease for lease in leases if lease.task not in ad_hoc]
    halts = {lease.id: halt_here(invocation, lease) for lease in running}
    landable = [t for t in results.tasks if not troubles[t.id] and t.id not in blocking]
    failed = lessor.tasks.tasks(repository=standing.id, states=[TaskState.FAILED], most=5)
    return Board(
        name=standing.name,
        branch=branch,
        commit=commit,
        now_ms=now,
        running=running,
        halts={lease: halt for lease, halt in halts.items() if halt is not None},
        holds=[lease for lease in leases if lease.task in ad_hoc and lease.live],
        waits=[(task, why) for task, why in whys if why.cause is not Cause.READY],
        blocked={task.id: block_words(invocation, task) for task, _ in whys},
        ready=[task for task, why in whys if why.cause is Cause.READY],
        queued=len(queued),
        needs_you=[
            *(task for task in tasks.values() if task.state in FOR_A_PERSON),
            *(task for task in results.tasks if troubles[task.id]),
            *(task for task in urgent if task.state is TaskState.SUCCEEDED),
        ],
        to_land=landable,
        troubles=troubles,
        behind=results.behind,
        unseen=results.unseen,
        blocking=blocking,
        sizes={task.id: _size(invocation, task) for task in landable[:MOST_SIZED]},
        failed=[task for task in failed if now - (task.finished_ms or 0) < RECENT_MS],
    )


def _where(checkout: Checkout | None) -> tuple[str, str]:
    if checkout is None:
        return "", ""
    branch = current_branch(checkout.cwd) or ""
    try:
        return branch, head_commit(checkout.cwd)
    except GitError:  # no commit yet
        return branch, ""


def _size(invocation: Invocation, task: Task) -> str:
    from lessor.cli.diff import size_text

    return size_text(changed_files(invocation, task))
