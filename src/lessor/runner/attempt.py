"""One lease, from its grant to its end: place, agent, judgement, fenced completion.

The heartbeat is the supervisor's, a process of its own; while there is none (the worktree is being
prepared) this process renews. Authority is dropped before a completion is sent. Whatever happens,
what the agent made is kept: on its branch, in its worktree, or salvaged.
"""

from __future__ import annotations

from dataclasses import replace

from lessor.errors import AgentError, LeaseLostError, LessorError
from lessor.git.changes import diff_summary
from lessor.loop import PeriodicLoop
from lessor.model.grant import Failure, Grant, Result
from lessor.model.lease import Holder, LeaseEnd
from lessor.model.task import Stage
from lessor.runner.briefing import Errand, command_line, variables, write_brief
from lessor.runner.desk import Desk, Plan
from lessor.runner.judging import Finding, Judge, Judgement
from lessor.runner.lease_file import forget_holder, lease_file, read_holder, write_holder
from lessor.runner.noting import NoteKind
from lessor.runner.outcome import Outcome, last_words
from lessor.runner.report import Event, EventKind
from lessor.runner.spec import SupervisorSpec
from lessor.runner.stopping import Stopping
from lessor.runner.supervised import Supervised
from lessor.runner.workplace import Place, Workplace

POLL_MS = 200
MOST_CRASHES = 5
_LIFELINE = "lessor.runner.keeping:open_lifeline"


