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
from lessor.git.slow import SLOW_S, nobody, told_when_slow

DEFAULT_TIMEOUT_S = 120.0
CHECKOUT_TIMEOUT_S = 900.0

# merge-tree --stdin and patch-id --verbatim are what the newest callers here need.
OLDEST_GIT = (2, 39)

# Where the machine keeps git's configuration is a fact like HOME, not part of a session.
_KEPT_VARIABLES = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})

_FIXED_VARIABLES: Mapping[str, str] = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    # Looking at a worktree must not rewrite its index under a running agent.
    "GIT_OPTIONAL_LOCKS": "0",
    # `git replace` could show the gates another history than the one that is pushed.
    "GIT_NO_REPLACE_OBJECTS": "1",
    # So could grafts, its older way: a file that the worktrees of a repository share.
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
}

# What a command of Lessor's own could set off. From git 2.54 on configuration names hooks, too, and
# no folder's setting switches those off; an older git doesn't know these keys.
_EVENTS = (
    *("reference-transaction", "post-checkout", "post-index-change", "pre-push", "post-commit"),
    *("pre-commit", "prepare-commit-msg", "commit-msg", "pre-merge-commit", "post-merge"),
    *("pre-rebase", "post-rewrite", "pre-applypatch", "post-applypatch", "applypatch-msg"),
)
_NO_HOOKS = (
    "core.hooksPath=/dev/null",
    *(f"hook.{event}.enabled=false" for event in _EVENTS),
)
_FIXED_CONFIGURATION = (
    "core.fsmonitor=false",
    # Also in a bare repository: without HEAD's reflog nobody can tell what was reset away.
    "core.logAllRefUpdates=true",
    "gc.auto=0",
    "maintenance.auto=false",
    # `git log` would run `gpg.program` for each signed commit, and print its words between ours.
    "log.showSignature=false",
    # The empty file of grafts would be complained of in every command's words.
    "advice.graftFileDeprecated=false",
)

# Before a command that writes the only copy of something: by default git leaves loose objects to
# the system's own time, and a power cut may take them.
DURABLY = ("-c", "core.fsync=committed,reference")

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECONDS_TO_CLEAN_UP = 5.0
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
    SIGTERM first, so that it takes its lock files and half-made directories away. `hooks` lets the
    repository's own hooks run.

    Raises:
        GitMissingError: There is no git to run.
        GitError: Git failed and `check` is set, `cwd` is no directory, or time ran out; the facts
            hold the command's name, its exit code and its own last lines.
    """
    command = ["git", *_options(git_dir, work_tree, hooks=hooks), *args]
    with _holding(input) as given:
        process = _start(command, cwd=cwd, env=_environment(env or {}), stdin=given)
    result = _finish(process, args=args, timeout_s=timeout_s)
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
    env = _environment({})
    with _holding(input) as asked, _unnamed_file() as complaint:
        reading, writing = os.pipe()
        commands = [["git", *_options(git_dir, None), *args] for args in (first, second)]
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


def _options(git_dir: Path | None, work_tree: Path | None, *, hooks: bool = False) -> list[str]:
    options = [f"--git-dir={git_dir}"] if git_dir is not None else []
    if work_tree is not None:
        options.append(f"--work-tree={work_tree}")
    for setting in _FIXED_CONFIGURATION if hooks else (*_NO_HOOKS, *_FIXED_CONFIGURATION):
        options += ["-c", setting]
    return options


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT_VARIABLES
    }
    return {**kept, **_FIXED_VARIABLES, **extra}


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


def _finish(
    process: subprocess.Popen[bytes], *, args: Sequence[str], timeout_s: float
) -> GitResult:
    try:
        out, err = _communicate(process, args=args, timeout_s=timeout_s)
    except subprocess.TimeoutExpired as late:
        _stop(process)
        raise GitError(
            f"git {verb_of(args)} took longer than {timeout_s:g} s and was stopped.",
            next_step="Look for a full disk, a slow file system, or a filter that waits "
            "(git config --get-regexp filter), then try again.",
            command=verb_of(args),
        ) from late
    except BaseException:
        _stop(process)
        raise
    return GitResult(code=process.returncode, out=out, err=err)


def _communicate(
    process: subprocess.Popen[bytes], *, args: Sequence[str], timeout_s: float
) -> tuple[bytes, bytes]:
    tell = told_when_slow.get()
    if timeout_s <= SLOW_S or tell is nobody:
        return _output(process, timeout_s)
    told = threading.Timer(SLOW_S, tell, (verb_of(args), timeout_s - SLOW_S))
    told.daemon = True  # a terminal that takes no more words keeps no one from ending
    told.start()
    try:
        return _output(process, timeout_s)
    finally:
        told.cancel()


def _output(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes]:
    """What git wrote until its end, be its pipes held open by what it leaves behind.

    A hook's background job has them, or the ssh that stays for the next connection.
    """
    left_s = timeout_s
    while True:
        ended = process.poll() is not None
        wait_s = _LOOK_S if ended else min(_LOOK_S, left_s)
        try:
            return process.communicate(timeout=wait_s)
        except subprocess.TimeoutExpired as late:
            if ended:
                return _rest(process.stdout, late.output), _rest(process.stderr, late.stderr)
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
