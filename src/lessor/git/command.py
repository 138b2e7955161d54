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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lessor.errors import GitError, GitMissingError
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

# What stops git whatever it was to do, by its own words.
_ROOM = "Make room on that disk, then try again: df -h"
_HELP: Mapping[str, str] = {
    "no space left on device": _ROOM,
    "out of diskspace": _ROOM,
    "disk quota exceeded": _ROOM,
    "read-only file system": "Mount it for writing, then try again.",
    "index.lock': file exists": "If no git runs there any more, remove that file, then try again.",
    "gpg failed to sign": "Unlock the key that commits are signed with, then try again; or sign none: "
    "git config commit.gpgSign false",
    "external filter": "Mend the filter, or see what it says: git lfs env, git config --get-regexp filter",
}
# The system's words end a line. Of a file that git could open and not write it keeps them for itself.
_DISK = tuple(list(_HELP)[:4])
_NOT_WRITTEN = "error: unable to write file "
_LINES_OF_COMPLAINT = 4
_CAUSES = ("fatal:", "error:")  # advice may follow, longer than what is kept
_HINT = "hint:"  # for somebody at a terminal; several lines of it would hide what went wrong
# Up to the last "@" before the path, as git reads it: a password may hold one.
_CREDENTIALS = re.compile(r"://[^/\s]+@")
_SECONDS_TO_CLEAN_UP = 5.0


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
    process = _start(command, cwd=cwd, env=_environment(env or {}))
    result = _finish(process, input, args=args, timeout_s=timeout_s)
    if check and result.code != 0:
        raise failure(args, result)
    return result


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
    import tempfile  # noqa: PLC0415 - a commit's hook, which waits for its imports, pipes nothing

    env = _environment({})
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as complaint:
        asked.write(input)
        asked.seek(0)
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
            result = _finish(sink, None, args=second, timeout_s=timeout_s)
        except BaseException:
            _stop(source)
            raise
        _finish(source, None, args=first, timeout_s=timeout_s)
        complaint.seek(0)
        begun = GitResult(code=source.returncode, out=b"", err=complaint.read())
    # Where the second ended early, the first died of the closed pipe.
    for args, ended in ((second, result), (first, begun)):
        if ended.code != 0:
            raise failure(args, ended)
    return result


def failure(args: Sequence[str], result: GitResult) -> GitError:
    """The error for a git command that failed, with its own last lines, credentials left out."""
    complaint = hide_credentials(result.err.decode(errors="replace"))
    told = [line for line in complaint.strip().splitlines() if not line.startswith(_HINT)]
    lines = told[-_LINES_OF_COMPLAINT:]
    cause = next((line for line in told if line.startswith(_CAUSES)), None)
    if cause is not None and cause not in lines:
        lines[0] = cause
    said = " ".join(line.strip() for line in lines) or f"exit code {result.code}"
    return GitError(
        f"git {_verb(args)} failed: {said}",
        next_step=next((step for words, step in _HELP.items() if words in complaint.lower()), ""),
        command=_verb(args),
        git_code=result.code,
        said=lines,
        **({"disk": True} if any(_is_of_disk(line) for line in told) else {}),
    )


def _is_of_disk(line: str) -> bool:
    return line.lower().rstrip(". ").endswith(_DISK) or line.startswith(_NOT_WRITTEN)


def hide_credentials(text: str) -> str:
    """The text with what stands before a URL's host left out."""
    return _CREDENTIALS.sub("://…@", text)


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


def _start(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int | IO[bytes] = subprocess.PIPE,
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
    process: subprocess.Popen[bytes],
    input: bytes | None,  # noqa: A002 - as in run_git
    *,
    args: Sequence[str],
    timeout_s: float,
) -> GitResult:
    try:
        out, err = _communicate(process, input, args=args, timeout_s=timeout_s)
    except subprocess.TimeoutExpired as late:
        _stop(process)
        raise GitError(
            f"git {_verb(args)} took longer than {timeout_s:g} s and was stopped.",
            next_step="Look for a full disk, a slow file system, or a filter that waits "
            "(git config --get-regexp filter), then try again.",
            command=_verb(args),
        ) from late
    except BaseException:
        _stop(process)
        raise
    return GitResult(code=process.returncode, out=out, err=err)


def _communicate(
    process: subprocess.Popen[bytes],
    input: bytes | None,  # noqa: A002 - as in run_git
    *,
    args: Sequence[str],
    timeout_s: float,
) -> tuple[bytes, bytes]:
    tell = told_when_slow.get()
    if timeout_s <= SLOW_S or tell is nobody:
        return process.communicate(input, timeout=timeout_s)
    # Not by a first wait that runs out and a second one: before Python 3.13 the second writes no
    # more of the input, and git and Lessor wait for each other until time is up.
    told = threading.Timer(SLOW_S, tell, (_verb(args), timeout_s - SLOW_S))
    told.daemon = True  # a terminal that takes no more words keeps no one from ending
    told.start()
    try:
        return process.communicate(input, timeout=timeout_s)
    finally:
        told.cancel()


def _stop(process: subprocess.Popen[bytes]) -> None:
    # The whole group: a filter or helper that git started would hold the pipes open.
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_SECONDS_TO_CLEAN_UP)
            return


def _verb(args: Sequence[str]) -> str:
    # The first plain word; the rest may hold a URL with credentials.
    skip = False
    for arg in args:
        if skip or arg.startswith("-"):
            skip = arg == "-c"
            continue
        return arg
    return ""
