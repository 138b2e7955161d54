"""The one door to git: an argument list in, bytes out.

Nothing of the caller's own git session leaks in (a hook's `GIT_DIR` or `GIT_INDEX_FILE` would turn
a command on one repository into a command on another), no hook of the repository runs, nothing
asks a question, and nothing is repacked beside a claim.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lessor.errors import GitError, GitMissingError
from lessor.git.complaint import OF_DISK, failure, verb_of
from lessor.git.session import session_environment, session_options
from lessor.git.slow import SLOW_S, nobody, told_when_slow
from lessor.git.unwanted import HURRIED_S, wishes_to_stop

DEFAULT_TIMEOUT_S = 120.0
CHECKOUT_TIMEOUT_S = 900.0

# merge-tree --stdin and patch-id --verbatim are what the newest callers here need.
OLDEST_GIT = (2, 39)

# Before a command that writes the only copy of something: by default git leaves loose objects to
# the system's own time, and a power cut may take them.
DURABLY = ("-c", "core.fsync=committed,reference")

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECONDS_TO_CLEAN_UP = 5.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_S = 1.0
"""How often it is looked whether git has ended, where its output hasn't."""
_MOST_IN_A_PIPE = 1 << 20
"""Linux makes none larger for a user: all that git said is there, whatever others write behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitResult:
    """What one git command left: its exit code, standard output and standard error."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """The output without its last line end; bytes that aren't UTF-8 as surrogates."""
        return os.fsdecode(self.out).removesuffix("\n")

    @property
    def lines(self) -> list[str]:
        """The output's lines, for formats that hold no path."""
        return self.text.split("\n") if self.out else []

    @property
    def records(self) -> list[str]:
        """The NUL-ended records of `-z` output; bytes that aren't UTF-8 as surrogates."""
        return [os.fsdecode(record) for record in self.out.split(b"\0") if record]


