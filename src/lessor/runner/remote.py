"""The remote of a run's repository: leases made ready there, results pushed, references closed.

Nothing of it is part of a repository that isn't fenced and whose results aren't pushed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from lessor.errors import (
    GitError,
    HostError,
    LeaseLostError,
    LessorError,
    RemoteUnreachableError,
)
from lessor.git.push import remote_tips
from lessor.git.refs import BRANCHES
from lessor.model.lease import MINUTE, SECOND, Holder
from lessor.model.task import Stage
from lessor.publish.fencing import close_ended, make_ready
from lessor.publish.pushing import Errand, default_remote, publish
from lessor.publish.recovering import recover
from lessor.runner.desk import Desk
from lessor.runner.judging import Judgement
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.words import last_line, span_text

AWAY_MS = 2 * MINUTE
"""How long a slot with nothing to do waits for a fenced remote that doesn't answer."""

ASK_AGAIN_MS = 5 * SECOND


class Remote:
    """The remote as one slot sees it, between its attempts."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._away: RemoteUnreachableError | None = None
        self._since_ms = 0
        self._asked_ms = 0

    def is_away(self) -> bool:
        """Whether it still doesn't answer: until it does, a claim would only be given back."""
        if self._away is None:
            return False
        if self._is_soon():
            return True
        known = self._desk.lessor.registry.repository(self._desk.repository)
        try:
            if known.fence_remote is not None and not known.unfenced:
                remote_tips(self._desk.repo.root, known.fence_remote, "HEAD")
        except RemoteUnreachableError as silent:
            self._away = silent
            return True
        self._away = None
        return False

    def went_away(self, silent: RemoteUnreachableError) -> None:
        """Note that a lease couldn't be made ready."""
        again = f"asked again every {span_text(ASK_AGAIN_MS)} for {span_text(AWAY_MS)}"
        self._desk.note(NoteKind.HELD, f"no lease yet, {again}: {silent.message}")
        self._away = silent
        self._since_ms = self._asked_ms = self._desk.clock.boottime_ms()

    def refuse_gone(self) -> None:
        """Raise the refusal of a remote that has been away for too long."""
        now = self._desk.clock.boottime_ms()
        if self._away is not None and now - self._since_ms >= AWAY_MS:
            raise self._away

    def recover(self) -> None:
        """Ask what became of the pushes of dead holders: their paths wait for that."""
        unsettled = self._desk.lessor.intents.unsettled(self._desk.repository)
        if unsettled and not self._is_soon():
            recover(self._desk.lessor, self._desk.repo.root, self._desk.repository)

    def _is_soon(self) -> bool:
        now = self._desk.clock.boottime_ms()
        if now - self._asked_ms < ASK_AGAIN_MS:
            return True
        self._asked_ms = now
        return False


class Publishing:
    """One lease at the remote."""

    def __init__(self, desk: Desk, *, holder: Callable[[], Holder], tell: Tell) -> None:
        self._desk = desk
        self._holder = holder
        self._tell = tell

    def make_ready(self) -> None:
        """Fence the lease where the repository is fenced.

        Raises:
            LeaseLostError: it is over.
            RemoteUnreachableError: the remote can't be asked, and there are no unfenced leases.
            HostError: the remote refuses what a fence needs, as it will for every task.
        """
        desk = self._desk
        try:
            make_ready(desk.lessor, desk.repo.root, self._holder())
        except RemoteUnreachableError as silent:
            if not desk.lessor.registry.repository(desk.repository).unfenced:
                raise
            self._tell(NoteKind.KEPT, f"not fenced: {last_line(silent.message)}")
        except GitError as refused:
            raise HostError(refused.message, next_step=refused.next_step) from refused

    def push(self, judgement: Judgement, branch: str) -> Judgement:
        """The judgement with what became of pushing its commit; a push that fails costs no result.

        Raises:
            LeaseLostError: the lease is over.
        """
        desk = self._desk
        known = desk.lessor.registry.repository(desk.repository)
        try:
            remote = known.fence_remote or default_remote(desk.repo)
            ref = f"{BRANCHES}{branch}"
            errand = Errand(
                repo=desk.repo, remote=remote, ref=ref, commit=judgement.commit, judged=True
            )
            publish(desk.lessor, self._holder(), errand)
        except LeaseLostError:
            raise
        except LessorError as refused:
            self._tell(NoteKind.NOT_PUSHED, last_line(refused.message))
            return replace(judgement, pushed=f"no: {last_line(refused.message)}")
        self._tell(NoteKind.PUSHED, f"{branch} to {remote}")
        stage = Stage.PUSHED if judgement.stage is Stage.VERIFIED else judgement.stage
        return replace(judgement, stage=stage, pushed=remote)

    def close(self) -> None:
        """Close the references of leases that have ended, this one's too; else the next claim does."""
        with suppress(LessorError):
            close_ended(self._desk.lessor, self._desk.repo.root, self._desk.repository)
