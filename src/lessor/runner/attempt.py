"""One lease, from its grant to its end: place, agent, judgement, fenced completion.

The heartbeat is the supervisor's, a process of its own; while there is none (the worktree is being
prepared) this process renews. Whatever happens, what the agent made is kept: on its branch, in its
worktree, or salvaged (`ending`).
"""

from __future__ import annotations

from dataclasses import replace

from lessor.errors import (
    AgentMissingError,
    BaseRedError,
    BusyError,
    DeniedError,
    GitError,
    HostError,
    LeaseLostError,
    LessorError,
    RemoteUnreachableError,
    StoreUnavailableError,
)
from lessor.model.grant import Grant
from lessor.model.lease import MINUTE, LeaseEnd
from lessor.model.workspace import WorkspaceState
from lessor.runner.agent_store import forget_passwords
from lessor.runner.baseline import Baseline
from lessor.runner.briefing import Errand
from lessor.runner.desk import Desk, Plan
from lessor.runner.ending import Ending, Work
from lessor.runner.following import Following, Last
from lessor.runner.gating import gate_commits
from lessor.runner.judging import Finding, Judge, Judgement
from lessor.runner.keeping import StoreLifeline
from lessor.runner.launching import launch, refuse_missing_program
from lessor.runner.lease_file import forget_holder, lease_file, write_holder
from lessor.runner.noting import NoteKind
from lessor.runner.outcome import Outcome
from lessor.runner.remote import Publishing
from lessor.runner.removed import is_there, of_removed
from lessor.runner.report import EventKind
from lessor.runner.salvaging import keep, move
from lessor.runner.stopping import Stopping
from lessor.runner.supervised import Supervised
from lessor.runner.tending import Tending
from lessor.runner.witness import SETUP_LOG
from lessor.runner.words import last_line, last_words, left_in, log_size
from lessor.runner.workplace import Place, Workplace

MOST_CRASHES = 5
_STOPPED = "stopped by a person"
_NO_TASK_NOW = (HostError, BaseRedError, DeniedError, AgentMissingError, RemoteUnreachableError)


