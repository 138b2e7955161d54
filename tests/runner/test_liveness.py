"""What people are told of an agent that runs and doesn't get on."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from lessor.clock import ManualClock
from lessor.runner.host import this_host
from lessor.runner.liveness import Halt, halt_of
from lessor.runner.proctable import process_row
from lessor.runner.report import EventKind, ReportWriter

HOST = this_host("host_here")


@pytest.fixture
def agent() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def run(tmp_path: Path, agent: subprocess.Popen[bytes]) -> Iterator[ReportWriter]:
    writer = ReportWriter(str(tmp_path / "report-10.jsonl"), ManualClock())
    identity = HOST.identify(agent.pid)
    assert identity is not None
    writer.append(EventKind.STARTED, pid=agent.pid, identity=asdict(identity))
    yield writer
    writer.close()


def halt(tmp_path: Path, *, wall_ms: int | None = None, host_id: str = HOST.id) -> Halt | None:
    now = ManualClock().wall_ms() if wall_ms is None else wall_ms
    return halt_of(tmp_path, host_id=host_id, wall_ms=now)


def stopped(agent: subprocess.Popen[bytes]) -> None:
    os.kill(agent.pid, signal.SIGSTOP)
    while not (row := process_row(agent.pid)) or not row.stopped:
        threading.Event().wait(0.01)


def test_an_agent_that_runs_is_nothing_to_speak_of(tmp_path: Path, run: ReportWriter) -> None:
    assert halt(tmp_path) is None
    assert halt(tmp_path / "nothing") is None


def test_a_stopped_agent_is_named_by_its_process(
    tmp_path: Path, run: ReportWriter, agent: subprocess.Popen[bytes]
) -> None:
    stopped(agent)
    assert halt(tmp_path) == Halt(stopped=agent.pid)
    assert halt(tmp_path, host_id="host_elsewhere") is None
    (tmp_path / "report-9.jsonl").write_text('{"event": "gone", "at_ms": 1}\n')
    assert halt(tmp_path) is not None  # an earlier round's says nothing about this one
    run.append(EventKind.FROZEN, hold="deadline")
    assert halt(tmp_path) is None  # by its own supervisor, which lets it go on
    run.append(EventKind.THAWED, hold="deadline")
    assert halt(tmp_path) == Halt(stopped=agent.pid)


def test_a_quiet_agent_is_quiet_until_it_moves(tmp_path: Path, run: ReportWriter) -> None:
    run.append(EventKind.QUIET_WARNING, quiet_ms=900_000, limit_ms=1_200_000)
    later = ManualClock().wall_ms() + 60_000
    assert halt(tmp_path, wall_ms=later) == Halt(quiet_ms=960_000, limit_ms=1_200_000)
    run.append(EventKind.RENEWED, version=2, left_ms=1)
    assert halt(tmp_path) is not None
    run.append(EventKind.MOVED)
    assert halt(tmp_path) is None
    run.append(EventKind.QUIET_WARNING, quiet_ms=900_000, limit_ms=1_200_000)
    run.append(EventKind.LIMIT, kind="quiet", limit_ms=1_200_000)
    assert halt(tmp_path) is not None
    run.append(EventKind.STOPPING, reason="limit", grace_ms=1)
    assert halt(tmp_path) is None
