"""One agent under its supervisor's eyes, from its start until all of its tree is gone."""

from __future__ import annotations

import os
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from lessor.clock import Clock
from lessor.model.lease import SECOND
from lessor.runner.agent_tree import AgentTree, Ending
from lessor.runner.progress import Progress, Sample, Verdict, WorktreeScan, awake_ms
from lessor.runner.report import EventKind, ReportWriter
from lessor.runner.spec import SupervisorSpec

ENDING_STEP_MS = 50
SURVIVORS_AFTER_MS = 10 * SECOND
_NO_HURRY_MS = 60 * SECOND


class Hold(StrEnum):
    """Why an agent is frozen; it goes on when the last reason is gone."""

    RUNNER = "runner"
    DEADLINE = "deadline"
    LOST = "lost"


class EndReason(StrEnum):
    """Why an agent is ended."""

    STOP = "stop"
    KILL = "kill"
    ASKED = "asked"  # the store asked
    CANCELLED = "cancelled"
    LIMIT = "limit"
    LOST = "lost"
    UNANSWERED = "unanswered"
    RUNNER_GONE = "runner_gone"
    LEFT_BEHIND = "left_behind"  # the agent has ended, something that it started hasn't


class AgentRun:
    """An agent that runs, is held, is ended, and is proved gone.

    Attributes:
        gone: whether the agent and all that it started have been waited for.
        proof: how that is known; empty before, and where nobody can know it.
    """

    def __init__(
        self, tree: AgentTree, spec: SupervisorSpec, *, clock: Clock, report: ReportWriter
    ) -> None:
        self.gone = False
        self.proof = ""
        self._tree = tree
        self._log = spec.log
        self._limits = spec.limits
        self._patience = spec.patience
        self._clock = clock
        self._report = report
        self._scan = WorktreeScan(spec.cwd)
        self._progress = Progress(spec.limits, now_ms=awake_ms(clock))
        self._look_at = clock.boottime_ms()
        self._holds: set[Hold] = set()
        self._ending: Ending | None = None
        self._reasons: set[EndReason] = set()
        self._salvage_until: int | None = None
        self._survived = False

    def freeze(self, hold: Hold) -> None:
        """Stop the whole tree where it stands."""
        if self.gone:
            return
        self._holds.add(hold)
        self._tree.freeze()
        if hold is not Hold.LOST:  # a loss has an event of its own
            self._report.append(EventKind.FROZEN, hold=hold)

    def thaw(self, hold: Hold) -> None:
        """Take a reason to be frozen away; with the last one the tree goes on."""
        if self.gone or hold not in self._holds:
            return
        self._holds.remove(hold)
        if not self._holds:
            self._progress.excuse(awake_ms(self._clock))
            self._tree.thaw()
        self._report.append(EventKind.THAWED, hold=hold)

    def await_salvage(self) -> None:
        """Freeze it because its lease is lost, and end it when the time to salvage is over."""
        if not self.gone:
            self._ending = None
            self._reasons.clear()
            self._salvage_until = self._clock.boottime_ms() + self._patience.lost_ms
            self.freeze(Hold.LOST)

    def end(self, reason: EndReason, *, grace_ms: int, linger_ms: int = 0) -> None:
        """Begin its end, or hurry one that has begun; the same reason counts once."""
        if self.gone or reason in self._reasons:
            return
        if self._holds & {Hold.LOST, Hold.DEADLINE}:
            # To end in order it must go on for a while, now without authority.
            grace_ms = min(grace_ms, self._patience.lost_grace_ms)
        self._reasons.add(reason)
        self._report.append(EventKind.STOPPING, reason=reason, grace_ms=grace_ms)
        self._salvage_until = None
        self._holds.clear()
        if self._ending is None:
            self._ending = self._tree.end_tree(self._clock, grace_ms=grace_ms, linger_ms=linger_ms)
        else:
            self._ending.hurry(grace_ms)

    def step(self) -> None:
        """Do what is due: look at its progress, go on with its end, collect what has ended."""
        if self.gone:
            return
        self._look()
        self._go_on_ending()
        if self._tree.reap():
            self._note_gone()
        elif self._tree.status is not None and self._ending is None and not self._holds:
            self.end(
                EndReason.LEFT_BEHIND,
                grace_ms=self._patience.lost_grace_ms,
                linger_ms=self._patience.linger_ms,
            )

    def until_step_ms(self) -> int:
        """How long until something is due; an ended process is announced by a signal."""
        if self.gone:
            return _NO_HURRY_MS
        if self._ending is not None:
            return ENDING_STEP_MS
        due = self._look_at if self._salvage_until is None else self._salvage_until
        return max(0, due - self._clock.boottime_ms())

    def abandon(self) -> None:
        """Kill whatever is left, without waiting for it: the supervisor itself is failing."""
        if not self.gone:
            self._tree.kill_tree()

    def _look(self) -> None:
        now = self._clock.boottime_ms()
        if now < self._look_at:
            return
        self._look_at = now + self._limits.look_every_ms
        if self._ending is not None or self._holds:
            return
        awake = awake_ms(self._clock)
        verdict = self._progress.observe(self._sample(), now_ms=awake)
        if verdict is Verdict.WARNING:
            self._report.append(
                EventKind.QUIET_WARNING,
                quiet_ms=self._progress.quiet_ms(awake),
                limit_ms=self._limits.quiet_ms,
            )
        elif verdict is Verdict.MOVED:
            self._report.append(EventKind.MOVED)
        elif verdict is not Verdict.FINE:
            quiet = verdict is Verdict.QUIET
            limit = self._limits.quiet_ms if quiet else self._limits.total_ms
            self._report.append(EventKind.LIMIT, kind=verdict, limit_ms=limit)
            self.end(EndReason.LIMIT, grace_ms=self._patience.grace_ms)

    def _sample(self) -> Sample:
        size = 0
        with suppress(OSError):
            size = Path(self._log).stat().st_size
        return Sample(log_bytes=size, cpu_ms=self._tree.cpu_ms(), worktree=self._scan.step())

    def _go_on_ending(self) -> None:
        if self._salvage_until is not None and self._clock.boottime_ms() >= self._salvage_until:
            self.end(EndReason.LOST, grace_ms=self._patience.lost_grace_ms)
        if self._ending is None:
            return
        self._ending.step()
        if self._ending.killing_ms() >= SURVIVORS_AFTER_MS and not self._survived:
            # Said once; the supervisor stays and goes on, because "unkillable" isn't "gone".
            self._survived = True
            pids = [row.pid for row in self._tree.members()]
            self._report.append(EventKind.SURVIVORS, pids=pids)

    def _note_gone(self) -> None:
        self.gone = True
        self.proof = self._tree.proof()
        self._tree.close()
        status = self._tree.status
        if status is not None:
            self._report.append(EventKind.EXITED, code=status.code, signal=status.signal)
        if self.proof:
            self._report.append(EventKind.GONE, proof=self.proof)
        else:
            reason = "this host can't follow a process that detaches"
            self._report.append(EventKind.UNPROVEN, reason=reason, supervisor=os.getpid())
