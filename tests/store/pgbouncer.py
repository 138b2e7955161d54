"""PgBouncer itself in transaction mode, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from lessor.clock import SystemClock

BACKENDS = 3
LONGEST_MS = 20_000


def is_installed() -> bool:
    """Whether there is a PgBouncer to run."""
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") is not None


class PgBouncer:
    """Listens on a port of its own; `url` leads through it to the database of `target`."""

    def __init__(self, target: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lessor-pgbouncer-"))
        self._folder.chmod(0o755)
        known = conninfo_to_dict(target)
        name, user = str(known["dbname"]), str(known.get("user") or "postgres")
        place = {k: str(v) for k, v in known.items() if k in {"host", "port", "user", "password"}}
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (self._folder / "users").write_text(f'"{user}" ""\n')
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(
            "[databases]\n"
            f"{name} = dbname={name} {' '.join(f'{k}={v}' for k, v in place.items())}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\nauth_file = {self._folder / 'users'}\n"
            f"pool_mode = transaction\ndefault_pool_size = {BACKENDS}\nmax_client_conn = 100\n"
        )
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program is not None
        other = ["-u", _owner(place.get("host", ""))] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [program, "-q", *other, str(settings)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.url = f"postgresql://{user}@127.0.0.1:{port}/{name}"
        try:
            self._wait()
        except psycopg.OperationalError:
            self.close()
            raise

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)

    def _wait(self) -> None:
        clock = SystemClock()
        until = clock.boottime_ms() + LONGEST_MS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                if clock.boottime_ms() > until or self._process.poll() is not None:
                    raise
                clock.wait(50)
            else:
                return


def _owner(host: str) -> str:
    """Whose process it has to be, as it refuses to be root's: the server's own, if that is by a socket."""
    return Path(host).owner() if host.startswith("/") else "nobody"