class Attempt:
    """The run of one grant in one slot."""

    def __init__(
        self,
        desk: Desk,
        grant: Grant,
        *,
        agent: str,
        judge: Judge,
        baseline: Baseline,
        stopping: Stopping,
        sent_ms: int,
    ) -> None:
        self._desk = desk
        self._grant = grant
        self._agent = agent
        self._judge = judge
        self._baseline = baseline
        self._stopping = stopping
        self._sent_ms = sent_ms
        self._run_dir = desk.run_dir(grant.lease)
        self._lifeline = StoreLifeline(
            lambda: desk.lessor, grant.holder, lease_file(desk.tokens_dir, grant.lease)
        )
        self._ending = Ending(desk, grant, holder=lambda: self._lifeline.holder, tell=self._note)
        self._work = Work(take_back=self._take_back)
        self._publishing = Publishing(desk, holder=lambda: self._lifeline.holder, tell=self._note)
        self._supervised: Supervised | None = None

    def run(self) -> Outcome:
        """Work until the lease is over; never raises for what an agent, git or a check does.

        Raises:
            HostError, BaseRedError, DeniedError, AgentMissingError: no task of this run can be
                worked on. The lease was given back, and no attempt spent.
            RemoteUnreachableError: the same for now: the repository's fenced remote doesn't answer.
        """
        try:
            return self._try()
        except LeaseLostError as lost:
            return self._ending.lost(self._work, str(lost))
        except (StoreUnavailableError, BusyError) as silent:
            return self._ending.lost(self._work, f"the store doesn't answer: {silent}")
        finally:
            self._hang_up()
            forget_holder(self._lifeline.path)
            forget_passwords(self._desk, self._grant.lease)
            self._publishing.close()

    def _try(self) -> Outcome:
        try:
            return self._carry_out()
        except LeaseLostError:
            raise
        except (StoreUnavailableError, BusyError) as silent:
            return self._ending.release(self._work, why=last_line(str(silent)), hurried=True)
        except _NO_TASK_NOW as refused:
            self._ending.release(self._work, why=refused.message.partition("\n")[0], hurried=True)
            raise
        except OSError as error:
            raise self._give_back(self._desk.host_error(error)) from error
        except GitError as error:
            if self._stopping.now:  # by which git may have been stopped, too
                return self._ending.release(self._work, why=_STOPPED, hurried=True)
            return self._failed(error)
        except LessorError as error:
            return self._failed(error)

    def _failed(self, error: LessorError) -> Outcome:
        trouble = self._desk.trouble(error)
        if trouble is not None:
            raise self._give_back(trouble) from error
        text = f"{error}\n\n{error.facts.get('tail', '')}".strip()
        return self._ending.fail(self._work, text, fingerprint=error.code)

    def _give_back(self, trouble: HostError) -> HostError:
        self._ending.release(self._work, why=trouble.message, hurried=True)
        return trouble

    def _carry_out(self) -> Outcome:
        write_holder(self._lifeline.path, self._grant.holder)
        self._run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._note(NoteKind.CLAIMED, ", ".join(self._grant.scopes[:3]) or "grows")
        place, plan = self._prepare()
        if self._stopping.now:
            return self._ending.release(self._work, why=_STOPPED, hurried=True)
        errand = Errand(
            grant=self._grant,
            worktree=place.worktree,
            base=place.base,
            start=place.start,
            run_dir=self._run_dir,
            check=self._grant.check or plan.check,
        )
        refuse_missing_program(self._desk.options.command, place.worktree)
        while True:
            following = self._start(errand)
            outcome = self._after(following, following.to_the_end(), place)
            if outcome is not None:
                return outcome
            judgement = self._judged(following, errand, place, plan)
            outcome = self._weigh(following, judgement, plan)
            if outcome is not None:
                return outcome
            errand = self._again(errand, judgement)

    def _prepare(self) -> tuple[Place, Plan]:
        """Make the worktree ready; this process is the heartbeat meanwhile."""
        workplace = Workplace(self._desk, tell=self._note)
        with Tending(self._desk, self._lifeline, sent_ms=self._sent_ms) as tending:

            def interrupted() -> bool:
                return tending.over or self._stopping.now

            self._publishing.make_ready()
            place = workplace.take(self._grant)
            self._grant = place.grant
            self._work.workspace = place.workspace
            plan = self._desk.plan_at(place.plan_from)
            if self._grant.check is None:
                self._baseline.require(place.plan_from, plan, interrupted=interrupted)
            if not interrupted():
                log = self._run_dir / SETUP_LOG
                place = workplace.prepare(place, plan, log=log, interrupted=interrupted)
                self._work.workspace = place.workspace
            if not interrupted():
                gate_commits(self._desk, self._grant, place, tell=self._note)
        tending.refuse_lost()
        self._sent_ms = tending.sent_ms
        return place, plan

    def _start(self, errand: Errand) -> Following:
        self._work.round = errand.round
        self._log_begin = log_size(self._run_dir)
        agent = launch(self._desk, errand, self._lifeline, sent_ms=self._sent_ms)
        self._supervised = agent
        self._following = Following(agent, self._desk, tell=self._note, stopping=self._stopping)
        return self._following

    def _after(self, following: Following, last: Last, place: Place) -> Outcome | None:
        """What the end of the agent means; None where there is a result to judge."""
        work, ending = self._work, self._ending
        work.said = last_words(self._run_dir, since=self._log_begin)
        if last is not Last.GONE:
            return self._abandon(following, last)
        cut_short = self._cut_short(following)
        if cut_short is not None:
            return cut_short
        if following.signal is not None:
            return self._crashed(following, following.signal)
        if following.code != 0 and is_there(place):
            error = f"exited with {following.code}" + (f": {work.said}" if work.said else "")
            return ending.fail(work, error, fingerprint=f"exit {following.code}")
        self._note(NoteKind.ENDED, work.said)
        return None

    def _cut_short(self, following: Following) -> Outcome | None:
        """An end that the agent didn't come to by itself; None where it did."""
        work, ending = self._work, self._ending
        if following.cancelled:
            return ending.cancelled(work)
        if self._stopping.now:
            return ending.release(work, why=_STOPPED, hurried=True)
        if following.limit:
            error = f"ran into its {following.limit} limit"
            return ending.fail(work, error, fingerprint=f"limit {following.limit}")
        if following.unanswered:
            return ending.release(work, why="the store didn't answer")
        return None

    def _crashed(self, following: Following, number: int) -> Outcome:
        """The agent was killed by a signal that isn't ours: nothing it did is judged."""
        leases = self._desk.lessor.leases.leases(task=self._grant.task)
        crashes = sum(lease.end is LeaseEnd.GONE for lease in leases)
        if not following.proof or crashes >= MOST_CRASHES:
            error = f"was killed by signal {number}"
            return self._ending.fail(self._work, error, fingerprint=f"signal {number}")
        how = f"agent killed (signal {number}), proved gone"
        return self._ending.end_gone(self._work, following.proof, how=how)

    def _abandon(self, following: Following, last: Last) -> Outcome:
        """The lease was lost while the agent worked, or its witness was."""
        workspace, agent = self._work.workspace, self._supervised
        if last is Last.UNWITNESSED and agent is not None:
            agent.end_orphans()
            return self._ending.lost(self._work, "its supervisor died")
        if workspace is not None:
            # It is frozen. From its proved end on the worktree may be the next epoch's.
            keep(self._desk, workspace, tell=self._note)
            move(self._desk, workspace, WorkspaceState.DIRTY, why="its lease was lost")
            self._work.workspace = None
        self._end_agent()
        return self._ending.lost(self._work, following.loss)

    def _judged(self, following: Following, errand: Errand, place: Place, plan: Plan) -> Judgement:
        if not is_there(place):
            question = left_in(errand.outbox, "question")
            return of_removed(self._desk, self._grant, place, question=question)
        return self._judge.judge(
            errand,
            place,
            plan,
            tell=self._note,
            interrupted=lambda: following.is_over() or self._stopping.now,
        )

    def _weigh(self, following: Following, judgement: Judgement, plan: Plan) -> Outcome | None:
        """What a judgement leads to; None is another round."""
        if following.is_over():
            if following.cancelled:
                return self._ending.cancelled(self._work)
            raise LeaseLostError(following.loss)
        lacking = judgement.finding is Finding.LACKING
        if judgement.finding is Finding.UNFINISHED or (lacking and self._stopping.now):
            return self._ending.release(self._work, why=_STOPPED, hurried=True)
        if lacking and self._work.round < self._desk.options.rounds:
            return None
        changed = judgement.change is not None and judgement.change.own
        if plan.push and judgement.finding is Finding.GOOD and changed:
            # The supervisor still renews: a push may take longer than what is left of the term.
            judgement = self._publishing.push(judgement, self._grant.branch or "")
        return self._ending.settle(self._work, judgement)

    def _again(self, errand: Errand, judgement: Judgement) -> Errand:
        """The next round's errand; between two supervisors this process renews once."""
        self._take_back()
        self._sent_ms = self._desk.clock.boottime_ms()
        if self._ending.send(self._lifeline.renew).cancelled:
            raise LeaseLostError("The task was cancelled.")
        again = f"try {errand.round + 1} of {self._desk.options.rounds}"
        why = f"told the agent, {again}"
        said = f"{judgement.told.rstrip('.')}; {why}" if judgement.told else ""
        self._note(judgement.note, said or f"{why}: {last_line(judgement.text)}")
        feedback = judgement.text + judgement.advice
        return replace(errand, round=errand.round + 1, feedback=feedback)

    def _take_back(self) -> None:
        """Stop the heartbeat before anything that ends the lease is sent."""
        agent = self._supervised
        if agent is None:
            return
        self._end_agent()
        version = agent.done()
        # The file has what a supervisor that ended without a word, or the agent itself, renewed.
        self._lifeline.learn()
        if version is not None and version > self._lifeline.holder.version:
            self._lifeline.holder = replace(self._lifeline.holder, version=version)
        self._hang_up()

    def _end_agent(self) -> None:
        agent = self._supervised
        if agent is not None and not self._following.gone and agent.kill():
            agent.wait_event({EventKind.GONE, EventKind.UNPROVEN}, timeout_ms=MINUTE)

    def _hang_up(self) -> None:
        """Leave the supervisor alone: it ends what still lives, and nobody goes on renewing."""
        agent, self._supervised = self._supervised, None
        if agent is not None:
            agent.close()
            agent.wait(timeout_ms=MINUTE // 2)

    def _note(self, kind: NoteKind, text: str = "", /, **more: str | int) -> None:
        grant = self._grant
        self._desk.note(
            kind,
            text,
            number=grant.number,
            title=grant.title,
            agent=self._agent,
            epoch=grant.epoch,
            lease=grant.lease,
            task=grant.task,
            **more,
        )
