"""The runner's side of a supervisor."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from lessor.clock import Clock, SystemClock
from lessor.errors import AgentError
from lessor.ids import new_random
from lessor.model.lease import MINUTE
from lessor.runner.process import Detached, ExitStatus, kill_marked, start_detached
from lessor.runner.report import Event, EventKind, ReportReader
from lessor.runner.spec import SupervisorSpec

POLL_MS = 10


class Supervised:
    """An agent under a supervisor, as its runner holds it.

    While this object's pipe is open the supervisor knows that the runner lives. A runner that ends
    without `done` leaves the end of the agent to it.
    """

    def __init__(self, process: Detached, spec: SupervisorSpec, clock: Clock) -> None:
        self.pid = process.pid
        self.events: list[Event] = []
        self._process = process
        self._spec = spec
        self._clock = clock
        self._reader = ReportReader(spec.report)
        self._polled = 0
        self._awaited = 0

    @classmethod
    def start(
        cls,
        spec: SupervisorSpec,
        *,
        env: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Start a supervisor; its stderr goes beside the report.

        Args:
            spec: what it is told; `phase` is drawn here.
            env: its whole environment, which the agent inherits; this process's own by default.
            clock: what waits are measured on.

        Raises:
            AgentError: it can't be started. That the *agent* can't be is a "failed" event.
            FileExistsError: a spec for this report is there: another supervisor is starting.
        """
        path = Path(f"{spec.report}.spec")
        replace(spec, phase=new_random().random()).write(path)
        # -P, and it runs in /: nothing that lies in the current directory may be imported.
        try:
            process = start_detached(
                [sys.executable, "-P", "-m", "lessor.runner.supervisor", str(path)],
                env=os.environ if env is None else env,
                errors=f"{spec.report}.stderr",
            )
        except AgentError:
            path.unlink()
            raise
        return cls(process, spec, clock or SystemClock())

    def stop(self) -> bool:
        """Ask the agent to end: SIGTERM, then SIGKILL; False when no supervisor listens."""
        return self._process.say("stop")

    def kill(self) -> bool:
        """Kill the agent's tree at once; False when no supervisor listens."""
        return self._process.say("kill")

    def freeze(self) -> bool:
        """Stop the agent's tree where it stands; False when no supervisor listens."""
        return self._process.say("freeze")

    def thaw(self) -> bool:
        """Let a frozen tree go on; False when no supervisor listens."""
        return self._process.say("thaw")

    def done(self, *, timeout_ms: int = MINUTE) -> int | None:
        """Take the lease back: the supervisor drops its authority and ends.

        Call it after "gone", and before completing or releasing. Returns the lease's newest
        version, to be shown there; None when the supervisor ended without a word, and then the
        version of the last "renewed" event is the newest that anybody knows.

        Raises:
            AgentError: the agent's tree still lives, and so does the lease.
        """
        self._process.say("done")
        answers = {EventKind.HANDED_OVER, EventKind.IGNORED}
        event = self.wait_event(answers, timeout_ms=timeout_ms)
        if event is not None and event.kind is EventKind.IGNORED:
            raise AgentError(
                "The agent still lives: its lease can't be taken back.",
                next_step="Wait for its end, or stop it.",
                supervisor=self.pid,
            )
        self.wait(timeout_ms=timeout_ms)
        return None if event is None else int(event.facts["version"])

    def close(self) -> None:
        """Hang up: for the supervisor the runner is gone."""
        self._process.hang_up()

    def poll_events(self) -> list[Event]:
        """The events since the last call of this method."""
        self._read()
        new = self.events[self._polled :]
        self._polled = len(self.events)
        return new

    def wait_event(self, kinds: Collection[EventKind], *, timeout_ms: int) -> Event | None:
        """The next event of one of these kinds after the one that this method returned last.

        Returns None when the time is over, or when the supervisor has ended without one.
        """
        deadline = self._clock.boottime_ms() + timeout_ms
        while True:
            # Asked first: what it wrote before its end is then read in this same round.
            ended = self.status() is not None
            self._read()
            for index in range(self._awaited, len(self.events)):
                if self.events[index].kind in kinds:
                    self._awaited = index + 1
                    return self.events[index]
            if ended or self._clock.boottime_ms() >= deadline:
                return None
            self._clock.wait(POLL_MS)

    def status(self) -> ExitStatus | None:
        """How the supervisor ended; None while it runs."""
        return self._process.status()

    def wait(self, *, timeout_ms: int) -> ExitStatus | None:
        """How the supervisor ended, waited for; None when the time is over."""
        deadline = self._clock.boottime_ms() + timeout_ms
        while (status := self.status()) is None and self._clock.boottime_ms() < deadline:
            self._clock.wait(POLL_MS)
        return status

    def kill_supervisor(self) -> None:
        """SIGKILL to the supervisor itself, stopped or not: for one that doesn't answer any more.

        The agent dies with it where the system can do that; see `end_orphans` for the rest.
        """
        self._process.kill()

    def end_orphans(self) -> int:
        """Kill what is left of the agent after its supervisor has *died*; how many were found.

        The agent itself dies with its supervisor where the system can do that. What it had started
        is found by its environment. Nothing is proved by it: the lease then ends by expiry.
        """
        with suppress(FileNotFoundError):
            Path(f"{self._spec.report}.spec").unlink()
        return 0 if self.status() is None else kill_marked(self._spec.mark)

    def _read(self) -> None:
        self.events += self._reader.read_new()
