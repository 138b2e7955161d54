"""The resident process that git's hooks ask: one a repository, started by the first push.

`python -m lessor.receive.keeper FOLDER`, FOLDER being `lessor` in the repository. It listens on a
socket in that folder, which only its owner can enter, lets go of the store after a while without a
push (an upgrade needs it alone), and ends a while later. Another Lessor's hook makes it end at
once: the next one is started from what is installed now.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socketserver
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessor.clock import Clock, SystemClock
from lessor.connect import connect
from lessor.errors import LessorError, StoreUnavailableError
from lessor.hook.client import BEAT, BEAT_S, LOCK, NO, PASSED_ON, SOCKET, STALE, YES, mark
from lessor.receive.book import Book, StoreBook
from lessor.receive.gate import Gate, Push, Verdict, parse_updates
from lessor.service.lessor import Lessor

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: Callable[..., Any]) -> Callable[..., Any]:
        """typing.override, which Python 3.11 lacks."""
        return method


SETTINGS = "gate.json"
STORE_IDLE_MS = 20_000
IDLE_MS = 600_000
_LOOK_S = 1.0


class Keeper:
    """Answers hooks; its store is open while pushes come.

    Args:
        folder: `lessor` in the repository.
        settings: which store and repository are asked; see `settings_text`.
    """

    def __init__(self, folder: Path, settings: dict[str, str], clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._gate = Gate(folder.parent, folder, self._book)
        self._lessor: Lessor | None = None
        self._file: tuple[int, int] | None = None
        self._asking = 0
        self._last_ms = clock.boottime_ms()
        self._lock = threading.Lock()
        self._mark = mark()
        self.ending = threading.Event()

    @property
    def has_store(self) -> bool:
        """Whether the store is open."""
        return self._lessor is not None

    def answer(self, question: bytes) -> bytes:
        """The answer to one hook, in the client's own fields."""
        stage, pid, known, shown, *rest = question.split(b"\0", 4 + len(PASSED_ON))
        if known.decode() != self._mark:
            self.ending.set()
            return STALE
        with self._lock:
            self._asking += 1
        try:
            verdict = self._judge(stage.decode(), int(pid), shown.decode(), rest)
        except Exception as fault:  # noqa: BLE001 - a fault of ours lets nothing through either
            print(f"{type(fault).__name__}: {fault}", file=sys.stderr, flush=True)  # noqa: T201
            why = f"refused: the keeper failed ({type(fault).__name__}); its log says more."
            verdict = Verdict(passed=False, words=(why,))
        finally:
            with self._lock:
                self._asking -= 1
                self._last_ms = self._clock.boottime_ms()
        said = "\0".join(verdict.words).encode("utf-8", "backslashreplace")
        return (YES if verdict.passed else NO) + b"\0" + said

    def rest(self) -> None:
        """Let go of what no push needs any more."""
        with self._lock:
            idle = self._clock.boottime_ms() - self._last_ms
            if self._asking:
                return
            if idle >= STORE_IDLE_MS and self._lessor is not None:
                self._lessor.close()
                self._lessor = None
            if idle >= IDLE_MS or not Path(SOCKET).exists():  # the repository may be gone
                self.ending.set()

    def close(self) -> None:
        """Give up the store."""
        if self._lessor is not None:
            self._lessor.close()

    def _judge(self, stage: str, pid: int, shown: str, rest: list[bytes]) -> Verdict:
        *passed_on, updates = rest
        env = {
            name: os.fsdecode(value)
            for name, value in zip(PASSED_ON, passed_on, strict=True)
            if value
        }
        push = Push(
            pid=pid,
            process=process_mark(pid),
            updates=parse_updates(updates),
            shown=shown,
            env=env,
        )
        if stage == "pre-receive":
            self._gate.forget_past(lambda other, name: process_mark(other) != name)
            return self._gate.receive(push)
        return self._gate.prepare(push)

    def _book(self) -> Book:
        with self._lock:
            url = self._settings["store"]
            file = _file_of(url)
            if self._lessor is not None and file != self._file:
                # Another file took its place: what is open is nobody's store any more.
                if self._asking == 1:
                    self._lessor.close()
                self._lessor = None
            if self._lessor is None:
                self._lessor = connect(url, listen_dsn=self._settings.get("listen") or None)
                self._file = file
            return StoreBook(self._lessor, self._settings["repository"])


