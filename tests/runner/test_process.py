"""Commands: waited for, limited in time, and leaving nothing behind."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from supervisor_rig import lives, until

from lessor.clock import SystemClock
from lessor.errors import AgentError
from lessor.runner import process as module
from lessor.runner.process import (
    ExitStatus,
    has_environment,
    kill_marked,
    open_log,
    run_command,
    run_configured,
    send_signal,
)
from lessor.runner.proctable import process_row

MINUTE = 60_000


@pytest.fixture
def run(tmp_path):
    def run_here(*argv, timeout_ms=MINUTE, env=None):
        return run_command(
            argv,
            cwd=str(tmp_path),
            env=os.environ if env is None else env,
            log=str(tmp_path / "log"),
            timeout_ms=timeout_ms,
            clock=SystemClock(),
        )

    return run_here


@pytest.fixture
def configured(tmp_path):
    def run_here(text, clock=None):
        return run_configured(
            text,
            cwd=str(tmp_path),
            env=os.environ,
            log=str(tmp_path / "log"),
            timeout_ms=MINUTE,
            clock=clock or SystemClock(),
        )

    return run_here


class TimeIsOverOnce(SystemClock):
    """A clock on which an hour passes during a wait, once a file has appeared."""

    def __init__(self, path):
        self._path = path
        self._passed = 0

    def boottime_ms(self):
        return super().boottime_ms() + self._passed

    def wait(self, milliseconds):
        super().wait(milliseconds)
        if self._path.exists():
            self._passed = 60 * MINUTE


def test_a_command_gives_its_code_and_the_end_of_what_it_printed(run, tmp_path):
    result = run(sys.executable, "-c", "import sys; print('a' * 9000); sys.exit('the end')")
    assert (result.code, result.signal, result.timed_out) == (1, None, False)
    assert result.tail.endswith("aaa\nthe end\n")
    assert len(result.tail) == module.TAIL_BYTES
    assert result.duration_ms >= 0
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_the_tail_is_of_this_command_alone(run, tmp_path):
    run("/bin/echo", "first")
    assert run("/bin/echo", "second").tail == "second\n"
    assert (tmp_path / "log").read_text() == "first\nsecond\n"


def test_bytes_that_are_no_text_are_kept_in_the_log_and_replaced_in_the_tail(run, tmp_path):
    result = run("/bin/sh", "-c", "printf '\\377ok'")
    assert result.tail == "�ok"
    assert (tmp_path / "log").read_bytes() == b"\xffok"


def test_arguments_never_meet_a_shell(run, tmp_path):
    text = f"; touch {tmp_path}/owned; $(touch {tmp_path}/owned) `touch {tmp_path}/owned`"
    assert run("/bin/echo", text).tail == text + "\n"
    assert not (tmp_path / "owned").exists()


def test_a_configured_text_is_a_shell_command(configured):
    assert configured("echo a && echo b >&2; exit 3").tail == "a\nb\n"
    assert configured("exit 3").code == 3


def test_stdin_is_empty_and_the_environment_is_the_given_one(run):
    assert run("/bin/cat").tail == ""
    assert run("/usr/bin/env", env={"A": "b"}).tail == "A=b\n"


def test_a_command_that_a_signal_ended_has_no_code(configured):
    result = configured("kill -KILL $$")
    assert (result.code, result.signal, result.timed_out) == (None, signal.SIGKILL, False)


def test_a_command_is_asked_to_end_at_its_time_limit(configured, tmp_path):
    result = configured(
        "trap 'echo asked; exit 9' TERM; touch begun; sleep 600 & wait",
        TimeIsOverOnce(tmp_path / "begun"),
    )
    assert (result.timed_out, result.code) == (True, 9)
    assert result.tail.endswith("asked\n")


def test_at_the_time_limit_what_ignores_sigterm_or_left_the_session_is_killed(configured, tmp_path):
    result = configured(
        "trap '' TERM; setsid sleep 600 & echo $! > detached; sleep 600 & echo $! > member;"
        "touch begun; wait",
        TimeIsOverOnce(tmp_path / "begun"),
    )
    assert (result.timed_out, result.signal) == (True, signal.SIGKILL)
    for name in ("detached", "member"):
        pid = int((tmp_path / name).read_text())
        until(lambda pid=pid: not lives(pid), f"the {name} process ends")


def test_a_background_process_of_a_finished_command_is_killed(configured, tmp_path):
    result = configured("sleep 600 & echo $! > server")
    assert (result.code, result.timed_out) == (0, False)
    pid = int((tmp_path / "server").read_text())
    until(lambda: not lives(pid), "the server ends")


def test_an_interrupted_wait_leaves_no_command_behind(tmp_path):
    class Interrupted(SystemClock):
        def wait(self, milliseconds):
            if (tmp_path / "pid").exists():
                raise KeyboardInterrupt
            super().wait(milliseconds)

    with pytest.raises(KeyboardInterrupt):
        run_command(
            ["/bin/sh", "-c", "echo $$ > draft; mv draft pid; sleep 600"],
            cwd=str(tmp_path),
            env=os.environ,
            log=str(tmp_path / "log"),
            timeout_ms=MINUTE,
            clock=Interrupted(),
        )
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not lives(pid), "the command ends")


@pytest.mark.parametrize(
    "argv",
    [
        ["/nowhere/agent"],
        ["no-such-agent-anywhere"],
        ["/etc/hostname"],
        ["/"],
        ["/bin/echo", "a\0b"],
        ["/bin/echo", "x" * 3_000_000],
        [],
        [""],
    ],
    ids=["absent", "not on path", "not executable", "directory", "NUL", "huge", "empty", "blank"],
)
def test_a_command_that_cannot_be_started_is_refused_with_a_next_step(run, argv):
    with pytest.raises(AgentError) as refusal:
        run(*argv)
    assert refusal.value.next_step


def test_a_missing_directory_is_refused(tmp_path):
    with pytest.raises(AgentError, match="gone"):
        run_command(
            ["/bin/true"],
            cwd=str(tmp_path / "gone"),
            env={},
            log=str(tmp_path / "log"),
            timeout_ms=MINUTE,
            clock=SystemClock(),
        )


def test_a_log_behind_a_symbolic_link_is_refused(tmp_path):
    (tmp_path / "secret").write_text("kept")
    (tmp_path / "log").symlink_to(tmp_path / "secret")
    with pytest.raises(AgentError):
        open_log(str(tmp_path / "log"))
    assert (tmp_path / "secret").read_text() == "kept"


@pytest.fixture(params=["pinned", "unpinned"])
def sleeper(request, monkeypatch):
    if request.param == "unpinned":
        monkeypatch.setattr(module, "can_pin_processes", lambda: False)
    process = subprocess.Popen(["/bin/sleep", "600"], env={"LESSOR_REPORT": f"/{os.getpid()}"})
    yield process
    process.kill()
    process.wait()


def test_a_signal_reaches_the_process_that_was_seen(sleeper):
    assert send_signal(process_row(sleeper.pid), signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM


def test_a_signal_never_reaches_another_process_with_the_same_pid(sleeper):
    seen = process_row(sleeper.pid)
    assert not send_signal(replace(seen, start_ticks=seen.start_ticks - 1), signal.SIGKILL)
    assert lives(sleeper.pid)


def test_a_signal_to_a_process_that_is_gone_says_so(sleeper):
    seen = process_row(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    assert not send_signal(seen, signal.SIGKILL)


def test_only_processes_with_the_whole_mark_are_killed(sleeper):
    until(lambda: has_environment(sleeper.pid, f"LESSOR_REPORT=/{os.getpid()}"), "exec")
    assert kill_marked(f"LESSOR_REPORT=/{os.getpid()}/longer") == 0
    assert kill_marked("LESSOR_REPORT=") == 0
    assert lives(sleeper.pid)
    assert kill_marked(f"LESSOR_REPORT=/{os.getpid()}") == 1
    assert sleeper.wait() == -signal.SIGKILL


def test_an_exit_status_is_a_code_or_a_signal():
    assert ExitStatus.of(0) == ExitStatus(code=0)
    assert ExitStatus.of(-9) == ExitStatus(signal=9)
