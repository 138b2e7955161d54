"""PgBouncer in transaction mode, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from torture.cluster import url_of

POOL = 8
LONGEST_S = 10.0


def why_not() -> str:
    """Why there is no pooler here; empty where there is."""
    return "" if _program() else "there is no pgbouncer here (Debian: pgbouncer)"


class Bouncer:
    """A pooler in front of `target`; `place` is where it listens."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lessor-bouncer-"))
        self._folder.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.place = ("127.0.0.1", port)
        (self._folder / "users").write_text('"postgres" ""\n')
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\ntorture = host={target[0]} port={target[1]} dbname=torture user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\nauth_file = {self._folder / 'users'}\nserver_login_retry = 1\n"
            f"pool_mode = transaction\ndefault_pool_size = {POOL}\nmax_client_conn = 200\n"
        )
        program = _program()
        if program is None:
            raise FileNotFoundError(why_not())
        other = ["-u", "nobody"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [program, "-q", *other, str(settings)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self) -> None:
        latest = time.monotonic() + LONGEST_S
        while True:
            try:
                psycopg.connect(url_of(*self.place), connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > latest or self._process.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.05)
            else:
                return


def _program() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
