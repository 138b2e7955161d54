"""A TCP proxy between workers and PostgreSQL that delays, falls silent, cuts, and swallows answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

CHUNK = 65536
POLL_S = 0.02
Place = tuple[str, int]


class _Line:
    """One client's connection, both ways."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.swallow = False

    def cut(self) -> None:
        for writer in (self.client, self.server):
            writer.transport.abort()


class Proxy:
    """Listens on a port of `host`; everything goes to `target`, which may change.

    It runs in a thread with a loop of its own; its methods may be called from any other.
    """

    def __init__(self, target: Place, *, host: str = "127.0.0.1") -> None:
        self.target = target
        self._host = host
        self._ready: Future[int] = Future()
        self._lines: set[_Line] = set()
        self._silent_until = 0.0
        self._deaf_until = 0.0
        self._delay_until = 0.0
        self._delay_s = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.port = self._ready.result(timeout=20)

    def close(self) -> None:
        """Cut everything and stop listening."""
        self.cut()
        self._soon(self._loop.stop)
        self._thread.join(timeout=10)

    def cut(self) -> None:
        """Reset every connection."""
        self._soon(lambda: [line.cut() for line in [*self._lines]])

    def swallow(self) -> None:
        """Of each connection the next answer is dropped and the connection is reset: the server has done it."""
        self._soon(lambda: [setattr(line, "swallow", True) for line in self._lines])

    def silence(self, seconds: float) -> None:
        """Let nothing through for a while, either way; what is sent meanwhile arrives late."""
        self._soon(lambda: setattr(self, "_silent_until", self._loop.time() + seconds))

    def deafen(self, seconds: float) -> None:
        """Let requests through and keep the answers for a while."""
        self._soon(lambda: setattr(self, "_deaf_until", self._loop.time() + seconds))

    def delay(self, each_s: float, seconds: float) -> None:
        """Hold up each piece for a moment."""

        def slow() -> None:
            self._delay_s, self._delay_until = each_s, self._loop.time() + seconds

        self._soon(slow)

    def calm(self) -> None:
        """End everything that is going on."""

        def end() -> None:
            self._silent_until = self._deaf_until = self._delay_until = 0.0
            for line in self._lines:
                line.swallow = False

        self._soon(end)

    def _soon(self, action: Callable[[], Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(action)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0)
        self._ready.set_result(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back_reader, back_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        line = _Line(writer, back_writer)
        self._lines.add(line)
        try:
            await asyncio.gather(
                self._pass_on(line, reader, back_writer, answers=False),
                self._pass_on(line, back_reader, writer, answers=True),
            )
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            line.cut()
            self._lines.discard(line)

    def _held_back(self, *, answers: bool) -> bool:
        until = max(self._silent_until, self._deaf_until if answers else 0.0)
        return self._loop.time() < until

    async def _pass_on(
        self,
        line: _Line,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answers: bool,
    ) -> None:
        while data := await reader.read(CHUNK):
            if answers and line.swallow:
                break
            if self._loop.time() < self._delay_until:
                await asyncio.sleep(self._delay_s)
            while self._held_back(answers=answers):  # noqa: ASYNC110 - it may end early
                await asyncio.sleep(POLL_S)
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError
