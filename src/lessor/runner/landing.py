"""Landing: a result is put on top of its target, checked there, and only then the target moves.

The person's checkout and index play no part in it. At each step what came before is only objects
and a kept reference: a crash leaves the target as it was, or moved with the record to come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lessor.errors import BusyError, ConflictError, NotFoundError
from lessor.git.advance import advance, refuse_unready
from lessor.git.lock import file_lock
from lessor.git.quoting import shown_path
from lessor.git.refs import BRANCHES, landing_ref, put_ref, read_ref
from lessor.git.replay import Replayed, replay
from lessor.git.target import Target
from lessor.model.lifecycle import is_terminal
from lessor.model.task import Stage, Task, TaskId
from lessor.runner.checks import Checks, how_it_ended
from lessor.runner.desk import Desk
from lessor.runner.settling import Settled, forget_landing, settle_landed
from lessor.runner.unpinning import drop_pins
from lessor.runner.words import kept_text, last_line, took_text

TRIES = 5
"""How often a landing begins again because the target moved meanwhile."""
_NAMED = 5
_TAIL = 2_000
_WAIT_MS = 1_000


class Came(StrEnum):
    """What came of one landing."""

    LANDED = "landed"
    THERE = "there already"
    CONFLICTS = "conflicts"
    CHECK_FAILED = "check failed"
    WAITS = "waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What came of landing one result.

    Attributes:
        text: in words, for people.
        old: where the target was.
        new: where it is now; None where it didn't move.
        conflicts: the paths that stand against each other.
        step: what helps then.
    """

    task: Task
    came: Came
    text: str = ""
    old: str = ""
    new: str | None = None
    conflicts: tuple[str, ...] = ()
    step: str = ""


