"""The supervisor and its runner: the pipe is the bond, and nothing else ends it."""

import os
import pty
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from supervisor_rig import (
    BUSY_TERMS,
    DAEMON,
    IDLE_TERMS,
    PATIENCE_MS,
    QUICK,
    expect,
    kinds_of,
    lives,
    until,
)

from lessor.runner.process import ExitStatus
from lessor.runner.report import EventKind as Kind
from lessor.runner.report import ReportReader, read_report

RUNNER = """
import signal, sys
from pathlib import Path
from lessor.runner.spec import SupervisorSpec
from lessor.runner.supervised import Supervised
for number in sys.argv[2:]:
    signal.signal(int(number), signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
run = Supervised.start(SupervisorSpec.take(Path(sys.argv[1])))
while True:
    signal.pause()
"""


@pytest.fixture
def start_runner(rig):
    """Start a runner in a process of its own."""
    started = []

    def start(*argv, ignoring=(), **changes):
        spec = rig.spec(*argv, **changes)
        spec.write(rig.directory / "given")
        command = [sys.executable, "-c", RUNNER, str(rig.directory / "given")]
        runner = subprocess.Popen([*command, *map(str, ignoring)], env=rig.env)
        started.append(runner)
        return runner

    yield start
    for runner in started:
        runner.kill()
        runner.wait()


def reported(rig, kind):
    """The first event of a kind, waited for."""
    until(
        lambda: [event for event in read_report(str(rig.report)) if event.kind is kind],
        f"{kind} is reported",
    )
    return next(event for event in read_report(str(rig.report)) if event.kind is kind)


def supervisor_of(rig):
    return reported(rig, Kind.STARTED).facts["supervisor"]["pid"]


@pytest.mark.parametrize("own_cgroup", [True, False])
def test_a_killed_runner_ends_the_whole_tree_and_the_store_gets_the_proof(
    rig, start_runner, own_cgroup
):
    daemon_file = rig.directory / "daemon"
    runner = start_runner(
        sys.executable, "-c", DAEMON, str(daemon_file), "stay", own_cgroup=own_cgroup
    )
    until(daemon_file.exists, "the daemon lives")
    daemon = int(daemon_file.read_text())
    agent = reported(rig, Kind.STARTED).facts["pid"]
    supervisor = supervisor_of(rig)
    runner.kill()
    assert reported(rig, Kind.STOPPING).facts["reason"] == "runner_gone"
    proof = reported(rig, Kind.GONE).facts["proof"]
    assert not lives(daemon)
    assert not lives(agent)
    assert reported(rig, Kind.RECORDED).facts["accepted"]
    assert [call["proof"] for call in rig.lease.calls("end_gone")] == [proof]
    until(lambda: not lives(supervisor), "the supervisor ends")


def test_nothing_is_renewed_once_the_runner_is_gone(rig):
    run = rig.start(
        "/bin/sh",
        "-c",
        "trap '' TERM; touch up; while :; do sleep 0.01; done",
        patience=replace(QUICK, lost_grace_ms=500),
    )
    until((rig.worktree / "up").exists, "it runs")
    expect(run, Kind.RENEWED)
    run.close()
    expect(run, Kind.STOPPING)
    asked = len(rig.lease.calls("renew"))
    expect(run, Kind.GONE)
    assert len(rig.lease.calls("renew")) == asked


def test_a_runner_that_is_lost_after_the_agents_end_leaves_the_proof(rig):
    run = rig.start("/bin/true")
    proof = expect(run, Kind.GONE).facts["proof"]
    run.close()
    assert expect(run, Kind.RECORDED).facts["accepted"]
    assert [call["proof"] for call in rig.lease.calls("end_gone")] == [proof]
    assert run.wait(timeout_ms=PATIENCE_MS) == ExitStatus(code=0)


def test_after_done_the_end_of_the_pipe_means_nothing(rig):
    run = rig.start("/bin/true")
    expect(run, Kind.GONE)
    run.done()
    run.close()
    assert run.status() == ExitStatus(code=0)
    assert rig.lease.calls("end_gone") == []


def test_a_proof_that_nobody_takes_is_offered_again(rig):
    run = rig.start("/bin/true", terms=IDLE_TERMS)
    expect(run, Kind.GONE)
    rig.lease.answer(mode="silent")
    run.close()
    until(lambda: len(rig.lease.calls("end_gone")) >= 2, "it is offered again")
    rig.lease.answer(mode="live")
    expect(run, Kind.RECORDED)
    assert run.wait(timeout_ms=PATIENCE_MS) == ExitStatus(code=0)


def test_a_proof_for_a_lease_that_was_over_is_settled(rig):
    run = rig.start("/bin/true", terms=IDLE_TERMS)
    expect(run, Kind.GONE)
    rig.lease.answer(mode="refuse")
    run.close()
    recorded = expect(run, Kind.RECORDED)
    assert not recorded.facts["accepted"]
    assert "worker_2" in recorded.facts["message"]
    run.wait(timeout_ms=PATIENCE_MS)
    assert len(rig.lease.calls("end_gone")) == 1


