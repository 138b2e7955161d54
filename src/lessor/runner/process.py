"""Processes: the only module that starts them and signals them.

A command is always a list of arguments. The one exception is a text that the person configured
(`run_configured`); a task's text never comes near it.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lessor.clock import Clock
from lessor.errors import AgentError
from lessor.runner.host import can_pin_processes
from lessor.runner.proctable import (
    ProcessRow,
    descendants,
    has_environment,
    process_row,
    process_table,
)

TAIL_BYTES = 4096
_COMMAND_GRACE_MS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitStatus:
    """How a process ended: by itself with a code, or by a signal."""

    code: int | None = None
    signal: int | None = None

    @classmethod
    def of(cls, returncode: int) -> ExitStatus:
        """From the standard library's number, where a negative one names a signal."""
        return cls(signal=-returncode) if returncode < 0 else cls(code=returncode)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command came to.

    Attributes:
        code: its exit code; None when a signal ended it.
        signal: the signal that ended it.
        timed_out: whether that was because its time was over.
        interrupted: whether that was because its caller wished it.
        tail: the end of what it printed, as text; undecodable bytes are replaced.
        duration_ms: from its start to its end, on the clock that counts suspend.
    """

    code: int | None
    signal: int | None
    timed_out: bool
    tail: str
    duration_ms: int
    interrupted: bool = False


def never() -> bool:
    """No, whenever it is asked."""
    return False


class Detached:
    """A process that stays when its starter ends, and notices that by the end of its stdin."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def say(self, line: str) -> bool:
        """Write a line to its stdin; False when nobody reads it any more."""
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            return False
        try:
            pipe.write(f"{line}\n".encode())
        except BrokenPipeError:
            return False
        return True

    def hang_up(self) -> None:
        """Close its stdin."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """SIGKILL to it alone, stopped or not."""
        self._process.kill()

    def status(self) -> ExitStatus | None:
        """How it ended; None while it runs."""
        code = self._process.poll()
        return None if code is None else ExitStatus.of(code)


def start_detached(argv: Sequence[str], *, env: Mapping[str, str], errors: str) -> Detached:
    """Start a process in its own session, with a pipe to its stdin and its stderr in a file.

    It runs in "/" so that it holds nobody's directory.

    Raises:
        AgentError: it can't be started.
    """
    with open_log(errors) as output:
        return Detached(spawn(argv, cwd="/", env=env, stdin=subprocess.PIPE, output=output))


def run_command(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    log: str,
    timeout_ms: int,
    clock: Clock,
    interrupted: Callable[[], bool] = never,
) -> CommandResult:
    """Run a command to its end, its output appended to `log`.

    At its time limit, or once `interrupted` says so, its group and its descendants get SIGTERM and
    two seconds later SIGKILL. What is left of its group when it ends is killed too: a check that
    leaves a server behind would hold the next one's port. A process that detached from both is not
    found.

    Raises:
        AgentError: it can't be started.
    """
    started = clock.boottime_ms()
    offset = _size(log)
    with Path(os.devnull).open("rb") as nothing, open_log(log) as output:
        process = spawn(argv, cwd=cwd, env=env, stdin=nothing, output=output)
    try:
        in_time = _ends_within(process, timeout_ms, clock, or_until=interrupted)
        wished = not in_time and interrupted()
        if not in_time:
            _signal_group(process.pid, signal.SIGTERM)
            _ends_within(process, _COMMAND_GRACE_MS, clock)
    finally:
        # Also when the wait was interrupted: nothing that was started here stays.
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
    status = ExitStatus.of(process.returncode)
    return CommandResult(
        code=status.code,
        signal=status.signal,
        timed_out=not in_time and not wished,
        tail=_tail(log, since=offset),
        duration_ms=clock.boottime_ms() - started,
        interrupted=wished,
    )


def run_configured(
    text: str,
    *,
    cwd: str,
    env: Mapping[str, str],
    log: str,
    timeout_ms: int,
    clock: Clock,
    interrupted: Callable[[], bool] = never,
) -> CommandResult:
    """Run a setup or check command that the person wrote, as `/bin/sh -c text`.

    Only for texts from the person's own configuration, read from the base commit and trusted
    once: people write `npm ci && npm test` there and mean a shell. A task's text, an agent's
    output and a file name are data and never reach this function.

    Raises:
        AgentError: there is no /bin/sh.
    """
    return run_command(
        ["/bin/sh", "-c", text],
        cwd=cwd,
        env=env,
        log=log,
        timeout_ms=timeout_ms,
        clock=clock,
        interrupted=interrupted,
    )


def kill_marked(entry: str) -> int:
    """SIGKILL to every process whose environment holds `entry` ("NAME=value"); how many.

    For what a dead supervisor left behind: an environment is inherited also by what detaches
    (Jenkins' ProcessTreeKiller finds processes this way). It proves nothing: a process can start
    another with an empty one.
    """
    marked = [row for row in process_table().values() if has_environment(row.pid, entry)]
    return sum(send_signal(row, signal.SIGKILL) for row in marked if not row.ended)


def send_signal(row: ProcessRow, number: signal.Signals) -> bool:
    """Send a signal to that very process; False when it is gone or isn't ours.

    Its pid may have passed on since the row was read. Where the system can pin a process, the
    check and the signal concern the same one.
    """
    try:
        if not can_pin_processes():
            return _is_same(row) and _kill(row.pid, number)
        pinned = os.pidfd_open(row.pid)
    except OSError:
        return False
    try:
        if not _is_same(row):
            return False
        signal.pidfd_send_signal(pinned, number)
    except OSError:
        return False
    finally:
        os.close(pinned)
    return True


def open_log(path: str) -> IO[bytes]:
    """Open a log for appending, made with mode 0600; what isn't a plain file is refused.

    An agent can put anything in its place: a link leads elsewhere, and a pipe waits for a reader.

    Raises:
        AgentError: it can't be opened.
    """
    try:
        return os.fdopen(_open_plain(path), "ab", buffering=0)
    except OSError as error:
        raise AgentError(
            f"The log {path} can't be written: {error.strerror}.",
            next_step="Check the directory and its free space.",
            path=path,
        ) from error


def _open_plain(path: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EEXIST, "something else is in its place")
    return handle


def spawn(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: int | IO[bytes],
    output: IO[bytes],
    before_exec: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in its own session, stdout and stderr into `output`.

    `before_exec` runs in the child before the command does; give one only in a process that has
    one thread.

    Raises:
        AgentError: it can't be started.
    """
    if not argv:
        raise AgentError("An empty command can't be started.", next_step="Name the command.")
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
            preexec_fn=before_exec,  # noqa: PLW1509 - only in a process with one thread
        )
    except (OSError, ValueError) as error:
        raise AgentError(
            f"{argv[0]!r} can't be started in {cwd}: {error}.",
            next_step="Check the command, that it is on PATH, and the directory.",
            program=argv[0],
        ) from error