class Attempt:
    """The run of one grant in one slot."""

    def __init__(
        self,
        desk: Desk,
        grant: Grant,
        *,
        agent: str,
        judge: Judge,
        stopping: Stopping,
        sent_ms: int,
    ) -> None:
        self._desk = desk
        self._grant = grant
        self._agent = agent
        self._judge = judge
        self._stopping = stopping
        self._sent_ms = sent_ms
        self._workplace = Workplace(desk, tell=self._note)
        self._holder_path = lease_file(desk.tokens_dir, grant.lease)
        self._run_dir = desk.run_dir(grant.lease)
        self._place: Place | None = None
        self._round = 0

    def run(self) -> Outcome:
        """Work until the lease is over; never raises for what an agent, git or a check does."""
        write_holder(self._holder_path, self._grant.holder)
        self._run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._note(NoteKind.CLAIMED, ", ".join(self._grant.scopes) or "grows")
        try:
            place, plan = self._prepare()
            return self._work(place, plan)
        except LeaseLostError as lost:
            return self._lost(str(lost))
        except LessorError as error:
            return self._give_up(error)
        finally:
            forget_holder(self._holder_path)

    @property
    def _holder(self) -> Holder:
        return read_holder(self._holder_path)

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

    def _prepare(self) -> tuple[Place, Plan]:
        """Make the worktree ready; this process is the heartbeat meanwhile."""
        keeper = PeriodicLoop(
            self._renew, interval_ms=self._desk.options.terms.renew_every_ms, name="keeper"
        )
        keeper.start()
        try:
            place = self._workplace.take(self._grant)
            self._place = place
            plan = self._desk.plan_at(place.base)
            place = self._workplace.prepare(place, plan, log=self._run_dir / "setup.log")
        finally:
            keeper.stop()
        self._place = place
        self._note(NoteKind.PREPARED, str(place.worktree))
        return place, plan

    def _renew(self) -> None:
        sent_ms = self._desk.clock.boottime_ms()
        renewed = self._desk.lessor.leases.renew_one(self._holder)
        write_holder(self._holder_path, replace(self._holder, version=renewed.version))
        self._sent_ms = sent_ms

    def _work(self, place: Place, plan: Plan) -> Outcome:
        errand = Errand(
            grant=self._grant,
            worktree=place.worktree,
            base=place.base,
            start=place.start,
            run_dir=self._run_dir,
            check=self._grant.check or plan.check,
        )
        while True:
            agent = self._start(errand)
            try:
                ending = self._follow(agent, errand)
                if ending is not None:
                    return ending
                judgement = self._judge.judge(errand, place, plan, tell=self._note)
                if (
                    judgement.finding is not Finding.LACKING
                    or errand.round >= self._desk.options.rounds
                ):
                    return self._settle(agent, errand, judgement)
                self._take_back(agent)
                self._renew()
            finally:
                agent.close()  # whatever was raised: nobody goes on renewing for a run that is over
            again = f"try {errand.round + 1} of {self._desk.options.rounds}"
            self._note(
                NoteKind.CHECK_FAILED, f"told the agent, {again}: {_last_line(judgement.text)}"
            )
            errand = replace(errand, round=errand.round + 1, feedback=judgement.text)

    def _start(self, errand: Errand) -> Supervised:
        desk, options = self._desk, self._desk.options
        brief = write_brief(errand)
        holder = self._holder
        spec = SupervisorSpec(
            argv=command_line(options.command, errand=errand, brief=brief),
            cwd=str(errand.worktree),
            log=str(self._run_dir / "agent.log"),
            report=str(self._run_dir / f"report-{errand.round}.jsonl"),
            lifeline=_LIFELINE,
            lifeline_argument={
                "store": desk.store_url,
                "listen": desk.listen_dsn,
                "lease_file": str(self._holder_path),
            },
            version=holder.version,
            sent_ms=self._sent_ms,
            terms=options.terms,
            host_id=desk.host.id,
            limits=options.limits,
            patience=options.patience,
            env={
                **options.env,
                **variables(errand, store_url=desk.store_url, lease_file=self._holder_path),
            },
        )
        return Supervised.start(spec, clock=desk.clock)

    def _follow(self, agent: Supervised, errand: Errand) -> Outcome | None:
        """Watch the agent to its end; an outcome where there is nothing to judge."""
        stop_sent = False
        while True:
            for event in agent.poll_events():
                self._tell(agent, event)
                if event.kind is EventKind.LOST:
                    return self._abandon(agent, str(event.facts.get("reason", "")))
                if event.kind in {EventKind.GONE, EventKind.UNPROVEN}:
                    return self._after(agent, errand, proof=str(event.facts.get("proof", "")))
            if self._stopping.now and not stop_sent:
                stop_sent = agent.stop()
            if agent.status() is not None:
                return self._unwitnessed(agent)
            self._desk.clock.wait(POLL_MS)

    def _tell(self, agent: Supervised, event: Event) -> None:
        match event.kind:
            case EventKind.STARTED:
                self._note(NoteKind.STARTED, pid=int(event.facts["pid"]), supervisor=agent.pid)
            case EventKind.QUIET_WARNING:
                left = int(event.facts["limit_ms"]) - int(event.facts["quiet_ms"])
                self._note(
                    NoteKind.QUIET, f"no sign of progress; it is stopped in {left // 1000} s"
                )
            case EventKind.LIMIT:
                self._note(NoteKind.LIMIT, f"the {event.facts['kind']} limit is reached")
            case EventKind.FAILED:
                raise AgentError(
                    str(event.facts["message"]), next_step="Check the command after `--`."
                )
            case _:
                pass

    def _after(self, agent: Supervised, errand: Errand, *, proof: str) -> Outcome | None:
        """What the end of the agent's tree means: None is a result to judge."""
        seen = {event.kind: event for event in agent.events}
        if EventKind.CANCELLED in seen:
            return self._cancelled(agent)
        if self._stopping.now:
            return self._stopped(agent)
        limit = seen.get(EventKind.LIMIT)
        if limit is not None:
            return self._failed(
                agent,
                errand,
                f"ran into its {limit.facts['kind']} limit",
                fingerprint=f"limit {limit.facts['kind']}",
            )
        exited = seen.get(EventKind.EXITED)
        code = exited.facts.get("code") if exited else None
        number = exited.facts.get("signal") if exited else None
        if number is not None:
            return self._crashed(agent, errand, int(number), proof=proof)
        if code != 0:
            return self._failed(
                agent,
                errand,
                f"exited with {code}: {last_words(self._run_dir)}",
                fingerprint=f"exit {code}",
            )
        self._note(NoteKind.ENDED, last_words(self._run_dir))
        return None

    def _settle(self, agent: Supervised, errand: Errand, judgement: Judgement) -> Outcome:
        """End the lease with what was judged; authority is dropped before it is sent."""
        said = last_words(self._run_dir)
        result = Result(
            stage=judgement.stage,
            said=said,
            base=errand.base,
            commit=judgement.commit,
            no_change=judgement.text
            if judgement.finding is Finding.GOOD and judgement.text
            else None,
            facts={
                "rounds": errand.round,
                "check_ms": judgement.check_ms,
                **self._size(errand, judgement),
            },
        )
        self._take_back(agent)
        leases = self._desk.lessor.leases
        if judgement.finding is Finding.GOOD:
            leases.complete_one(self._holder, result)
            verified = judgement.stage is Stage.VERIFIED
            self._note(
                NoteKind.VERIFIED if verified else NoteKind.UNVERIFIED, judgement.commit[:12]
            )
            outcome = Outcome.VERIFIED if verified else Outcome.UNVERIFIED
        elif judgement.finding is Finding.EMPTY and not said.endswith("?"):
            leases.fail(
                self._holder, Failure(error=judgement.text, fingerprint="empty diff", result=result)
            )
            self._note(NoteKind.FAILED, judgement.text)
            outcome = Outcome.FAILED
        else:
            question = said if judgement.finding is Finding.EMPTY else judgement.text
            leases.ask(self._holder, question[:8_000], result=result)
            self._note(NoteKind.ASKED, _last_line(question))
            outcome = Outcome.ASKED
        return self._leave(outcome)

    def _size(self, errand: Errand, judgement: Judgement) -> dict[str, int]:
        changes = diff_summary(self._desk.repo.common_dir, errand.base, judgement.commit)
        return {
            "files": len(changes),
            "added": sum(change.added or 0 for change in changes),
            "removed": sum(change.removed or 0 for change in changes),
        }

    def _failed(
        self, agent: Supervised, errand: Errand, error: str, *, fingerprint: str
    ) -> Outcome:
        self._salvage()
        self._take_back(agent)
        result = Result(
            stage=Stage.NONE,
            said=last_words(self._run_dir),
            base=errand.base,
            facts={"rounds": errand.round},
        )
        self._desk.lessor.leases.fail(
            self._holder, Failure(error=error, fingerprint=fingerprint, result=result)
        )
        self._note(NoteKind.FAILED, error)
        return self._leave(Outcome.FAILED)

    def _crashed(self, agent: Supervised, errand: Errand, number: int, *, proof: str) -> Outcome:
        """The agent was killed by a signal that isn't ours: nothing it did is judged, no attempt spent."""
        ends = [lease.end for lease in self._desk.lessor.leases.leases(task=self._grant.task)]
        if not proof or ends.count(LeaseEnd.GONE) >= MOST_CRASHES:
            return self._failed(
                agent, errand, f"was killed by signal {number}", fingerprint=f"signal {number}"
            )
        self._salvage()
        self._take_back(agent)
        self._desk.lessor.leases.end_gone(self._grant.task, epoch=self._grant.epoch, proof=proof)
        self._note(NoteKind.KILLED, f"agent killed (signal {number}), proved gone")
        return self._leave(Outcome.KILLED)

    def _cancelled(self, agent: Supervised) -> Outcome:
        self._salvage()
        self._hang_up(agent)
        self._desk.lessor.leases.acknowledge(self._holder)
        self._note(NoteKind.CANCELLED)
        return self._leave(Outcome.CANCELLED)

    def _stopped(self, agent: Supervised) -> Outcome:
        self._salvage()
        self._take_back(agent)
        self._desk.lessor.leases.release(self._holder, reason="stopped by a person")
        self._note(NoteKind.STOPPED, "kept everything; no attempt used")
        return self._leave(Outcome.STOPPED)

    def _abandon(self, agent: Supervised, reason: str) -> Outcome:
        """The lease was lost while the agent worked: it is frozen; keep what it made, then end it."""
        self._salvage()
        agent.kill()
        agent.wait_event({EventKind.GONE, EventKind.UNPROVEN}, timeout_ms=60_000)
        self._hang_up(agent)
        return self._lost(reason)

    def _unwitnessed(self, agent: Supervised) -> Outcome:
        """The supervisor itself is gone: nobody can prove anything, so the lease ends by expiry."""
        agent.end_orphans()
        self._salvage()
        return self._lost("its supervisor died")

    def _lost(self, reason: str) -> Outcome:
        self._salvage()
        self._note(NoteKind.LOST, reason)
        return self._leave(Outcome.LOST)

    def _give_up(self, error: LessorError) -> Outcome:
        """Something of this host stood in the way: the lease goes back, what there is stays."""
        self._salvage()
        failure = Failure(
            error=str(error),
            fingerprint=error.code,
            result=Result(stage=Stage.NONE, error=str(error)),
        )
        try:
            self._desk.lessor.leases.fail(self._holder, failure)
        except LeaseLostError as lost:
            return self._lost(str(lost))
        self._note(NoteKind.FAILED, str(error))
        return self._leave(Outcome.FAILED)

    def _salvage(self) -> None:
        if self._place is not None:
            self._workplace.keep(self._place.workspace)

    def _take_back(self, agent: Supervised) -> None:
        """Stop the heartbeat before anything that ends the lease is sent."""
        version = agent.done()
        self._hang_up(agent)
        if version is not None:
            write_holder(self._holder_path, replace(self._holder, version=version))

    @staticmethod
    def _hang_up(agent: Supervised) -> None:
        agent.close()
        agent.wait(timeout_ms=30_000)

    def _leave(self, outcome: Outcome) -> Outcome:
        """Give the worktree back: apart from the lease, and only where that loses nothing."""
        if self._place is not None:
            word = (
                self._workplace.give_back(self._place.workspace)
                if outcome.is_result
                else self._workplace.leave(self._place.workspace)
            )
            self._note(NoteKind.KEPT, word)
        return outcome


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.strip().splitlines()) if line.strip()), "")[:200]
