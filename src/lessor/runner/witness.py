"""What this host knows of an agent's processes from its supervisor's report."""

from __future__ import annotations

from pathlib import Path

from lessor.runner.host import Host, Presence, ProcessIdentity, Sighting, presence
from lessor.runner.report import EventKind, read_report

REPORT = "report.jsonl"


def agent_presence(run_dir: Path, here: Host) -> Sighting:
    """Whether anything of the run in `run_dir` may still live; only GONE frees anything.

    A report that says "gone" is the supervisor's own proof. Else both the supervisor and the agent
    have to be gone, and an agent may have left descendants that only the supervisor knew of: after
    the supervisor's own death that is unknown, unless the host has booted again.
    """
    reports = sorted(run_dir.glob("report*.jsonl"))
    if not reports:
        return Sighting(presence=Presence.UNKNOWN, reason="no report of it is here")
    worst = Sighting(presence=Presence.GONE, reason="every round of it was proved gone")
    for report in reports:
        sighting = _of_report(report, here)
        if sighting.presence is not Presence.GONE:
            return sighting
        worst = sighting
    return worst


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