class Lander:
    """Lands results of one repository on one branch, one after the other.

    Args:
        tell: called with what is being done, while it is.
    """

    def __init__(self, desk: Desk, *, branch: str, tell: Callable[[Task, str], None]) -> None:
        self._desk = desk
        self._branch = branch
        self._tell = tell
        self._checks = Checks(desk, slot=1)

    def land(self, tasks: Sequence[Task]) -> list[Landing]:
        """Land each result, those first on which others stand; one that can't holds up no other.

        Raises:
            NotFoundError: one has no result that could land, or the branch isn't there.
            ConflictError: the branch is checked out where it can't be moved, or is a result itself.
            BusyError: somebody else lands here.
            DeniedError: the target's configuration would run what nobody agreed to.
            GitError: git can't.
        """
        self._desk.worktrees_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file_lock(self._desk.worktrees_dir / "land.lock", wait_ms=_WAIT_MS):
            self._refuse_result(tasks)
            refuse_unready(self._desk.repo, self._branch)
            there = {one.task.id: one for one in self._settle()}
            left = [self._desk.lessor.tasks.task(task.id) for task in tasks]
            done = [self._there(task, there) for task in left if task.id in there or _is_in(task)]
            left = [task for task in left if task.id not in there and not _is_in(task)]
            while left:
                task = next((t for t in left if self._below(t) not in left), left[0])
                left.remove(task)
                done.append(self._land(task))
            return done

    def _refuse_result(self, tasks: Sequence[Task]) -> None:
        """A result's branch is no target: what came onto it would count as landed, and be nowhere."""
        results = self._desk.lessor.landings.all_results(repository=self._desk.repository)
        own = next((one for one in results if one.branch == self._branch), None)
        if own is None:
            return
        numbers = " ".join(str(task.number) for task in tasks)
        raise ConflictError(
            f"{self._branch} is a result itself, #{self._desk.lessor.tasks.task(own.task).number}, "
            "that hasn't landed: nothing lands on it.",
            next_step=f"Name the branch that it is for: lessor land {numbers} --onto BRANCH.",
            branch=self._branch,
        )

    def _settle(self) -> list[Settled]:
        desk = self._desk
        target = Target(name=self._branch, commit=self._tip())
        return settle_landed(
            desk.lessor, desk.repo.common_dir, repository=desk.repository, target=target
        )

    def _tip(self) -> str:
        tip = read_ref(self._desk.repo.common_dir, f"{BRANCHES}{self._branch}")
        if tip is None:
            raise NotFoundError(
                f"There is no branch {self._branch} here.",
                next_step="Name another: --onto BRANCH.",
                branch=self._branch,
            )
        return tip

    def _below(self, task: Task) -> Task | None:
        """The task on whose result this one stands, while that hasn't landed."""
        landings, tasks = self._desk.lessor.landings, self._desk.lessor.tasks
        (result,) = landings.results(task=task.id) or (None,)
        if result is None or result.on is None:
            return None
        return tasks.task(result.on) if landings.results(task=result.on, unfinished=True) else None

    def _land(self, task: Task) -> Landing:
        if not self._desk.lessor.landings.results(task=task.id):
            raise NotFoundError(
                f"#{task.number} has no result that could land.",
                next_step=f"See what became of it: lessor show {task.number}.",
                number=task.number,
            )
        below = self._below(task)
        if below is not None:
            return _waits(task, below)
        for _ in range(TRIES):
            landing = self._try(task)
            if landing is not None:
                return landing
            self._tell(task, f"{self._branch} has moved; once more")
        raise BusyError(
            f"{self._branch} moved {TRIES} times while #{task.number} was checked.",
            next_step=f"Land it again: lessor land {task.number}.",
            retry_ms=60_000,
        )

    def _try(self, task: Task) -> Landing | None:
        """Land on the target as it is now; None where it moved meanwhile."""
        desk, tip = self._desk, self._tip()
        self._tell(task, f"rebasing onto {self._branch}@{tip[:7]}")
        head = self._head(task)
        replayed = self._replay(task, head, tip)
        if replayed.commit is None:
            return self._conflicting(task, replayed, tip)
        if replayed.commit == tip:
            return self._of_nothing(task, head, tip)
        trouble, checked = self._check(task, replayed.commit, tip)
        if trouble:
            desk.lessor.landings.refused(task.id, trouble=trouble)
            step = f"lessor show {task.number}"
            return Landing(task=task, came=Came.CHECK_FAILED, text=trouble, old=tip, step=step)
        # From here on a crash is recovered: what is kept here and in the target has landed.
        put_ref(desk.repo.common_dir, landing_ref(task.id), replayed.commit)
        if not advance(desk.repo, branch=self._branch, old=tip, new=replayed.commit):
            return None
        self._record(task, replayed.commit, how=replayed.way)
        commits = "1 commit" if replayed.commits == 1 else f"{replayed.commits} commits"
        return Landing(
            task=task,
            came=Came.LANDED,
            text=f"{commits}, {checked}",
            old=tip,
            new=replayed.commit,
        )

    def _head(self, task: Task) -> str:
        """What lands: the branch's tip, as a person may have mended it; else the commit on record."""
        tip = read_ref(self._desk.repo.common_dir, f"{BRANCHES}{task.branch}")
        head = tip or task.commit or ""
        if head != task.commit:
            self._tell(task, f"its branch has moved since: {head[:7]}")
        return head

    def _of_nothing(self, task: Task, head: str, tip: str) -> Landing:
        """A head that adds nothing to the target: landed only where the result adds nothing either."""
        result = task.commit
        if result and head != result and self._replay(task, result, tip).commit != tip:
            text = (
                f"its branch {task.branch} has nothing that {self._branch} hasn't, and the result "
                f"{result[:7]} isn't there"
            )
            self._desk.lessor.landings.refused(task.id, trouble=text)
            step = f"git branch -f {task.branch} {result[:12]} && lessor land {task.number}"
            return Landing(task=task, came=Came.WAITS, text=text, old=tip, step=step)
        self._record(task, tip, how="equivalent")
        return Landing(task=task, came=Came.THERE, text=f"{self._branch} has it already", old=tip)

    def _replay(self, task: Task, head: str, tip: str) -> Replayed:
        desk = self._desk
        return replay(
            desk.repo,
            path=desk.worktrees_dir / "landing",
            head=head,
            base=task.base or tip,
            onto=tip,
        )

    def _conflicting(self, task: Task, replayed: Replayed, tip: str) -> Landing:
        paths = replayed.conflicts
        named = ", ".join(map(shown_path, paths[:_NAMED])) + (
            f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
        )
        text = f"conflicts with {self._branch}@{tip[:7]} in {named}"
        self._desk.lessor.landings.refused(task.id, trouble=text)
        return Landing(
            task=task,
            came=Came.CONFLICTS,
            text=text,
            old=tip,
            conflicts=paths,
            step=f"{self._mending(task, replayed.way)} && "
            f"lessor land {task.number} --onto {self._branch}",
        )

    def _mending(self, task: Task, way: str) -> str:
        """The command with which a person mends it where the branch lies.

        A rebase would leave out what a result's own merges hold.
        """
        places = self._desk.lessor.workspaces.of_task(task.id)
        here = [w for w in places if w.host_id == self._desk.host.id and w.branch == task.branch]
        verb = "rebase" if way == "rebased" else "merge"
        if here:
            return f"git -C {here[-1].path} {verb} {self._branch}"
        if verb == "merge":
            return f"git switch {task.branch} && git merge {self._branch}"
        return f"git rebase {self._branch} {task.branch}"

    def _check(self, task: Task, commit: str, tip: str) -> tuple[str, str]:
        """What the check found against the commit, and else how it was checked."""
        desk = self._desk
        plan = desk.plan_at(tip)
        check = task.check or plan.check
        if check is None:
            return "", "unverified: no check is configured"
        if commit == task.commit and task.base == tip and task.stage is Stage.VERIFIED:
            return "", "verified on this commit before"
        self._tell(task, f"checking: {check}")
        result = self._checks.run(
            check,
            plan,
            commit=commit,
            log=desk.state_dir / "landings" / f"{task.id}.log",
            env={"LESSOR_TASK": task.id, "LESSOR_COMMIT": commit},
        )
        if result.code == 0:
            return "", f"`{check}` passed in {took_text(result.duration_ms)}"
        said = last_line(kept_text(result.tail, most=_TAIL))
        told = f"the check `{check}` {how_it_ended(result)} on top of {self._branch}@{tip[:7]}"
        return f"{told}: {said}" if said else told, ""

    def _record(self, task: Task, commit: str, *, how: str) -> None:
        desk = self._desk
        desk.lessor.landings.landed(task.id, commit=commit, target=self._branch, how=how)
        forget_landing(desk.repo.common_dir, task.id)
        drop_pins(desk.lessor, desk.repo.common_dir, repository=desk.repository, only=[task.id])

    def _there(self, task: Task, there: Mapping[TaskId, Settled]) -> Landing:
        forget_landing(self._desk.repo.common_dir, task.id)
        one = there.get(task.id)
        text = f"{one.how}, in {one.commit[:7]}" if one else "landed before"
        return Landing(task=task, came=Came.THERE, text=text)


def _waits(task: Task, below: Task) -> Landing:
    text = f"stands on the result of #{below.number}, which has to land first"
    step = f"lessor land {below.number} {task.number}"
    if not is_terminal(below.state):
        text = f"stands on the work of #{below.number}, which isn't finished"
        step = f"lessor why {below.number}"
    return Landing(task=task, came=Came.WAITS, text=text, step=step)


def _is_in(task: Task) -> bool:
    return task.stage is Stage.LANDED
