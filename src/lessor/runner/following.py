"""Following one supervised agent: its supervisor's events become notes, and facts about its end."""

from __future__ import annotations

from enum import StrEnum

from lessor.errors import AgentError
from lessor.runner.agent_run import EndReason
from lessor.runner.desk import Desk
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.progress import awake_ms
from lessor.runner.report import Event, EventKind
from lessor.runner.stopping import Stopping
from lessor.runner.supervised import Supervised
from lessor.runner.words import span_text

POLL_MS = 200


class Last(StrEnum):
    """How following an agent ended."""

    GONE = "gone"  # the agent and all that it started, as far as this host can tell
    LOST = "lost"  # the lease is; the agent is frozen until it is killed
    UNWITNESSED = "unwitnessed"  # the supervisor died without a word


class Following:
    """One round of an agent.

    Attributes:
        proof: how it is known that the agent's whole tree is gone; empty where it isn't.
        gone: whether the agent has ended.
        code: its exit code; None where a signal ended it.
        signal: the signal that ended it.
        limit: the time limit that it ran into, if any.
        cancelled: whether a person cancelled the task.
        unanswered: whether it was ended because the store didn't answer its heartbeat.
        loss: why the lease is lost; empty while it isn't.
    """

    def __init__(self, agent: Supervised, desk: Desk, *, tell: Tell, stopping: Stopping) -> None:
        self.proof = ""
        self.gone = False
        self.code: int | None = None
        self.signal: int | None = None
        self.limit = ""
        self.cancelled = False
        self.unanswered = False
        self.loss = ""
        self._agent = agent
        self._clock = desk.clock
        self._silence_ms = desk.options.terms.ttl_ms + desk.options.patience.lost_ms
        self._tell = tell
        self._stopping = stopping
        self._heard = awake_ms(desk.clock)

    def to_the_end(self) -> Last:
        """Wait until there is nothing more to follow.

        Raises:
            AgentError: the agent couldn't be started.
        """
        asked = False
        while True:
            # Asked first: what it wrote before its end is then read in this same round.
            ended = self._agent.status() is not None
            self.look()
            if self.loss:
                return Last.LOST
            if self.gone:
                return Last.GONE
            if ended:
                return Last.UNWITNESSED
            if self._stopping.now and not asked:
                asked = self._agent.stop()
            if self._is_silent():
                # Stopped, or stuck: a living one reports each renewal. The agent dies with it.
                self._agent.kill_supervisor()
            self._clock.wait(POLL_MS)

    def is_over(self) -> bool:
        """Whether the lease was lost or the task cancelled by now."""
        self.look()
        return bool(self.loss) or self.cancelled

    def look(self) -> None:
        """Take in what the supervisor has reported since the last look.

        Raises:
            AgentError: the agent couldn't be started.
        """
        for event in self._agent.poll_events():
            self._heard = awake_ms(self._clock)
            self._learn(event)

    def _is_silent(self) -> bool:
        return awake_ms(self._clock) - self._heard > self._silence_ms

    def _learn(self, event: Event) -> None:
        facts = event.facts
        match event.kind:
            case EventKind.STARTED:
                self._tell(NoteKind.STARTED, pid=int(facts["pid"]), supervisor=self._agent.pid)
            case EventKind.QUIET_WARNING:
                left = span_text(int(facts["limit_ms"]) - int(facts["quiet_ms"]))
                self._tell(NoteKind.QUIET, f"no sign of progress; it is stopped in {left}")
            case EventKind.LIMIT:
                self.limit = str(facts["kind"])
                self._tell(NoteKind.LIMIT, f"the {self.limit} limit is reached")
            case EventKind.FAILED:
                raise AgentError(str(facts["message"]), next_step="Check the command after `--`.")
            case EventKind.CANCELLED:
                self.cancelled = True
            case EventKind.LOST:
                self.loss = str(facts.get("reason") or "the lease is over")
            case EventKind.STOPPING:
                self.unanswered |= facts.get("reason") == EndReason.UNANSWERED
            case _:
                self._learn_the_rest(event)

    def _learn_the_rest(self, event: Event) -> None:
        match event.kind:
            case EventKind.MOVED:
                self._tell(NoteKind.MOVED)
            case EventKind.EXITED:
                self.code, self.signal = event.facts.get("code"), event.facts.get("signal")
            case EventKind.GONE:
                self.gone, self.proof = True, str(event.facts.get("proof", ""))
            case EventKind.UNPROVEN:
                self.gone = True
            case _:
                pass