@pytest.mark.parametrize("mode", ["silent", "hang"])
def test_a_store_that_stays_away_until_the_lease_has_lapsed_is_told_so_by_the_exit_code(rig, mode):
    terms = replace(BUSY_TERMS, ttl_ms=1_500, margin_ms=100)
    run = rig.start("/bin/true", terms=terms)
    expect(run, Kind.GONE)
    rig.lease.answer(mode=mode)
    run.close()
    assert run.wait(timeout_ms=PATIENCE_MS) == ExitStatus(code=75)
    assert Kind.RECORDED not in kinds_of(run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_terminals_signals_end_neither_supervisor_nor_agent(rig, number):
    run = rig.start("/bin/sleep", "600")
    agent = expect(run, Kind.STARTED).facts["pid"]
    os.kill(run.pid, number)
    expect(run, Kind.RENEWED)
    expect(run, Kind.RENEWED)
    assert lives(agent)
    assert Kind.STOPPING not in kinds_of(run)


def test_the_agent_inherits_no_ignored_and_no_blocked_signal(rig, start_runner):
    start_runner("/bin/sleep", "600", ignoring=[signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
    agent = reported(rig, Kind.STARTED).facts["pid"]
    until(lambda: "sleep" in Path(f"/proc/{agent}/comm").read_text(), "exec")
    status = dict(
        line.split(":\t") for line in Path(f"/proc/{agent}/status").read_text().splitlines()
    )
    # 32 and 33 are glibc's own: its posix_spawn leaves them ignored, and nobody else can set them.
    own = 1 << 31 | 1 << 32
    assert int(status["SigIgn"], 16) & ~own == 0
    assert int(status["SigBlk"], 16) & ~own == 0


def test_sigterm_to_the_supervisor_is_a_stop(rig):
    run = rig.start("/bin/sleep", "600")
    expect(run, Kind.STARTED)
    os.kill(run.pid, signal.SIGTERM)
    assert expect(run, Kind.STOPPING).facts["reason"] == "stop"
    assert expect(run, Kind.EXITED).facts["signal"] == signal.SIGTERM
    expect(run, Kind.RENEWED)


def test_a_terminal_that_hangs_up_reaches_neither_supervisor_nor_agent(rig):
    spec = rig.spec("/bin/sleep", "600")
    spec.write(rig.directory / "given")
    runner, terminal = pty.fork()
    if runner == 0:
        # This runner survives its terminal, as one that drains does.
        code = [sys.executable, "-c", RUNNER, str(rig.directory / "given"), str(int(signal.SIGHUP))]
        os.execve(sys.executable, code, rig.env)
    try:
        facts = reported(rig, Kind.STARTED).facts
        reader = ReportReader(str(rig.report))
        os.close(terminal)
        reader.read_new()
        until(
            lambda: Kind.RENEWED in [event.kind for event in reader.read_new()],
            "the lease is renewed after the hang-up",
        )
        assert lives(facts["pid"])
        assert lives(facts["supervisor"]["pid"])
    finally:
        os.kill(runner, signal.SIGKILL)
        os.waitpid(runner, 0)
    reported(rig, Kind.RECORDED)


def test_a_runner_that_dies_with_its_terminal_leaves_the_end_to_the_supervisor(rig):
    spec = rig.spec("/bin/sleep", "600")
    spec.write(rig.directory / "given")
    runner, terminal = pty.fork()
    if runner == 0:
        os.execve(
            sys.executable, [sys.executable, "-c", RUNNER, str(rig.directory / "given")], rig.env
        )
    reported(rig, Kind.STARTED)
    os.close(terminal)
    assert os.WTERMSIG(os.waitpid(runner, 0)[1]) == signal.SIGHUP
    assert reported(rig, Kind.STOPPING).facts["reason"] == "runner_gone"
    assert reported(rig, Kind.RECORDED).facts["accepted"]


def test_words_that_nobody_knows_change_nothing(rig):
    run = rig.start("/bin/sleep", "600")
    expect(run, Kind.STARTED)
    run._process.say("destroy; rm -rf /")
    assert expect(run, Kind.IGNORED).facts["command"] == "destroy; rm -rf /"
    expect(run, Kind.RENEWED)


def test_the_supervisor_has_its_own_session_and_holds_no_directory(rig):
    run = rig.start("/bin/sleep", "600")
    expect(run, Kind.STARTED)
    assert Path(f"/proc/{run.pid}/cwd").readlink() == Path("/")
    assert os.getsid(run.pid) == run.pid


def test_nothing_of_the_current_directory_is_imported(rig, monkeypatch):
    (rig.worktree / "json.py").write_text("raise SystemExit('imported from the repository')")
    (rig.worktree / "lessor").mkdir()
    (rig.worktree / "lessor" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(rig.worktree)
    run = rig.start("/bin/true")
    expect(run, Kind.GONE)


def test_two_supervisors_are_never_started_over_one_report_at_once(rig):
    spec = rig.spec("/bin/true")
    spec.write(Path(f"{spec.report}.spec"))
    with pytest.raises(FileExistsError):
        rig.start("/bin/true")
