"""Agents that run and don't seem to get on, in words for people."""

from __future__ import annotations

from lessor.cli.invocation import Invocation
from lessor.cli.times import lapse
from lessor.runner.liveness import Halt, halt_of
from lessor.service.reading import LeaseRecord


def halt_here(invocation: Invocation, lease: LeaseRecord) -> Halt | None:
    """What keeps the agent of a live lease, where it runs on this machine."""
    if not lease.live:
        return None
    return halt_of(
        invocation.settings.runs_dir / lease.id,
        host_id=invocation.host_id,
        wall_ms=invocation.clock.wall_ms(),
    )


def halt_word(halt: Halt) -> str:
    """The same for a list."""
    return "stopped" if halt.stopped else f"quiet {lapse(halt.quiet_ms)}"


def halt_text(halt: Halt) -> str:
    """The same in full, with what ends it."""
    parts = []
    if halt.stopped:
        parts.append(
            f"its process {halt.stopped} is stopped (SIGSTOP): kill -CONT {halt.stopped} lets it go on"
        )
    if halt.quiet_ms:
        limit = lapse(halt.limit_ms)
        parts.append(f"no sign of progress for {lapse(halt.quiet_ms)}; it is ended after {limit}")
    return "; ".join(parts)
