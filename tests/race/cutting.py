"""A proxy before PostgreSQL that can keep the answer to a commit from whoever waits for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict

COMMITTED = b"Z\x00\x00\x00\x05I"
"""ReadyForQuery outside of a transaction: what was asked is committed, or was only read."""


class Proxy:
    """Passes on what clients and the server say, until it cuts a connection, once.

    Attributes:
        cut_when: asked before each answer that ends a transaction; True cuts instead of answering.
    """

    def __init__(self, url: str) -> None:
        self.cut_when: Callable[[], bool] | None = None
        known = conninfo_to_dict(url)
        self._server = (str(known["host"]), int(known.get("port") or 5432))
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        user = f"{known['user']}@" if "user" in known else ""
        self.url = urlunsplit(
            urlsplit(url)._replace(netloc=f"{user}127.0.0.1:{port}", query="sslmode=disable")
        )
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self._sockets: list[socket.socket] = []

    def close(self) -> None:
        """End every connection."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            for one in self._sockets:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            thread.join(10)
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                self._sockets += [client, server]
                for pair in ((client, server, False), (server, client, True)):
                    thread = threading.Thread(target=self._pass_on, args=pair, daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _cuts(self) -> bool:
        if self.cut_when is None or not self.cut_when():
            return False
        self.cut_when = None
        return True

    def _connect(self) -> socket.socket:
        host, port = self._server
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _pass_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while said := source.recv(65_536):
                if answers and said.endswith(COMMITTED) and self._cuts():
                    break
                target.sendall(said)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
