"""The supervisor: starts an agent, renews its lease, and is the witness of its end.

Run as `python -m lessor.runner.supervisor SPEC.json`. It is a process of its own, in a session of
its own, so that neither a busy runner nor a closed terminal stops the heartbeat. Its runner holds
the other end of its stdin and says `stop`, `kill`, `freeze`, `thaw` or `done`, a line each; when
the pipe closes the runner is gone. What happens is written to the report (`EventKind`).

The agent's tree and the lease are two stories that meet in few places:

    tree   runs -> ending -> gone                  the lease is renewed all the while,
    lease  held <-> frozen -> lost | dropped       also while the runner checks the result

It exits with 0 when the runner said `done` or the proof was recorded, with 7 when the lease was
lost, with 75 when the proof could only be written to the report, with 1 when nothing was started.
It imports little and stays small: one of them runs beside every agent.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from lessor.clock import Clock, SystemClock
from lessor.errors import AgentError, LeaseLostError, LessorError, StoreUnavailableError
from lessor.runner.agent_run import AgentRun, EndReason, Hold
from lessor.runner.agent_tree import AgentTree, start_agent
from lessor.runner.authority import Authority, Standing
from lessor.runner.calls import StoreCalls
from lessor.runner.cgroup import make_cgroup
from lessor.runner.heartbeat import Heartbeat, Wishes
from lessor.runner.host import become_subreaper, this_host
from lessor.runner.inbox import RUNNER_GONE, Inbox
from lessor.runner.report import EventKind, ReportWriter
from lessor.runner.spec import SupervisorSpec

STDIN = 0
LONGEST_PAUSE_MS = 1_000
"""A wait doesn't count a suspend, so it is kept short: authority is judged soon after waking."""


class Supervisor:
    """One agent, one lease, one runner."""

    def __init__(
        self,
        spec: SupervisorSpec,
        agent: AgentRun,
        heartbeat: Heartbeat,
        *,
        inbox: Inbox,
        report: ReportWriter,
        clock: Clock,
    ) -> None:
        self._terms = spec.terms
        self._patience = spec.patience
        self._agent = agent
        self._heartbeat = heartbeat
        self._inbox = inbox
        self._report = report
        self._clock = clock
        self._standing = Standing.HELD
        self._cancelled = False
        self._runner_gone = False
        self._hand_over_until: int | None = None

    def run(self) -> int:
        """Watch until both stories are at their end; returns the exit code."""
        try:
            while (code := self._conclude()) is None:
                words = self._inbox.wait(self._pause_ms())
                # Before anything else: this machine, or this process alone, may have slept. What
                # came in meanwhile is heard first, it may say that the lease was renewed in time.
                self._grant(self._heartbeat.hear())
                self._judge()
                for word in words:
                    self._obey(word)
                self._agent.step()
                self._bear_witness()
                self._heartbeat.beat()
                self._report.flush()
        finally:
            self._agent.abandon()
        return code

    def _pause_ms(self) -> int:
        return min(LONGEST_PAUSE_MS, self._heartbeat.until_beat_ms(), self._agent.until_step_ms())

    def _judge(self) -> None:
        standing = self._heartbeat.judge()
        if standing is self._standing:
            return
        self._standing = standing
        if standing is Standing.FROZEN:
            self._agent.freeze(Hold.DEADLINE)
        elif standing is Standing.HELD:
            self._agent.thaw(Hold.DEADLINE)
        elif standing is Standing.LOST:
            self._agent.await_salvage()
            self._report.append(EventKind.LOST, reason=self._heartbeat.loss)

    def _obey(self, word: str) -> None:
        match word:
            case "stop":
                self._agent.end(EndReason.STOP, grace_ms=self._patience.grace_ms)
            case "kill":
                self._agent.end(EndReason.KILL, grace_ms=0)
            case "freeze":
                self._agent.freeze(Hold.RUNNER)
            case "thaw":
                self._agent.thaw(Hold.RUNNER)
            case "done" if self._agent.gone:
                self._heartbeat.drop()
                self._hand_over_until = self._clock.boottime_ms() + self._terms.margin_ms
            case "done":
                self._report.append(EventKind.IGNORED, command=word, reason="the agent lives")
            case _ if word == RUNNER_GONE:
                self._lose_runner()
            case _:
                self._report.append(EventKind.IGNORED, command=word, reason="unknown")

    def _lose_runner(self) -> None:
        self._runner_gone = True
        self._heartbeat.drop()
        self._agent.end(EndReason.RUNNER_GONE, grace_ms=self._patience.lost_grace_ms)

    def _grant(self, wishes: Wishes) -> None:
        if wishes.cancelled and not self._cancelled:
            self._cancelled = True
            # A cancel has revoked the lease already; there is nothing left to renew.
            self._heartbeat.drop()
            self._report.append(EventKind.CANCELLED)
            self._agent.end(EndReason.CANCELLED, grace_ms=self._patience.grace_ms)
        elif wishes.stop:
            self._agent.end(EndReason.ASKED, grace_ms=self._patience.grace_ms)
        # Once it is frozen only a refusal or silence for the margin ends it: after a suspend the
        # network may need longer than three attempts.
        if self._heartbeat.exhausted and self._standing is Standing.HELD:
            self._agent.end(EndReason.UNANSWERED, grace_ms=self._patience.grace_ms)

    def _bear_witness(self) -> None:
        # After `done` the runner completes by itself; its pipe closing then means nothing.
        if self._runner_gone and self._hand_over_until is None and self._agent.proof:
            self._heartbeat.record(self._agent.proof, within_ms=self._terms.ttl_ms)

    def _conclude(self) -> int | None:
        if not self._agent.gone:
            return None
        lost = LeaseLostError.exit_code if self._standing is Standing.LOST else 0
        if self._hand_over_until is not None:
            return self._handed_over(lost)
        if not self._runner_gone:
            return None
        if not self._agent.proof:
            return StoreUnavailableError.exit_code
        recorded = self._heartbeat.recorded()
        if recorded is None:
            return None
        return lost if recorded else StoreUnavailableError.exit_code

    def _handed_over(self, code: int) -> int | None:
        late = self._clock.boottime_ms() >= (self._hand_over_until or 0)
        if self._heartbeat.in_flight and not late:
            return None
        self._report.append(
            EventKind.HANDED_OVER,
            version=self._heartbeat.version,
            in_flight=self._heartbeat.in_flight,
        )
        return code


