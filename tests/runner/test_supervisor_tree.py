"""The agent's tree under a supervisor: ended in order, proved gone as a whole."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from supervisor_rig import QUICK, expect, kinds_of, lives, until

from lessor.errors import AgentError
from lessor.runner.host import ProcessIdentity
from lessor.runner.process import ExitStatus
from lessor.runner.progress import ProgressLimits
from lessor.runner.report import EventKind as Kind
from lessor.runner.report import read_report

STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("up", "w")
while True:
    signal.pause()
"""


def agent_of(run):
    return expect(run, Kind.STARTED).facts["pid"]


def test_an_agent_that_ends_is_proved_gone_and_handed_over_at_the_newest_version(rig):
    run = rig.start("/bin/sh", "-c", "echo working; exit 4")
    exited = expect(run, Kind.EXITED)
    assert (exited.facts["code"], exited.facts["signal"]) == (4, None)
    proof = expect(run, Kind.GONE).facts["proof"]
    assert "exited with code 4" in proof
    assert "ECHILD" in proof
    expect(run, Kind.RENEWED)  # the lease lives on while the runner checks the result
    version = run.done()
    assert version == max(e.facts["version"] for e in run.events if e.kind is Kind.RENEWED)
    assert version == 1 + len(rig.lease.calls("renew"))
    assert run.status() == ExitStatus(code=0)
    assert rig.lease.calls("end_gone") == []
    assert rig.log.read_text() == "working\n"


