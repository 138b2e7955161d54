"""`lessor drill --remote`: a worker is paused in the middle of a push, and the remote refuses it.

It runs at the person's own remote, with real processes, signals and pushes, on names of its own: a
task in the drill's queue, a branch that nobody else has, its leases' fence references. Two rounds,
as the late push may come before the newer result or after it. The judge is what the remote has.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from lessor.clock import Clock
from lessor.demo.drilled import PATIENCE_MS, DrilledWorker, Step
from lessor.demo.interrupting import undisturbed
from lessor.demo.left_behind import drill_folder, killed_drill
from lessor.demo.protection import Protection, see_protection
from lessor.demo.refusals import answer_text, refusal_text
from lessor.demo.scratch import Left, Scratch, make_scratch
from lessor.errors import GitError, LessorError
from lessor.git.fence import fence_ref
from lessor.git.push import Fate
from lessor.git.refs import BRANCHES
from lessor.git.repository import Repository
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant
from lessor.model.intent import UNDER_WAY_MS
from lessor.model.lease import MINUTE
from lessor.model.task import DRILL, NewTask
from lessor.model.worker import NewWorker
from lessor.publish.claiming import claim_ready
from lessor.publish.fencing import close_ended
from lessor.publish.pushing import REFUSED, Errand, publish
from lessor.publish.recovering import recover_one
from lessor.runner.proctable import process_row
from lessor.service.lessor import Lessor

LEASE_MS = 4_000
_BELOW = "chore/"
_ROUNDS = 2
_SHORT = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a drill at a remote came to.

    Attributes:
        refused: whether the remote refused every late push; None where it didn't come to one.
        passed: whether every step passed, to the last one.
        next_step: the one command that lets the remote refuse, where it doesn't.
    """

    refused: bool | None
    passed: bool
    protection: Protection
    next_step: str