def supervise(spec: SupervisorSpec) -> int:
    """Start the agent and watch it to its end; returns the exit code."""
    clock = SystemClock()
    with closing(ReportWriter(spec.report, clock)) as report:
        inbox = Inbox(STDIN)
        try:
            supervisor = _begin(spec, inbox=inbox, report=report, clock=clock)
        except LessorError as error:
            report.append(EventKind.FAILED, code=error.code, message=str(error))
            return error.exit_code
        return supervisor.run()


def main(arguments: list[str]) -> int:
    """Run with the path of a spec, which is removed once it was read."""
    # One token a renewal is hashed here, and OpenSSL would cost 3.5 MB beside every agent: hashlib
    # has its own algorithms for when there is none.
    sys.modules["_hashlib"] = None  # type: ignore[assignment]
    try:
        return supervise(SupervisorSpec.take(Path(arguments[0])))
    except LessorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def _begin(spec: SupervisorSpec, *, inbox: Inbox, report: ReportWriter, clock: Clock) -> Supervisor:
    authority = Authority(
        spec.terms, clock=clock, version=spec.version, sent_ms=spec.sent_ms, phase=spec.phase
    )
    calls = StoreCalls(spec.open_lifeline(), wake=inbox.wake)
    tree = _start(spec)
    _report_start(spec, tree, report)
    heartbeat = Heartbeat(
        authority,
        calls,
        clock=clock,
        report=report,
        watch_every_ms=spec.patience.watch_every_ms,
    )
    agent = AgentRun(tree, spec, clock=clock, report=report)
    return Supervisor(spec, agent, heartbeat, inbox=inbox, report=report, clock=clock)


def _start(spec: SupervisorSpec) -> AgentTree:
    cgroup = make_cgroup(f"agent-{os.getpid()}") if spec.own_cgroup else None
    try:
        return start_agent(
            spec.argv,
            cwd=spec.cwd,
            env=spec.agent_environment(os.environ),
            log=spec.log,
            adopts=become_subreaper(),
            cgroup=cgroup,
        )
    except AgentError:
        if cgroup is not None:
            cgroup.remove()
        raise


def _report_start(spec: SupervisorSpec, tree: AgentTree, report: ReportWriter) -> None:
    host = this_host(spec.host_id)
    agent, own = host.identify(tree.pid), host.identify(os.getpid())
    report.append(
        EventKind.STARTED,
        pid=tree.pid,
        identity=None if agent is None else asdict(agent),
        supervisor=None if own is None else asdict(own),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