def _file_of(url: str) -> tuple[int, int] | None:
    """The file that a store is in, by device and number; None for a server's."""
    path = url.removeprefix("sqlite://")
    if "://" in path:
        return None
    try:
        found = Path(path).stat()
    except OSError as gone:
        # Opening it would make a new, empty one, in which nothing is leased.
        raise StoreUnavailableError(f"{path} isn't there.", next_step="Mount its disk.") from gone
    return found.st_dev, found.st_ino


def settings_text(*, store: str, listen: str | None, repository: str) -> str:
    """What a keeper needs to know, for the file `gate.json` (a store's URL may hold a password)."""
    return json.dumps({"store": store, "listen": listen or "", "repository": repository})


def process_mark(pid: int) -> str:
    """Tells a process from a later one with its number; empty where the system doesn't say."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        # The name in parentheses may hold anything; the start time is the 20th field after it.
        return stat.rpartition(b")")[2].split()[19].decode()
    with suppress(OSError):
        os.kill(pid, 0)
        return "there"
    return ""


class _Handler(socketserver.StreamRequestHandler):
    keeper: Keeper

    @override
    def handle(self) -> None:
        """Read the question to its end, and answer it; until then, show that somebody is at it."""
        question = self.rfile.read()
        if not question:
            return
        answered = threading.Event()
        beating = threading.Thread(target=self._beat, args=(answered,))
        beating.start()
        try:
            answer = self.keeper.answer(question)
        finally:
            answered.set()
            beating.join()
        self.wfile.write(answer)

    def _beat(self, answered: threading.Event) -> None:
        with suppress(OSError):  # nobody waits any more
            while not answered.wait(BEAT_S):
                self.wfile.write(BEAT)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = False  # a push that was let in is answered
    request_queue_size = 128


def main(arguments: list[str]) -> int:
    """Answer until nobody has asked for a while."""
    folder = Path(arguments[0])
    os.chdir(folder)  # a socket's name has to be short
    alone = _alone(folder / LOCK)
    if alone is None:
        return 0
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        keeper = Keeper(folder, settings, SystemClock())
    except (OSError, ValueError, LessorError) as fault:
        print(f"{type(fault).__name__}: {fault}", file=sys.stderr)  # noqa: T201
        return 1
    signal.signal(signal.SIGTERM, lambda *_: keeper.ending.set())
    serve(keeper)
    return 0


def stop_keeper(folder: Path) -> None:
    """End the keeper of a repository, if there is one; the next push starts another."""
    if not folder.is_dir():
        return
    handle = _alone(folder / LOCK)
    if handle is not None:
        os.close(handle)
        return
    with suppress(OSError, ValueError):
        os.kill(int((folder / LOCK).read_text(encoding="ascii")), signal.SIGTERM)


def serve(keeper: Keeper) -> None:
    """Listen in the directory that this process is in."""
    Path(SOCKET).unlink(missing_ok=True)
    handler = type("Handler", (_Handler,), {"keeper": keeper})
    old_mask = os.umask(0o177)
    server = _Server(SOCKET, handler)
    os.umask(old_mask)
    listening = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.05))
    listening.start()
    try:
        _until(keeper.ending, keeper.rest)
    finally:
        # Nobody new finds it; who has found it is answered.
        Path(SOCKET).unlink(missing_ok=True)
        server.shutdown()
        listening.join()
        server.server_close()
        keeper.close()


def _until(ending: threading.Event, rest: Callable[[], None]) -> None:
    while not ending.wait(_LOOK_S):
        rest()


def _alone(place: Path) -> int | None:
    """The lock of the one keeper; None where there is another."""
    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())
    return handle


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
