"""An agent with everything that it started, and the proof that all of it is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from lessor.clock import Clock
from lessor.runner.cgroup import Cgroup
from lessor.runner.host import die_with_parent
from lessor.runner.process import ExitStatus, open_log, send_signal, spawn
from lessor.runner.proctable import ProcessRow, descendants, process_table

KILL_EVERY_MS = 200
_SCANS = 20


class AgentTree:
    """An agent with everything that it started, also what left its session and its group.

    The process that makes one must be a subreaper and start nothing else that it waits for: the
    tree is all of its children. That is what makes `reap` a proof.
    """

    def __init__(self, pid: int, *, adopts: bool, cgroup: Cgroup | None) -> None:
        self.pid = pid
        self.status: ExitStatus | None = None
        self.adopts = adopts
        self._cgroup = cgroup

    def reap(self) -> bool:
        """Collect whatever has ended; True once no descendant is left (ECHILD)."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.pid:
                self.status = ExitStatus.of(os.waitstatus_to_exitcode(status))

    def members(self) -> list[ProcessRow]:
        """The living descendants as the process table shows them now."""
        table = process_table()
        return [row for row in descendants(os.getpid(), table) if not row.ended]

    def cpu_ms(self) -> int:
        """Processor time of the tree, with what its ended members had used."""
        ended = os.times()
        return sum(row.cpu_ms for row in self.members()) + int(
            1000 * (ended.children_user + ended.children_system)
        )

    def signal_tree(self, number: signal.Signals) -> int:
        """Send a signal to each living member; how many it was sent to."""
        return sum(send_signal(row, number) for row in self.members())

    def freeze(self) -> None:
        """Stop every member where it stands; it keeps its files, locks and memory."""
        if self._cgroup is not None:
            self._cgroup.freeze(frozen=True)
        # What forks while it is being stopped shows up in the next scan.
        for _ in range(_SCANS):
            running = [row for row in self.members() if not row.stopped]
            if not sum(send_signal(row, signal.SIGSTOP) for row in running):
                return

    def thaw(self) -> None:
        """Let every member go on."""
        if self._cgroup is not None:
            self._cgroup.freeze(frozen=False)
        self.signal_tree(signal.SIGCONT)

    def kill_tree(self) -> None:
        """SIGKILL to every member, until a scan finds none or it has been tried often enough."""
        for _ in range(_SCANS):
            if self._cgroup is not None:
                self._cgroup.kill()
            if not self.signal_tree(signal.SIGKILL):
                return

    def end_tree(self, clock: Clock, *, grace_ms: int, linger_ms: int = 0) -> Ending:
        """The orderly end of this tree, to be stepped until `reap` is true.

        Args:
            clock: what `grace_ms` and `linger_ms` are measured on.
            grace_ms: from SIGTERM to SIGKILL; 0 kills at once.
            linger_ms: how long it may end by itself before SIGTERM.
        """
        return Ending(self, clock, grace_ms=grace_ms, linger_ms=linger_ms)

    def proof(self) -> str:
        """The sentence that proves the whole tree gone; empty when nobody can.

        Call it after `reap` was true. A subreaper without children has no descendant: each would
        have become its child. Without adoption a detached process may live on unseen.
        """
        if not self.adopts or self.status is None:
            return ""
        how = (
            f"exited with code {self.status.code}"
            if self.status.signal is None
            else f"was ended by signal {self.status.signal}"
        )
        return (
            f"process {self.pid} {how} and was waited for; its subreaper {os.getpid()} "
            "has no descendant left (ECHILD)"
        )

    def close(self) -> None:
        """Remove what the host held for the tree."""
        if self._cgroup is not None:
            self._cgroup.remove()


class Ending:
    """SIGTERM, a grace, SIGKILL again and again: one step each time it is asked."""

    def __init__(self, tree: AgentTree, clock: Clock, *, grace_ms: int, linger_ms: int) -> None:
        self._tree = tree
        self._clock = clock
        self._term_at = clock.boottime_ms() + linger_ms
        self._kill_at = self._term_at + grace_ms
        self._killing_since: int | None = None
        self._asked = False
        self._asked_the_rest = False

    def hurry(self, grace_ms: int) -> None:
        """Kill in `grace_ms` at the latest; never later than was set before."""
        now = self._clock.boottime_ms()
        self._term_at = min(self._term_at, now)
        self._kill_at = min(self._kill_at, now + grace_ms)

    def step(self) -> None:
        """Do what is due now."""
        now = self._clock.boottime_ms()
        if now >= self._kill_at:
            self._killing_since = self._killing_since or now
            self._kill_at = now + KILL_EVERY_MS
            self._tree.kill_tree()
        elif now >= self._term_at and not self._asked:
            self._asked = True
            self._ask()
        elif self._asked and self._tree.status is not None and not self._asked_the_rest:
            # What the agent started after it was asked may have been its own tidying up, and was
            # let be; what it left behind is asked too.
            self._asked_the_rest = True
            self._ask()

    def killing_ms(self) -> int:
        """How long SIGKILL has been tried; 0 before."""
        if self._killing_since is None:
            return 0
        return self._clock.boottime_ms() - self._killing_since

    def _ask(self) -> None:
        self._tree.signal_tree(signal.SIGTERM)
        # A stopped process gets its SIGTERM only when it goes on.
        self._tree.thaw()


def start_agent(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    log: str,
    adopts: bool,
    cgroup: Cgroup | None,
) -> AgentTree:
    """Start an agent in its own session, its output appended to `log` (mode 0600).

    Call it while this process has one thread only: the child runs a few lines of Python before it
    becomes the agent. There it asks to die with this process, because an agent without its
    heartbeat has no lease, and enters `cgroup`, so that nothing is born outside of it.

    Raises:
        AgentError: it can't be started.
    """
    parent = os.getpid()

    def become_agent() -> None:
        die_with_parent()
        if os.getppid() != parent:  # the parent was gone before the wish was known
            os._exit(1)
        if cgroup is not None:
            cgroup.enter()

    with Path(os.devnull).open("rb") as nothing, open_log(log) as output:
        process = spawn(
            argv, cwd=cwd, env=env, stdin=nothing, output=output, before_exec=become_agent
        )
    # `AgentTree.reap` collects it; Popen must not wait for it a second time.
    process.returncode = 0
    return AgentTree(process.pid, adopts=adopts, cgroup=cgroup)
