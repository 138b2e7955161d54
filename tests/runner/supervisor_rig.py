"""Real supervisors over real agents and a lease in a directory."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from file_lifeline import FileLease

import lessor
from lessor.clock import SystemClock
from lessor.model.lease import LeaseTerms
from lessor.runner.process import kill_marked
from lessor.runner.progress import ProgressLimits
from lessor.runner.report import Event, EventKind
from lessor.runner.spec import Patience, SupervisorSpec
from lessor.runner.supervised import Supervised

PATIENCE_MS = 60_000
"""How long a test waits for what must come; never how long it takes."""

BUSY_TERMS = LeaseTerms(ttl_ms=60_000, margin_ms=1_000, renew_every_ms=100)
IDLE_TERMS = LeaseTerms(ttl_ms=600_000, margin_ms=1_000, renew_every_ms=200_000)
QUICK = Patience(
    watch_every_ms=100, grace_ms=5_000, lost_grace_ms=200, lost_ms=PATIENCE_MS, linger_ms=100
)

DAEMON = """
import os, signal, sys
def detach(path):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    draft = path + ".draft"
    with open(draft, "w") as file:
        file.write(str(os.getpid()))
    os.rename(draft, path)
    while True:
        signal.pause()
detach(sys.argv[1])
if sys.argv[2] == "stay":
    while True:
        signal.pause()
os.wait()
while not os.path.exists(sys.argv[1]):
    pass
sys.exit(3)
"""


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until something is true, and fail when it never gets so."""
    clock = SystemClock()
    deadline = clock.boottime_ms() + PATIENCE_MS
    while not condition():
        assert clock.boottime_ms() < deadline, f"never: {what}"
        clock.wait(5)


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


class Rig:
    """Starts supervisors; ends what is left of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.worktree = directory / "worktree"
        self.worktree.mkdir()
        self.lease = FileLease(directory / "lease")
        os.mkfifo(directory / "lease" / "never")
        self.report = directory / "report"
        self.log = directory / "log"
        here = Path(__file__).parent
        self.env = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(Path(lessor.__file__).parents[1]), str(here)])
        }
        self._started: list[tuple[Supervised, SupervisorSpec]] = []

    def spec(self, *argv: str, **changes) -> SupervisorSpec:
        return replace(
            SupervisorSpec(
                argv=argv,
                cwd=str(self.worktree),
                log=str(self.log),
                report=str(self.report),
                lifeline="file_lifeline:open_lifeline",
                lifeline_argument={"directory": str(self.lease.directory)},
                trusted_modules=("file_lifeline",),
                version=1,
                sent_ms=SystemClock().boottime_ms(),
                terms=BUSY_TERMS,
                patience=QUICK,
                limits=ProgressLimits(),
                host_id="host_of_the_test",
            ),
            **changes,
        )

    def start(self, *argv: str, **changes) -> Supervised:
        spec = self.spec(*argv, **changes)
        run = Supervised.start(spec, env=self.env)
        self._started.append((run, spec))
        return run

    def start_daemon_maker(self, conduct: str, **changes) -> tuple[Supervised, int]:
        """An agent that leaves a daemon behind; returns once the daemon lives, with its pid."""
        path = self.directory / "daemon"
        run = self.start(sys.executable, "-c", DAEMON, str(path), conduct, **changes)
        until(path.exists, "the daemon writes its pid")
        return run, int(path.read_text())

    def close(self) -> None:
        self.lease.answer(mode="live")
        for run, spec in self._started:
            run.kill()
            run.close()
            if run.wait(timeout_ms=3_000) is None:
                kill_supervisor(run)
            kill_marked(spec.mark)


def kill_supervisor(run: Supervised) -> None:
    os.kill(run.pid, signal.SIGCONT)
    os.kill(run.pid, signal.SIGKILL)
    run.wait(timeout_ms=PATIENCE_MS)


def expect(run: Supervised, *kinds: EventKind) -> Event:
    event = run.wait_event(kinds, timeout_ms=PATIENCE_MS)
    assert event is not None, f"{kinds} never came: {[event.kind for event in run.events]}"
    return event


def kinds_of(run: Supervised) -> list[EventKind]:
    run.poll_events()
    return [event.kind for event in run.events]