def _ends_within(
    process: subprocess.Popen[bytes],
    milliseconds: int,
    clock: Clock,
    *,
    or_until: Callable[[], bool] = never,
) -> bool:
    deadline = clock.boottime_ms() + milliseconds
    pause = 1
    while not _has_ended(process):
        left = deadline - clock.boottime_ms()
        if left <= 0 or or_until():
            return False
        clock.wait(min(pause, left))
        pause = min(2 * pause, 50)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    # Left uncollected where the system can look without collecting: its number stays its group's,
    # so that the signal to what is left of the group can't hit a stranger.
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(leader: int, number: signal.Signals) -> None:
    if process_row(leader) is None:
        return  # collected already: the number may name another group
    outside = list(descendants(leader, process_table()))
    # The group first, as one: a shell whose children die before it does goes on to its next line.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    for row in outside:
        send_signal(row, number)


def _is_same(row: ProcessRow) -> bool:
    current = process_row(row.pid)
    return current is not None and current.start_ticks == row.start_ticks


def _kill(pid: int, number: signal.Signals) -> bool:
    os.kill(pid, number)
    return True


def _size(path: str) -> int:
    with suppress(OSError):
        return Path(path).stat().st_size
    return 0


def _tail(path: str, *, since: int) -> str:
    with suppress(OSError), Path(path).open("rb") as file:
        file.seek(max(since, _size(path) - TAIL_BYTES))
        return file.read(TAIL_BYTES).decode(errors="replace")
    return ""
