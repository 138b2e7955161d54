"""Asks the keeper of a bare repository about a push.

Run as `python -I -S client.py STAGE PID FOLDER PYTHON`, the updates on stdin: STAGE is git's hook
(`pre-receive`, or `reference-transaction` in its state "prepared"), PID the receive-pack that it
is about, FOLDER what lies in the repository for this, PYTHON the interpreter that has Lessor.
Question and answer are fields between NULs, which neither a reference's name nor a push option can
hold. While it judges, the keeper sends a dot now and then: one that is silent was stopped, or
hangs, and no push waits for it. The modules socket and json are left out: with them this takes 20 ms instead of 8,
and pathlib would be no better.
"""

from __future__ import annotations

import os
import sys
import time
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket  # CPython's and PyPy's own

SOCKET = "gate.sock"
LOG = "keeper.log"
LOCK = "gate.lock"
OPTION = "lessor="
PUSH = "LESSOR_PUSH"
YES, NO, STALE = b"yes", b"no", b"stale"
PASSED_ON = ("GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
START_S = 15.0
BEAT, BEAT_S = b".", 2.0
SILENCE_S = 30.0
ANSWER_S = 900.0
_PAUSE_S = 0.02
_AGAIN_S = 2.0
_BRANCHES = b"refs/heads/"
_MOST_DIGITS = 5


def main(arguments: list[str]) -> int:
    """Ask, say the answer's words, and return what git goes by: 0 lets the push on."""
    stage, pid, folder, python = arguments
    with os.fdopen(0, "rb", closefd=False) as stdin:
        updates = stdin.read()
    try:
        os.chdir(folder)  # a socket's name has to be short, and a repository's may be long
        answer = _asked(question(stage, pid, updates, dict(os.environ)), python)
    except OSError as silent:
        return _unasked(updates, silent)
    verdict, _, words = answer.partition(b"\0")
    _say(words)
    return 0 if verdict == YES else 1


def question(stage: str, pid: str, updates: bytes, environ: dict[str, str]) -> bytes:
    """What the keeper is asked: stage, pid, this file's mark, what the push shows, and the rest."""
    passed_on = [environ.get(name, "") for name in PASSED_ON]
    fields = [stage, pid, mark(), shown(environ), *passed_on]
    return b"\0".join([*(os.fsencode(field) for field in fields), updates])


def shown(environ: dict[str, str]) -> str:
    """What the push shows: its option, else what `lessor push` told its own machine's processes."""
    count = environ.get("GIT_PUSH_OPTION_COUNT", "")
    for n in range(int(count) if count.isdecimal() and len(count) <= _MOST_DIGITS else 0):
        option = environ.get(f"GIT_PUSH_OPTION_{n}", "")
        if option.startswith(OPTION):
            return option
    return environ.get(PUSH, "")


def mark() -> str:
    """Tells one installed Lessor from the next: a keeper of the last one is to be replaced."""
    seen = os.stat(__file__)
    return f"{seen.st_mtime_ns}.{seen.st_ino}"


def _asked(asked: bytes, python: str) -> bytes:
    """The keeper's answer; it is started where there is none, or one of another Lessor."""
    until = time.monotonic() + START_S
    started = 0.0
    while True:
        try:
            answer = _ask(asked)
            if answer and not answer.startswith(STALE):
                return answer
        except (FileNotFoundError, ConnectionError):
            pass
        now = time.monotonic()
        if now > until:
            raise OSError(f"no keeper answers; see {LOG} in {os.getcwd()}")
        if now - started > _AGAIN_S:  # the one before may only just be ending
            _start(python)
            started = now
        time.sleep(_PAUSE_S)


def _ask(asked: bytes) -> bytes:
    line = socket(AF_UNIX, SOCK_STREAM)
    until = time.monotonic() + ANSWER_S
    try:
        line.settimeout(SILENCE_S)
        line.connect(SOCKET)
        sent = 0
        while sent < len(asked):
            sent += line.send(asked[sent:])
        line.shutdown(SHUT_WR)
        parts = []
        while part := line.recv(65_536):
            parts.append(part)
            if time.monotonic() > until:
                raise OSError(f"no answer came within {ANSWER_S:g} s")
        return b"".join(parts).lstrip(BEAT)
    except TimeoutError as silent:
        raise OSError(_silence()) from silent
    finally:
        line.close()


def _silence() -> str:
    with open(LOCK, "rb") as lock:
        pid = lock.read(_MOST_DIGITS * 2).decode(errors="replace")
    return (
        f"process {pid} here, which is asked, has said nothing for {SILENCE_S:g} s; "
        f"the next push starts another after: kill -9 {pid}"
    )


def _start(python: str) -> None:
    """Start a keeper that outlives this push; it must hold none of its pipes, or the push hangs."""
    if os.fork():
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for place, source in ((0, nothing), (1, log), (2, log)):
            os.dup2(source, place)
        os.closerange(3, 256)
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("GIT_", PUSH))}
        here = os.getcwd()
        os.execve(python, [python, "-P", "-m", "lessor.receive.keeper", here], kept)
    finally:
        os._exit(127)


def _unasked(updates: bytes, silent: OSError) -> int:
    """Nobody can say which branches are leased: none is let through. A tag never is one."""
    if not any(line.partition(_BRANCHES)[1] for line in updates.splitlines()):
        return 0
    _say(
        f"refused: nobody can say whether these branches are leased: {silent}\0"
        "your commits are where they were. Push again once the store answers.".encode(
            errors="replace"
        )
    )
    return 1


def _say(words: bytes) -> None:
    for line in words.split(b"\0"):
        if line:
            os.write(2, b"lessor: " + line + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