def test_files_are_private_and_the_spec_is_gone_once_it_was_read(rig):
    run = rig.start("/bin/true", env={"API_KEY": "s3cret"})
    expect(run, Kind.STARTED)
    assert {path.name for path in rig.directory.glob("report*")} == {"report", "report.stderr"}
    for path in (rig.report, rig.log, rig.directory / "report.stderr"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert "s3cret" not in rig.report.read_text()


def test_the_agent_runs_in_its_worktree_with_what_was_added_and_without_what_was_unset(rig):
    rig.env["GIT_DIR"] = "/somewhere"
    run = rig.start("/bin/sh", "-c", "pwd; env; cat", env={"ADDED": "a b"}, unset=("GIT_DIR",))
    expect(run, Kind.GONE)
    lines = rig.log.read_text().splitlines()
    assert lines[0] == str(rig.worktree)
    assert "ADDED=a b" in lines
    assert f"LESSOR_REPORT={rig.report}" in lines
    assert not [line for line in lines if line.startswith("GIT_DIR")]


def test_the_started_event_identifies_agent_and_supervisor(rig):
    run = rig.start("/bin/sleep", "600")
    facts = expect(run, Kind.STARTED).facts
    assert ProcessIdentity(**facts["identity"]).pid == facts["pid"]
    assert ProcessIdentity(**facts["supervisor"]).pid == run.pid
    assert os.getsid(facts["pid"]) == facts["pid"]


def test_an_agent_killed_by_a_signal_is_proved_gone(rig):
    run = rig.start("/bin/sleep", "600")
    os.kill(agent_of(run), signal.SIGKILL)
    exited = expect(run, Kind.EXITED)
    assert (exited.facts["code"], exited.facts["signal"]) == (None, signal.SIGKILL)
    assert "signal 9" in expect(run, Kind.GONE).facts["proof"]


@pytest.mark.parametrize("own_cgroup", [True, False])
def test_a_daemon_that_detached_is_adopted_ended_and_only_then_all_is_gone(rig, own_cgroup):
    run, daemon = rig.start_daemon_maker("go", own_cgroup=own_cgroup)
    assert expect(run, Kind.STOPPING).facts["reason"] == "left_behind"
    # The agent's own end is told only when its whole tree has been waited for.
    assert expect(run, Kind.EXITED).facts["code"] == 3
    assert not lives(daemon)
    expect(run, Kind.GONE)


@pytest.mark.parametrize("own_cgroup", [True, False])
def test_a_killed_tree_takes_its_detached_daemon_along(rig, own_cgroup):
    run, daemon = rig.start_daemon_maker("stay", own_cgroup=own_cgroup)
    run.kill()
    expect(run, Kind.GONE)
    assert not lives(daemon)


def test_a_tree_that_keeps_forking_is_killed(rig):
    run = rig.start(
        sys.executable,
        "-c",
        "import os, time\n"
        "open('up', 'w')\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(0.005)\n"
        "    else:\n"
        "        os._exit(0)\n",
        own_cgroup=False,
    )
    until((rig.worktree / "up").exists, "it forks")
    run.kill()
    expect(run, Kind.GONE)


def test_stop_lets_the_agent_end_its_work(rig):
    run = rig.start("/bin/sh", "-c", "trap 'echo saved; exit 0' TERM; touch up; sleep 600 & wait")
    until((rig.worktree / "up").exists, "it runs")
    run.stop()
    assert expect(run, Kind.EXITED).facts["code"] == 0
    assert rig.log.read_text() == "saved\n"


def test_what_an_agent_leaves_behind_while_it_stops_is_asked_too(rig):
    late = "trap 'touch asked; exit' TERM; touch late; while :; do sleep 0.01; done"
    run = rig.start(
        "/bin/sh",
        "-c",
        "trap 'setsid sh -c \"$1\" & until [ -e late ]; do :; done; exit 0' TERM;"
        "touch up; while :; do sleep 0.01; done",
        "agent",
        late,
    )
    until((rig.worktree / "up").exists, "it runs")
    run.stop()
    expect(run, Kind.GONE)
    assert (rig.worktree / "asked").exists()


def test_an_agent_that_ignores_the_stop_is_killed_after_the_grace(rig):
    run = rig.start(sys.executable, "-c", STUBBORN, patience=replace(QUICK, grace_ms=100))
    until((rig.worktree / "up").exists, "it runs")
    run.stop()
    assert expect(run, Kind.EXITED).facts["signal"] == signal.SIGKILL


def test_a_kill_shortens_the_grace_of_a_stop(rig):
    run = rig.start(sys.executable, "-c", STUBBORN, patience=replace(QUICK, grace_ms=3_600_000))
    until((rig.worktree / "up").exists, "it runs")
    run.stop()
    expect(run, Kind.STOPPING)
    run.kill()
    assert expect(run, Kind.EXITED).facts["signal"] == signal.SIGKILL


def test_a_stopped_agent_is_warned_about_and_then_ended_for_being_quiet(rig):
    run = rig.start("/bin/sleep", "600", limits=ProgressLimits(quiet_ms=600, total_ms=3_600_000))
    os.kill(agent_of(run), signal.SIGSTOP)
    warning = expect(run, Kind.QUIET_WARNING)
    assert warning.facts["limit_ms"] == 600
    assert expect(run, Kind.LIMIT).facts["kind"] == "quiet"
    # It was let go on, so that it could hear that it was asked.
    assert expect(run, Kind.EXITED).facts["signal"] == signal.SIGTERM
    kinds = kinds_of(run)
    assert kinds.index(Kind.QUIET_WARNING) < kinds.index(Kind.LIMIT)


def test_an_agent_that_prints_is_not_quiet_but_meets_its_total_limit(rig):
    run = rig.start(
        "/bin/sh",
        "-c",
        "while :; do echo on; sleep 0.02; done",
        limits=ProgressLimits(quiet_ms=3_000, total_ms=4_000),
    )
    assert expect(run, Kind.LIMIT).facts["kind"] == "total"
    expect(run, Kind.GONE)
    assert Kind.QUIET_WARNING not in kinds_of(run)


@pytest.mark.parametrize("own_cgroup", [True, False])
def test_a_frozen_tree_does_nothing_until_it_is_thawed(rig, own_cgroup):
    run = rig.start(
        "/bin/sh",
        "-c",
        "(while :; do echo >> beats; sleep 0.005; done) & wait",
        own_cgroup=own_cgroup,
    )
    beats = rig.worktree / "beats"
    until(beats.exists, "it beats")
    run.freeze()
    assert expect(run, Kind.FROZEN).facts["hold"] == "runner"
    size = beats.stat().st_size
    for _ in range(3):
        expect(run, Kind.RENEWED)
    assert beats.stat().st_size == size
    run.thaw()
    expect(run, Kind.THAWED)
    until(lambda: beats.stat().st_size > size, "it goes on")


def test_done_is_refused_while_the_agent_lives(rig):
    run = rig.start("/bin/sleep", "600")
    expect(run, Kind.STARTED)
    with pytest.raises(AgentError):
        run.done()
    expect(run, Kind.RENEWED)
    assert lives(run.pid)


@pytest.mark.parametrize(
    ("argv", "changes"),
    [
        (["/nowhere/agent"], {}),
        (["/bin/true"], {"cwd": "/nowhere"}),
        (["/bin/true"], {"log": "/nowhere/log"}),
        (["/bin/true"], {"lifeline": "os:listdir"}),
        (["/bin/true"], {"lifeline": "file_lifeline:nothing"}),
        (["/bin/true"], {"lifeline": "lessor.nothing:open"}),
        (["/bin/true"], {"lifeline": "file_lifeline"}),
        (["/bin/true"], {"trusted_modules": ()}),
        (["/bin/true"], {"sent_ms": 10**15}),
    ],
)
def test_what_cannot_be_started_is_reported_and_ends_the_supervisor(rig, argv, changes):
    run = rig.start(*argv, **changes)
    failed = expect(run, Kind.FAILED)
    assert failed.facts["message"]
    assert failed.facts["code"] in ("agent", "invalid", "terms_invalid")
    assert run.wait(timeout_ms=60_000).code in (1, 2)
    assert kinds_of(run) == [Kind.FAILED]
    assert (rig.directory / "lease" / "calls").exists() is False


def test_a_worktree_whose_name_is_no_text_is_no_obstacle(rig):
    place = os.fsdecode(bytes(rig.worktree / "w") + b"\xff")
    Path(place).mkdir()
    run = rig.start("/bin/pwd", cwd=place)
    expect(run, Kind.GONE)
    assert rig.log.read_bytes().strip() == os.fsencode(place)


def test_an_agent_dies_with_its_supervisor_and_what_it_left_is_found(rig):
    run, daemon = rig.start_daemon_maker("stay", own_cgroup=False)
    agent = agent_of(run)
    os.kill(run.pid, signal.SIGKILL)
    until(lambda: not lives(agent), "the agent dies with its supervisor")
    assert run.wait(timeout_ms=60_000) == ExitStatus(signal=signal.SIGKILL)
    assert run.wait_event({Kind.GONE}, timeout_ms=60_000) is None
    assert run.end_orphans() == 1
    until(lambda: not lives(daemon), "the daemon is found and killed")
    assert not run.stop()


def test_orphans_are_left_to_a_supervisor_that_lives(rig):
    run, daemon = rig.start_daemon_maker("stay")
    assert run.end_orphans() == 0
    assert lives(daemon)


def test_a_report_can_be_read_by_whoever_comes_later(rig):
    run = rig.start("/bin/true")
    expect(run, Kind.GONE)
    run.done()
    run.poll_events()
    assert read_report(str(rig.report)) == run.events