def run_git(
    args: Sequence[str],
    *,
    cwd: Path,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    check: bool = True,
    input: bytes | None = None,  # noqa: A002 - the standard library's own word for it
    env: Mapping[str, str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    hooks: bool = False,
) -> GitResult:
    """Run git with `args` in `cwd` and return what it said.

    `git_dir` names the repository instead of letting git search upwards from `cwd`: a worktree
    whose entry is gone would otherwise be answered by any repository that happens to lie above it.
    `env` is added after the caller's own `GIT_*` variables were dropped. On a timeout git gets
    SIGTERM first, so that it takes its lock files and half-made directories away; so it does where
    somebody wants the end meanwhile (`wishes_to_stop`). `hooks` lets the repository's own hooks run.

    Raises:
        GitMissingError: There is no git to run.
        GitError: Git failed and `check` is set, `cwd` is no directory, time ran out, or somebody wants
            the end; the facts hold the command's name, its exit code and its own last lines.
    """
    command = ["git", *session_options(git_dir, work_tree, hooks=hooks), *args]
    process: subprocess.Popen[bytes] | None = None
    try:
        with _holding(input) as given, _heard_later():
            process = _start(command, cwd=cwd, env=session_environment(env or {}), stdin=given)
        result = _finish(process, args=args, timeout_s=timeout_s)
    except BaseException:  # a signal may come before it is waited for
        if process is not None and process.returncode is None:
            _stop(process)
        raise
    if check and result.code != 0:
        refused = failure(args, result)
        if refused.facts.get(OF_DISK) and _may_be_named(args, input, cwd=cwd, git_dir=git_dir):
            refused.facts = {**refused.facts, OF_DISK: False}
        raise refused
    return result


def _may_be_named(
    args: Sequence[str],
    input: bytes | None,  # noqa: A002 - as in run_git
    *,
    cwd: Path,
    git_dir: Path | None,
) -> bool:
    """Whether git handled a path that holds a line end: a line of its complaint may be a piece of that."""
    if "-z" in args and b"\n" in (input or b""):
        return True
    trees = [["ls-tree", "-r", "-z", "--name-only", arg] for arg in args if _OID.fullmatch(arg)]
    listed = (
        run_git(asked, cwd=cwd, git_dir=git_dir, check=False)
        for asked in (["ls-files", "-z"], *trees)
    )
    return any(b"\n" in names.out for names in listed)


def pipe_git(
    first: Sequence[str],
    second: Sequence[str],
    *,
    cwd: Path,
    git_dir: Path,
    input: bytes,  # noqa: A002 - as in run_git
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> GitResult:
    """Run `git first | git second` and return what the second said; `input` is for the first.

    What goes from one to the other is never in this process's memory: the patches of a repository
    may be larger than that.

    Raises:
        GitMissingError: There is no git to run.
        GitError: One of them failed, or time ran out.
    """
    env = session_environment({})
    with _holding(input) as asked, _unnamed_file() as complaint:
        reading, writing = os.pipe()
        commands = [["git", *session_options(git_dir, None), *args] for args in (first, second)]
        try:
            source = _start(
                commands[0], cwd=cwd, env=env, stdin=asked, stdout=writing, stderr=complaint
            )
        finally:
            os.close(writing)
        try:
            sink = _start(commands[1], cwd=cwd, env=env, stdin=reading)
        except BaseException:
            _stop(source)
            raise
        finally:
            os.close(reading)
        try:
            result = _finish(sink, args=second, timeout_s=timeout_s)
        except BaseException:
            _stop(source)
            raise
        _finish(source, args=first, timeout_s=timeout_s)
        complaint.seek(0)
        begun = GitResult(code=source.returncode, out=b"", err=complaint.read())
    # Where the second ended early, the first died of the closed pipe.
    for args, ended in ((second, result), (first, begun)):
        if ended.code != 0:
            raise failure(args, ended)
    return result


@functools.cache
def require_git() -> tuple[int, int]:
    """The version of git that is installed, as (major, minor); asked once a process.

    Raises:
        GitMissingError: There is no git, or it is older than Lessor needs.
    """
    said = run_git(["version"], cwd=Path("/")).text
    match = re.search(r"(\d+)\.(\d+)", said)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < OLDEST_GIT:
        needed = ".".join(map(str, OLDEST_GIT))
        raise GitMissingError(
            f"Lessor needs git {needed} or newer; this is {said!r}.",
            next_step="Install a newer git.",
            found=said,
            needed=needed,
        )
    return version


@contextlib.contextmanager
def _holding(input: bytes | None) -> Iterator[int | IO[bytes]]:  # noqa: A002 - as in run_git
    """What git reads its input from.

    No pipe, which is filled while git is listened to: before Python 3.13 a second wait for git's
    output writes no more of it, and the two wait for each other.
    """
    if input is None:
        yield subprocess.DEVNULL
        return
    with _unnamed_file() as file:
        file.write(input)
        file.seek(0)
        yield file


def _unnamed_file() -> IO[bytes]:
    with contextlib.suppress(AttributeError, OSError):  # Linux alone has it
        return open(os.memfd_create("lessor"), "w+b")  # noqa: PTH123 - it has no path
    import tempfile  # noqa: PLC0415 - a commit's hook waits for its imports

    return tempfile.TemporaryFile()


def _start(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int | IO[bytes],
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    if not cwd.is_dir():
        raise GitError(
            f"{cwd} is no directory that git could run in.",
            next_step="Name a directory that is there, and that you may go into.",
            directory=str(cwd),
        )
    try:
        # A group of its own: Ctrl-C in the terminal must not stop git between two renames.
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            process_group=0,
        )
    except FileNotFoundError as missing:
        raise GitMissingError(
            "git isn't installed, or not on the PATH.", next_step="Install git."
        ) from missing
    except OSError as refused:
        raise GitError(f"git couldn't be started: {refused.strerror}.") from refused


@contextlib.contextmanager
def _heard_later() -> Iterator[None]:
    """Hear what ends this process after the block: while git begins, it would be left to nobody."""
    if threading.current_thread() is not threading.main_thread():  # there no signal is heard
        yield
        return
    heard: list[int] = []
    before = {number: signal.getsignal(number) for number in _ENDING}
    taken = {number: handler for number, handler in before.items() if callable(handler)}
    for number in taken:
        signal.signal(number, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
    for late in heard:
        signal.raise_signal(late)


class _UnwantedError(Exception):
    """Somebody doesn't want to wait any longer."""


def _finish(
    process: subprocess.Popen[bytes], *, args: Sequence[str], timeout_s: float
) -> GitResult:
    wished = wishes_to_stop.get()()
    if wished:
        timeout_s = min(timeout_s, HURRIED_S)
    try:
        out, err = _communicate(process, args=args, timeout_s=timeout_s, wished=wished)
    except subprocess.TimeoutExpired as late:
        _stop(process)
        raise GitError(
            f"git {verb_of(args)} took longer than {timeout_s:g} s and was stopped.",
            next_step="Look for a full disk, a slow file system, or a filter that waits "
            "(git config --get-regexp filter), then try again.",
            command=verb_of(args),
        ) from late
    except _UnwantedError:
        _stop(process)
        raise GitError(
            f"git {verb_of(args)} was stopped before its end, as you asked.",
            next_step="What it was at is as it was, or is mended by the next run.",
            command=verb_of(args),
        ) from None
    except BaseException:
        _stop(process)
        raise
    return GitResult(code=process.returncode, out=out, err=err)


def _communicate(
    process: subprocess.Popen[bytes], *, args: Sequence[str], timeout_s: float, wished: int
) -> tuple[bytes, bytes]:
    tell = told_when_slow.get()
    if timeout_s <= SLOW_S or tell is nobody:
        return _output(process, timeout_s, wished=wished)
    told = threading.Timer(SLOW_S, tell, (verb_of(args), timeout_s - SLOW_S))
    told.daemon = True  # a terminal that takes no more words keeps no one from ending
    told.start()
    try:
        return _output(process, timeout_s, wished=wished)
    finally:
        told.cancel()


def _output(
    process: subprocess.Popen[bytes], timeout_s: float, *, wished: int
) -> tuple[bytes, bytes]:
    """What git wrote until its end, be its pipes held open by what it leaves behind.

    A hook's background job has them, or the ssh that stays for the next connection.
    """
    wishes = wishes_to_stop.get()
    left_s = timeout_s
    while True:
        ended = process.poll() is not None
        wait_s = _LOOK_S if ended else min(_LOOK_S, left_s)
        try:
            return process.communicate(timeout=wait_s)
        except subprocess.TimeoutExpired as late:
            if ended:
                return _rest(process.stdout, late.output), _rest(process.stderr, late.stderr)
            if wishes() != wished:
                raise _UnwantedError from late
            left_s -= wait_s
            if left_s <= 0:
                raise


def _rest(pipe: IO[bytes] | None, read: bytes | None) -> bytes:
    """What was read of a pipe, and what git has left in it: a process that was stopped itself looks too late."""
    said = read or b""
    if pipe is None or pipe.closed:
        return said
    with pipe:
        os.set_blocking(pipe.fileno(), False)
        return said + (pipe.read(_MOST_IN_A_PIPE) or b"")


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    # The whole group: a filter or helper that git started would hold the pipes open.
    for numbers in ((signal.SIGTERM, signal.SIGCONT), (signal.SIGKILL,)):
        with contextlib.suppress(ProcessLookupError):
            for number in numbers:  # a stopped git hears of its end only when it goes on
                os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_SECONDS_TO_CLEAN_UP)
            return
    _close(process)
