"""What this host knows of an agent's processes from its supervisor's report."""

from __future__ import annotations

from pathlib import Path

from lessor.model.lease import LeaseEnd
from lessor.model.worker import Worker
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.desk import Desk
from lessor.runner.host import Host, Presence, ProcessIdentity, Sighting, presence
from lessor.runner.report import EventKind, read_report

REPORTS = "report-*"
SETUP_LOG = "setup.log"

_BY_ITS_HOLDER = frozenset(
    {LeaseEnd.GONE, LeaseEnd.RELEASED, LeaseEnd.FAILED, LeaseEnd.ASKED, LeaseEnd.COMPLETED}
)


def agent_presence(run_dir: Path, here: Host) -> Sighting:
    """Whether anything of the run in `run_dir` may still live; only GONE frees anything.

    A report that says "gone" is the supervisor's own proof. Else both the supervisor and the agent
    have to be gone, and an agent may have left descendants that only the supervisor knew of: after
    the supervisor's own death that is unknown, unless the host has booted again.
    """
    reports = sorted(run_dir.glob("report-*.jsonl"))
    if not reports:
        return Sighting(presence=Presence.UNKNOWN, reason="no report of it is here")
    known = Sighting(presence=Presence.UNKNOWN, reason="no report of it is here")
    for report in reports:
        known = _of_report(report, here)
        if known.presence is not Presence.GONE:
            return known
    return known


def runner_presence(run_dir: Path, worker: Worker, here: Host) -> Sighting:
    """Whether a runner that had started no agent yet may still live, or its setup command.

    A supervisor's files appear before it does, so that where none lies no agent was ever started.
    A setup command outlives its runner: once one was started, nothing is known.
    """
    if not worker.heartbeat or worker.pid is None or worker.start_ticks is None:
        return Sighting(presence=Presence.UNKNOWN, reason="it isn't a runner's")
    if any(run_dir.glob(REPORTS)) or (run_dir / SETUP_LOG).exists():
        return Sighting(presence=Presence.UNKNOWN, reason="something was started under it")
    identity = ProcessIdentity(
        host_id=worker.host_id,
        boot_id=worker.boot_id,
        pid_namespace=worker.pid_namespace,
        pid=worker.pid,
        start_ticks=worker.start_ticks,
    )
    sighting = presence(identity, here)
    reason = f"its runner had started no agent: {sighting.reason}"
    return Sighting(presence=sighting.presence, reason=reason)


def is_over(desk: Desk, workspace: Workspace) -> bool:
    """Whether the process that worked there is known to have ended; unknown is no."""
    for lease in desk.lessor.leases.leases(task=workspace.task):
        if lease.epoch == workspace.epoch and lease.workspace == workspace.id:
            run_dir = desk.run_dir(lease.id)
            if agent_presence(run_dir, desk.host).presence is Presence.GONE:
                return True
            # A token can be used by hand while the agent runs: without a word of its supervisor
            # only an end that its runner itself sent counts, and then none was started or left.
            return lease.end in _BY_ITS_HOLDER and not _may_be_watched(run_dir, desk.host)
    # Reserved and never attached: no agent was ever started in it.
    return workspace.state is WorkspaceState.RESERVED


def _may_be_watched(run_dir: Path, here: Host) -> bool:
    unfinished = (
        report
        for report in run_dir.glob("report-*.jsonl")
        if all(event.kind is not EventKind.UNPROVEN for event in read_report(str(report)))
    )
    return any(_of_report(report, here).presence is not Presence.GONE for report in unfinished)


def _of_report(report: Path, here: Host) -> Sighting:
    events = read_report(str(report))
    if any(event.kind in {EventKind.GONE, EventKind.FAILED} for event in events):
        return Sighting(presence=Presence.GONE, reason="its supervisor proved it")
    started = next((event for event in events if event.kind is EventKind.STARTED), None)
    if started is None:
        return Sighting(presence=Presence.UNKNOWN, reason="its start wasn't recorded")
    known = [
        ProcessIdentity(**started.facts[name])
        for name in ("identity", "supervisor")
        if started.facts.get(name)
    ]
    sightings = [presence(identity, here) for identity in known]
    if any(s.presence is Presence.ALIVE for s in sightings):
        return Sighting(presence=Presence.ALIVE, reason="it still runs")
    if sightings and all("booted" in s.reason for s in sightings):
        return Sighting(presence=Presence.GONE, reason="this host has booted again since")
    return Sighting(presence=Presence.UNKNOWN, reason="its supervisor died without a word")
