"""What this host knows of who held a lease: the agent by its supervisor's report, the runner itself.

Only GONE frees anything, and of the whole: an agent that has ended may have a runner that checks
its result, commits in its worktree and is about to complete.
"""

from __future__ import annotations

from pathlib import Path

from lessor.errors import NotFoundError
from lessor.model.worker import Worker
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.runner.host import Host, Presence, ProcessIdentity, Sighting, presence
from lessor.runner.report import EventKind, read_report
from lessor.runner.site import Site
from lessor.service.reading import LeaseRecord

SETUP_LOG = "setup.log"
_STARTED = "report-*"
_REPORTS = "report-*.jsonl"


def agent_presence(run_dir: Path, here: Host) -> Sighting:
    """Whether anything of the agents that were started in `run_dir` may still live.

    A report that says "gone" is the supervisor's own proof. Else both the supervisor and the agent
    have to be gone, and an agent may have left descendants that only the supervisor knew of: after
    the supervisor's own death that is unknown, unless the host has booted again.
    """
    known = Sighting(presence=Presence.UNKNOWN, reason="no report of it is here")
    for report in sorted(run_dir.glob(_REPORTS)):
        known = _of_report(report, here)
        if known.presence is not Presence.GONE:
            return known
    return known


def worker_presence(worker: Worker, here: Host) -> Sighting:
    """Whether the process lives that registered as this worker."""
    if worker.pid is None or worker.start_ticks is None:
        return Sighting(presence=Presence.UNKNOWN, reason="it isn't a process's")
    identity = ProcessIdentity(
        host_id=worker.host_id,
        boot_id=worker.boot_id,
        pid_namespace=worker.pid_namespace,
        pid=worker.pid,
        start_ticks=worker.start_ticks,
    )
    return presence(identity, here)


def holder_presence(site: Site, lease: LeaseRecord) -> Sighting:
    """Whether anything of a lease's holder may still act: its runner, its agents, its setup.

    A supervisor's files appear before it does, so that where none lies no agent was ever started.
    A setup command outlives its runner: once one was started, nothing is known of it.
    """
    runner = _runner_of(site, lease)
    if runner.presence is not Presence.GONE:
        return runner
    run_dir = site.run_dir(lease.id)
    if any(run_dir.glob(_STARTED)):
        return agent_presence(run_dir, site.host)
    if (run_dir / SETUP_LOG).exists():
        return Sighting(presence=Presence.UNKNOWN, reason="its setup may still run")
    reason = f"its runner had started no agent: {runner.reason}"
    return Sighting(presence=Presence.GONE, reason=reason)


def workspace_presence(site: Site, workspace: Workspace) -> Sighting:
    """Whether anybody who worked in a workspace may still do so.

    A runner that puts a worktree down says so by its state, before it ends the lease.
    """
    for lease in site.lessor.leases.leases(task=workspace.task):
        if lease.epoch == workspace.epoch and lease.workspace == workspace.id:
            if workspace.state is not WorkspaceState.DIRTY:
                return holder_presence(site, lease)
            if _may_be_watched(site.run_dir(lease.id), site.host):
                reason = "an agent was started there, and nobody has told of its end"
                return Sighting(presence=Presence.UNKNOWN, reason=reason)
            return Sighting(presence=Presence.GONE, reason="its runner has put it down")
    if workspace.state is WorkspaceState.RESERVED:
        return Sighting(presence=Presence.GONE, reason="nobody was ever in it")
    return Sighting(presence=Presence.UNKNOWN, reason="nobody knows who worked in it")


def is_over(site: Site, workspace: Workspace) -> bool:
    """Whether all who worked there are known to be done with it; unknown is no."""
    return workspace_presence(site, workspace).presence is Presence.GONE


def _runner_of(site: Site, lease: LeaseRecord) -> Sighting:
    unknown = Sighting(presence=Presence.UNKNOWN, reason="its worker isn't known")
    if lease.worker is None:
        return unknown
    try:
        return worker_presence(site.lessor.registry.worker(lease.worker), site.host)
    except NotFoundError:
        return unknown


def _may_be_watched(run_dir: Path, here: Host) -> bool:
    """Whether an agent was started of whose end nobody has told.

    Where a host can't follow what detaches, the end of the agent itself is all that can be known.
    """
    unfinished = (
        report
        for report in run_dir.glob(_REPORTS)
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
