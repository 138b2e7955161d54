"""A pooler in transaction mode, as small as one can be: each transaction goes to another backend.

It speaks just enough of PostgreSQL's protocol to tell messages apart. Like the real ones it invents
the backend pid that it tells a client, and keeps nothing of a session between transactions.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from psycopg.conninfo import conninfo_to_dict

_FAKE_PID = 424_242
_SSL, _CANCEL = 80877103, 80877102


class Pooler:
    """Listens on a port of its own; `url` leads through it to the database of `target`."""

    def __init__(self, target: str, *, backends: int = 3) -> None:
        self._target = conninfo_to_dict(target)
        self._backends = backends
        self._ready: Future[int] = Future()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        port = self._ready.result(timeout=20)
        name = self._target["dbname"]
        self.url = f"postgresql://{self._target.get('user', 'postgres')}@127.0.0.1:{port}/{name}"
        self.transactions = 0

    def close(self) -> None:
        """Stop listening and leave the server."""
        self._stop()
        self._thread.join(timeout=20)

    async def _run(self) -> None:
        self._free: asyncio.Queue[Any] = asyncio.Queue()
        self._serving: set[asyncio.Task[None]] = set()
        hello: list[bytes] = []
        for _ in range(self._backends):
            reader, writer, parameters = await self._backend()
            hello = parameters
            self._free.put_nowait((reader, writer))
        self._hello = b"".join(hello)
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self._ready.set_result(server.sockets[0].getsockname()[1])
        await stopped.wait()
        server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        while not self._free.empty():
            writer = self._free.get_nowait()[1]
            writer.close()
            await writer.wait_closed()

    async def _backend(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, list[bytes]]:
        host = str(self._target.get("host") or "127.0.0.1")
        port = int(str(self._target.get("port") or 5432))
        if host.startswith("/"):
            reader, writer = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            reader, writer = await asyncio.open_connection(host, port)
        words = [
            "user",
            str(self._target.get("user", "postgres")),
            "database",
            str(self._target["dbname"]),
        ]
        body = struct.pack("!i", 196608) + b"".join(w.encode() + b"\0" for w in words) + b"\0"
        writer.write(struct.pack("!i", len(body) + 4) + body)
        parameters = []
        while True:
            kind, message = await _message(reader)
            if kind == b"S":
                parameters.append(message)
            if kind == b"E":
                raise RuntimeError(message)
            if kind == b"Z":
                return reader, writer, parameters

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            while True:
                (length, code) = struct.unpack("!ii", await reader.readexactly(8))
                await reader.readexactly(length - 8)
                if code != _SSL:
                    break
                writer.write(b"N")
            if code == _CANCEL:
                return
            key = b"K" + struct.pack("!iii", 12, _FAKE_PID, 1)
            writer.write(
                b"R"
                + struct.pack("!ii", 8, 0)
                + self._hello
                + key
                + b"Z"
                + struct.pack("!i", 5)
                + b"I"
            )
            await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._serving.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            kind, first = await _message(reader)
            if kind == b"X":
                return
            backend = await self._free.get()
            try:
                await self._transaction(first, kind, reader, writer, backend)
            finally:
                self.transactions += 1
                self._free.put_nowait(backend)

    async def _transaction(
        self,
        first: bytes,
        kind: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        backend: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Pass messages on until the backend is idle again and nothing more was asked."""
        asked = 0
        message = first
        while True:
            backend[1].write(message)
            if kind in {b"Q", b"S"}:
                asked += 1
                status = b""
                while asked:
                    back, answer = await _message(backend[0])
                    writer.write(answer)
                    if back == b"Z":
                        asked -= 1
                        status = answer[-1:]
                await writer.drain()
                if status == b"I":
                    return
            elif (
                kind == b"H"
            ):  # Flush: answers before the Sync; they come with it, which is as good
                pass
            kind, message = await _message(reader)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!i", head[1:])
    return head[:1], head + await reader.readexactly(length - 4)