class RemoteDrill:
    """One drill at one remote.

    Args:
        repository: the id of the repository whose remote it is.
        clone: a clone of it on this machine; only its configuration is read.
        remote: by name, URL or absolute path.
    """

    def __init__(
        self,
        lessor: Lessor,
        *,
        store_url: str,
        clock: Clock,
        say: Callable[[Step], None],
        repository: str,
        clone: Repository,
        remote: str,
    ) -> None:
        self._lessor = lessor
        self._store_url = store_url
        self._clock = clock
        self._say = say
        self._repository = repository
        self._clone = clone
        self._remote = remote
        self._failed = 0
        self._late: list[bool] = []
        self._fenced = lessor.registry.repository(repository).fence_remote is not None
        self._hooked: bool | None = None
        self._told = True
        self._leases: list[str] = []

    def run(self) -> Verdict:
        """Run every step, and take away what it made, also when it is interrupted.

        Raises:
            RemoteUnreachableError: the remote can't be asked; nothing was made.
        """
        name = f"{DRILL}-{new_token()[:8]}"
        branch = f"{_BELOW}{name}"
        with drill_folder(name) as folder:
            scratch = make_scratch(folder, self._clone, self._remote, branch=branch)
            self._clean_after_killed(scratch)
            wish = NewTask(
                title="drill: a late push",
                queue=DRILL,
                repository=self._repository,
                branch=branch,
                max_attempts=_ROUNDS + 1,
            )
            task = self._lessor.tasks.submit([wish])[0].task
            try:
                self._try(scratch, task)
                refused = all(self._late) if self._late else None
                protection = see_protection(scratch, fenced=self._fenced, hooked=self._hooked)
                return Verdict(
                    refused=refused,
                    passed=not self._failed and len(self._late) == _ROUNDS,
                    protection=protection,
                    next_step=protection.command if refused is False else "",
                )
            finally:
                with undisturbed():
                    self._clean(scratch, task)

    def _try(self, scratch: Scratch, task: str) -> None:
        try:
            self._steps(scratch, task)
        except LessorError as refused:
            self._step("the drill goes on", passed=False, detail=str(refused))

    def _steps(self, scratch: Scratch, task: str) -> None:
        on = scratch.commit("drill: where the work begins")
        for number in range(1, _ROUNDS + 1):
            with self._worker(scratch, task, number) as worker:
                claimed = self._claimed(worker)
                if claimed is None:
                    return
                if number == 1:
                    on = self._push_plainly(scratch, on)
                    first = scratch.commit("drill: the first result", parent=on)
                    if not self._push_first(scratch, worker, first):
                        return
                    on = first
                newer = self._round(scratch, task, worker, claimed, on, number)
                if newer is None:
                    return
                on = newer

    def _claimed(self, worker: DrilledWorker) -> dict[str, Any] | None:
        said = worker.heard("claimed", "nothing")
        claimed = said if said and said["what"] == "claimed" else None
        detail = f"epoch {claimed['epoch']}" if claimed else answer_text(said)
        self._step(
            f"worker A claims a task for {LEASE_MS} ms, and renews",
            passed=claimed is not None,
            detail=detail,
        )
        self._leases += [str(claimed["lease"])] if claimed else []
        return claimed

    def _push_plainly(self, scratch: Scratch, begin: str) -> str:
        """Find out whether hooks of Lessor's are there: they let nobody else push a leased branch.

        Returns:
            The commit that the worker's first result goes on from.
        """
        pushed = scratch.push_plainly(begin)
        self._hooked = any(REFUSED in line for line in pushed.said)
        if self._hooked:
            self._step("a plain `git push` to its branch is refused", passed=True)
        elif pushed.fate(scratch.ref) is Fate.MOVED:
            self._step("a plain `git push` to its branch is taken", passed=None)
            # A push with an option that isn't taken is made twice, and would be paused in the first.
            further = scratch.commit("drill: a push with an option", parent=begin)
            self._told = scratch.takes_options(further, on=begin)
            return further
        else:
            self._step(
                "a plain `git push` to its branch is taken",
                passed=False,
                detail=refusal_text(list(pushed.said)),
            )
        return begin

    def _push_first(self, scratch: Scratch, worker: DrilledWorker, commit: str) -> bool:
        self._tell(worker, "push", commit)
        said = worker.heard("push")
        taken = bool(said and said.get("taken")) and scratch.tip() == commit
        self._step(
            f"worker A pushes while its lease lives; {self._remote} takes it",
            passed=taken,
            detail=commit[:_SHORT] if taken else answer_text(said),
        )
        return taken

    def _round(
        self,
        scratch: Scratch,
        task: str,
        worker: DrilledWorker,
        claimed: dict[str, Any],
        on: str,
        number: int,
    ) -> str | None:
        """One pause, one recovery, one late push; the newer result, or None where that isn't there."""
        late = scratch.commit(f"drill: late result {number}", parent=on)
        newer = scratch.commit(f"drill: newer result {number}", parent=on)
        git = self._paused(scratch, worker, late)
        if git is None:
            return None
        if not (self._fenced or self._hooked):
            minutes = UNDER_WAY_MS // MINUTE
            text = f"a claim would wait {minutes} m for such a push; the drill doesn't"
            self._step(text, passed=None)
        grant = self._recover(scratch, task)
        passed = grant is not None and grant.epoch == claimed["epoch"] + 1
        passed = passed and grant is not None and grant.fence > claimed["fence"]
        self._step(
            "its lease runs out; worker B gets the task",
            passed=passed,
            detail=f"epoch {claimed['epoch']} -> {grant.epoch}, fence {claimed['fence']} -> {grant.fence}"
            if grant
            else "nobody could claim it",
        )
        if grant is None:
            return None
        newer_first = number == _ROUNDS
        if newer_first and not self._push_newer(scratch, grant, newer):
            return None
        os.kill(git, signal.SIGCONT)
        worker.resume()
        when = "after" if newer_first else "before"
        self._step(f"worker A is resumed (SIGCONT) {when} B has pushed", passed=True)
        self._judge(scratch, worker, late, stands=newer if newer_first else on)
        if not newer_first and not self._push_newer(scratch, grant, newer):
            return None
        self._step(
            f"{self._remote} holds the newer result",
            passed=scratch.tip() == newer,
            detail=newer[:_SHORT],
        )
        self._lessor.leases.release(grant.holder, reason="the drill goes on")
        return newer

    def _paused(self, scratch: Scratch, worker: DrilledWorker, late: str) -> int | None:
        """The process number of git, stopped in the middle of a push of `late`, as the worker is."""
        scratch.paused.unlink(missing_ok=True)
        self._tell(worker, "pause", late)
        said = worker.heard("quiet", "pause")
        git = int(scratch.paused.read_text()) if scratch.paused.exists() else None
        row = None
        until = self._clock.boottime_ms() + PATIENCE_MS
        while git is not None and self._clock.boottime_ms() < until:
            row = process_row(git)
            if row is None or row.stopped:
                break
            self._clock.wait(10)
        stopped = row is not None and row.stopped
        if stopped:
            worker.pause()
        self._step(
            "worker A is paused (SIGSTOP) in the middle of its next push",
            passed=stopped,
            detail=late[:_SHORT] if stopped else answer_text(said),
        )
        return git if stopped else None

    def _recover(self, scratch: Scratch, task: str) -> Grant | None:
        """The next holder's grant: its claim asks what became of the push, once the lease is over."""
        worker = self._lessor.registry.add_worker(NewWorker(agent="drill-b", kind="drill"))
        request = ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            queue=DRILL,
            repository=self._repository,
            task=task,
            ttl_ms=PATIENCE_MS * 2,
        )
        leases = self._lessor.leases
        until = self._clock.boottime_ms() + PATIENCE_MS
        while self._clock.boottime_ms() < until:
            self._settle(scratch, task)
            grants = claim_ready(
                self._lessor,
                scratch.cwd,
                self._repository,
                lambda wait: leases.claim(request, wait_ms=wait),
                give_back=lambda grant, why: leases.release(grant.holder, reason=why),
            )
            if grants:
                self._leases.append(grants[0].lease)
                return grants[0]
            self._clock.wait(200)
        return None

    def _settle(self, scratch: Scratch, task: str) -> None:
        for intent in self._lessor.intents.of_task(task):
            if intent.outcome is None and intent.over:
                with suppress(GitError):  # others of the repository may be asking, too
                    recover_one(self._lessor, scratch.cwd, intent, under_way_ms=0)

    def _push_newer(self, scratch: Scratch, grant: Grant, newer: str) -> bool:
        errand = Errand(
            repo=scratch.repo, remote=self._remote, ref=scratch.ref, commit=newer, judged=True
        )
        detail = newer[:_SHORT]
        try:
            publish(self._lessor, grant.holder, errand)
        except LessorError as refused:
            detail = refused.message
        taken = scratch.tip() == newer
        self._step("worker B pushes the newer result", passed=taken, detail=detail)
        return taken

    def _judge(self, scratch: Scratch, worker: DrilledWorker, late: str, *, stands: str) -> None:
        """Whether the remote has refused the late push: it has what it had, and it said so."""
        said = worker.heard("pause") or {}
        tip = scratch.tip()
        refused = tip == stands and bool(said.get("said"))
        self._late.append(refused)
        self._step(
            f"{self._remote} refuses its late push",
            passed=refused,
            detail=f"TAKEN: it has {late[:_SHORT]} now"
            if tip == late
            else refusal_text(said.get("said", [])) or answer_text(said),
        )

    @contextmanager
    def _worker(self, scratch: Scratch, task: str, number: int) -> Iterator[DrilledWorker]:
        scratch.paused.unlink(missing_ok=True)
        arguments = [
            *(task, self._repository, str(scratch.cwd), self._remote, scratch.ref),
            *(str(scratch.paused), str(LEASE_MS)),
        ]
        worker = DrilledWorker(
            "lessor.demo.late_pusher",
            arguments,
            store_url=self._store_url,
            words=scratch.paused.with_name(f"worker-{number}.jsonl"),
            clock=self._clock,
        )
        try:
            yield worker
        finally:
            worker.end()

    def _clean_after_killed(self, scratch: Scratch) -> None:
        """Take away what drills left that were killed on this machine."""
        for task in self._lessor.tasks.open_tasks(repository=self._repository):
            if task.queue != DRILL or not task.branch:
                continue
            with killed_drill(task.branch.removeprefix(_BELOW)) as killed:
                if killed:
                    self._step("an earlier drill was killed", passed=None, detail=task.branch)
                    self._leases = [one.id for one in self._lessor.leases.leases(task=task.id)]
                    self._clean(replace(scratch, ref=f"{BRANCHES}{task.branch}"), task.id)
        self._leases = []

    def _clean(self, scratch: Scratch, task: str) -> None:
        """Take away what the drill made, and say what couldn't be."""
        with suppress(LessorError):
            self._lessor.tasks.cancel([task], actor="drill", reason="the drill is over")
        with suppress(LessorError):
            self._settle(scratch, task)
        left: list[Left] = []
        with suppress(LessorError):
            close_ended(self._lessor, scratch.cwd, self._repository)
            open_still = {fence.lease for fence in self._lessor.fences.unclosed(self._repository)}
            left = [scratch.left(fence_ref(one)) for one in self._leases if one in open_still]
        left += scratch.take_away()
        for one in left:
            text = f"may be left at {self._remote}: {one.ref}"
            self._step(text, passed=None, detail=one.command)
        if not left:
            self._step(f"nothing of it is left at {self._remote}", passed=True)

    def _tell(self, worker: DrilledWorker, verb: str, commit: str) -> None:
        worker.say(" ".join([verb, commit, *([] if self._told else ["untold"])]))

    def _step(self, text: str, *, passed: bool | None, detail: str = "") -> None:
        self._failed += passed is False
        self._say(Step(text=text, passed=passed, detail=detail))
