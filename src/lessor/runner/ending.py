"""The ends of an attempt: what is kept, what is sent, what is said, in that order.

Work is salvaged while nobody else can have the worktree. Authority is dropped before anything that
ends the lease is sent. What is sent is sent again while the store doesn't answer, until the lease
would be over anyway; then its result stays on the branch, for whoever comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from lessor.errors import LeaseLostError, LessorError, TransitionRefusedError
from lessor.model.grant import Failure, Grant, Result
from lessor.model.lease import SECOND, Holder, LeaseEnd
from lessor.model.lifecycle import TaskState
from lessor.model.task import Stage
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.asking import answered
from lessor.runner.desk import Desk
from lessor.runner.judging import Finding, Judgement
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.outcome import Outcome
from lessor.runner.salvaging import give_back, keep, move
from lessor.runner.words import first_line, kept_text, last_line, span_text

LONGEST_QUESTION = 8_000
HURRIED_MS = 5 * SECOND
"""How long an end is sent again when a person wants the run to stop."""

T = TypeVar("T")

# An agent holds the token too, and may end its lease by itself.
_BY_THE_AGENT: Mapping[LeaseEnd, tuple[Outcome, NoteKind]] = {
    LeaseEnd.COMPLETED: (Outcome.UNVERIFIED, NoteKind.UNVERIFIED),
    LeaseEnd.ASKED: (Outcome.ASKED, NoteKind.ASKED),
    LeaseEnd.FAILED: (Outcome.FAILED, NoteKind.FAILED),
    LeaseEnd.RELEASED: (Outcome.STOPPED, NoteKind.STOPPED),
    LeaseEnd.CANCELLED: (Outcome.CANCELLED, NoteKind.CANCELLED),
}

_TAKEN: Mapping[LeaseEnd, str] = {
    LeaseEnd.LAPSED: "its time ran out",
    LeaseEnd.FORCED: "a person released it by force",
    LeaseEnd.REWOUND: "the store was restored",
}


@dataclass(slots=True, kw_only=True)
class Work:
    """What an attempt has to show so far.

    Attributes:
        said: the agent's last words.
        take_back: takes the lease back from the supervisor; nothing where there is none.
    """

    workspace: Workspace | None = None
    round: int = 1
    said: str = ""
    take_back: Callable[[], None] = field(default=lambda: None)


class Ending:
    """Ends one lease, one way or another."""

    def __init__(
        self, desk: Desk, grant: Grant, *, holder: Callable[[], Holder], tell: Tell
    ) -> None:
        """Begin with a grant.

        Args:
            desk: the run's surroundings.
            grant: what is ended.
            holder: the holder with the newest version that the heartbeat handed over.
            tell: tells about this attempt.
        """
        self._desk = desk
        self._grant = grant
        self._holder = holder
        self._tell = tell

    def settle(self, work: Work, judgement: Judgement) -> Outcome:
        """End with what was judged."""
        result = Result(
            stage=judgement.stage,
            said=work.said,
            base=None if work.workspace is None else work.workspace.base,
            commit=judgement.commit,
            no_change=judgement.text or None if judgement.finding is Finding.GOOD else None,
            facts={
                "rounds": work.round,
                "check_ms": judgement.check_ms,
                **({} if judgement.change is None else judgement.change.size),
                **({"pushed": judgement.pushed} if judgement.pushed else {}),
            },
        )
        if judgement.finding is Finding.GOOD:
            return self._complete(work, judgement, result)
        asks = work.said.endswith("?")
        if judgement.finding is Finding.EMPTY and not asks:
            return self.fail(work, judgement.text, fingerprint="empty diff", result=result)
        question = work.said if judgement.finding is Finding.EMPTY else judgement.text
        if judgement.finding is Finding.LACKING:
            rounds = "one round" if work.round == 1 else f"{work.round} rounds"
            question = f"After {rounds}: {judgement.told or question} {judgement.step}".rstrip()
        self._put_down(work)
        self.send(
            lambda: self._desk.lessor.leases.ask(
                self._holder(), kept_text(question, most=LONGEST_QUESTION), result=result
            )
        )
        self._tell(NoteKind.ASKED, first_line(question))
        return Outcome.ASKED

    def fail(
        self, work: Work, error: str, *, fingerprint: str, result: Result | None = None
    ) -> Outcome:
        """End as failed: an attempt is spent, and the next one waits for a while."""
        self._put_down(work)
        failure = Failure(
            error=kept_text(error, most=LONGEST_QUESTION),
            fingerprint=fingerprint,
            result=result or Result(stage=Stage.NONE, said=work.said, facts={"rounds": work.round}),
        )
        ended = self.send(lambda: self._desk.lessor.leases.fail(self._holder(), failure))
        self._tell(NoteKind.FAILED, kept_text(error, most=LONGEST_QUESTION))
        if ended.state is TaskState.QUEUED and ended.run_at_ms is not None:
            wait_ms = max(0, ended.run_at_ms - self._desk.lessor.now_ms())
            self._tell(NoteKind.AGAIN, f"in {span_text(wait_ms)} at the earliest")
        return Outcome.FAILED

    def end_gone(self, work: Work, proof: str, *, how: str) -> Outcome:
        """End with the proof that the agent is gone: no attempt is spent, the worktree is adopted."""
        self._put_down(work)

        def end() -> None:
            grant = self._grant
            self._desk.lessor.leases.end_gone(grant.task, epoch=grant.epoch, proof=proof)

        try:
            self.send(end)
        except TransitionRefusedError as refused:
            # Either the first try's answer was lost, or it ran out first and the next claim ends it.
            if self._desk.lessor.leases.lease(self._grant.lease).end is not LeaseEnd.GONE:
                raise LeaseLostError(refused.message, next_step=refused.next_step) from refused
        self._tell(NoteKind.KILLED, how)
        return Outcome.KILLED

    def release(self, work: Work, *, why: str, hurried: bool = False) -> Outcome:
        """Give the lease back unfinished: everything is kept, and no attempt is spent."""
        why = kept_text(why, most=LONGEST_QUESTION)
        self._put_down(work)
        self.send(
            lambda: self._desk.lessor.leases.release(self._holder(), reason=why),
            hurried=hurried,
        )
        self._tell(NoteKind.STOPPED, f"{why.rstrip('.')}; everything is kept, no attempt used")
        return Outcome.STOPPED

    def cancelled(self, work: Work) -> Outcome:
        """Acknowledge that a person cancelled the task."""
        self._put_down(work)
        self.send(lambda: self._desk.lessor.leases.acknowledge(self._holder()))
        self._tell(NoteKind.CANCELLED)
        return Outcome.CANCELLED

    def lost(self, work: Work, reason: str) -> Outcome:
        """The lease is over, or nobody can be asked: keep what there is, and say how it ended."""
        self._put_down(work, take_back=False)
        end = None
        try:
            end = self._desk.lessor.leases.lease(self._grant.lease).end
            if end is LeaseEnd.CANCELLED:
                self._desk.lessor.leases.acknowledge(self._holder())
        except LessorError:
            pass  # the store is away; what is known is the reason
        outcome, kind = _BY_THE_AGENT.get(end or LeaseEnd.LAPSED, (Outcome.LOST, NoteKind.LOST))
        said = _TAKEN.get(end, last_line(reason)) if end else last_line(reason)
        self._tell(kind, said if outcome is Outcome.LOST else "")
        return outcome

    def send(self, call: Callable[[], T], *, hurried: bool = False) -> T:
        """Send an end until it is answered.

        Raises:
            LeaseLostError: it was refused.
            StoreUnavailableError, BusyError: nobody answered for as long as the lease can last.
        """
        return answered(self._desk, call, within_ms=HURRIED_MS if hurried else None)

    def _complete(self, work: Work, judgement: Judgement, result: Result) -> Outcome:
        work.take_back()
        self.send(lambda: self._desk.lessor.leases.complete_one(self._holder(), result))
        verified = judgement.stage in {Stage.VERIFIED, Stage.PUSHED}
        self._tell(NoteKind.VERIFIED if verified else NoteKind.UNVERIFIED, judgement.commit[:12])
        if work.workspace is not None:
            self._tell(NoteKind.KEPT, give_back(self._desk, work.workspace, tell=self._tell))
        return Outcome.VERIFIED if verified else Outcome.UNVERIFIED

    def _put_down(self, work: Work, *, take_back: bool = True) -> None:
        """Keep what the worktree holds and leave it for whoever comes next."""
        if work.workspace is not None:
            keep(self._desk, work.workspace, tell=self._tell)
            move(self._desk, work.workspace, WorkspaceState.DIRTY, why="no result")
        if take_back:
            work.take_back()
