"""Who takes part in a comparison: bare SQL, Lessor, and peers in processes of their own.

Each works off so many tasks one at a time or a hundred at a time, and tells tasks a second; each
but bare SQL shows what an old holder may still do once somebody else has its task.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import psycopg
from peers.environments import PEERS, NotInstalledError, Peer, command
from raw_postgres import raw_rate
from server import fresh_database
from sqlite import raw_connection, raw_fill, raw_work
from work import BATCH, Bench

from lessor import Result, connect
from lessor.errors import LeaseLostError

LONGEST_S = 600
SHORT_MS = 300
MODES = ("one", "batch")
SECTIONS = ("postgres", "sqlite", "paths")
"""Where the same work is done; `paths` is a lease of one path each, on SQLite."""
SHARE = {"paths": 20}
"""Where peers are slow: by what their tasks of a round are divided."""


class FailedError(Exception):
    """A peer didn't do what it was asked; the text says why."""


@dataclass(frozen=True)
class Contestant:
    """Somebody at work in a place of its own.

    Attributes:
        rate: tasks a second of a mode and so many tasks; None where there is no such call.
        stale: whether an old holder's completion and renewal were taken; None where there is no
            such thing.
    """

    name: str
    version: str
    kind: str
    note: str
    rate: Callable[[str, int], float | None]
    stale: Callable[[], dict[str, bool | None]]
    close: Callable[[], object]


def raw(section: str, mode: str, count: int) -> float:
    """Tasks a second of guarded SQL on the same server or disk."""
    if section == "postgres":
        return raw_rate(fresh_database("bench_raw"), mode, tasks=count)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "raw.db"))
        raw_fill(path, count)
        db = raw_connection(path)
        began = time.perf_counter()
        raw_work(db, 1 if mode == "one" else BATCH)
        took = time.perf_counter() - began
        db.close()
    return count / took


def lessor(section: str, folder: Path, *, scopes: bool) -> Contestant:
    """Lessor itself; with scopes each task has one path of its own for writing."""
    place = f"lessor_{int(scopes)}"
    url = fresh_database(f"bench_{place}") if section == "postgres" else str(folder / f"{place}.db")
    bench = Bench(connect(url), scopes=scopes)

    def rate(mode: str, count: int) -> float:
        bench.submit(count)
        return getattr(bench, mode)(count)

    return Contestant(
        name="Lessor, with a path" if scopes else "Lessor",
        version=version("lessor"),
        kind="lessor",
        note="writes two events and a kept answer for each task"
        + (", and holds one path" if scopes else ""),
        rate=rate,
        stale=lambda: stale_lessor(bench),
        close=bench.lessor.close,
    )


def stale_lessor(bench: Bench) -> dict[str, bool | None]:
    bench.submit(1)
    leases = bench.lessor.leases
    (first,) = leases.claim(replace(bench.request(), ttl_ms=SHORT_MS))
    time.sleep(2 * SHORT_MS / 1_000)
    (second,) = leases.claim(bench.request())
    assert second.holder.task == first.holder.task
    assert second.holder.epoch > first.holder.epoch
    taken = {"completion": True, "renewal": True}
    try:
        leases.renew_one(first.holder)
    except LeaseLostError:
        taken["renewal"] = False
    try:
        leases.complete_one(first.holder, Result())
    except LeaseLostError:
        taken["completion"] = False
    leases.complete_one(second.holder, Result())
    return taken


def peer(one: Peer, folder: Path) -> Contestant:
    """A peer in its own environment, on a database or in a folder of its own.

    Raises:
        NotInstalledError: it can't be had here.
        FailedError: it can't begin here.
    """
    line = command(one)
    if one.store == "postgres":
        place = fresh_database(f"bench_{one.name.lower().replace('-', '_')}")
    else:
        place = str(folder / one.name.lower().replace(" ", "-"))
        Path(place).mkdir()
    process = PeerProcess([*line, place], folder / f"{one.name}.log")
    return Contestant(
        name=one.name,
        version=one.version,
        kind="peer",
        note=one.note,
        rate=lambda mode, count: (process.ask(mode, count=count) or {}).get("per_s"),
        stale=lambda: stale_peer(one, place, process),
        close=process.close,
    )


def stale_peer(one: Peer, place: str, process: PeerProcess) -> dict[str, bool | None]:
    answer = process.ask("stale") or {}
    if one.store == "postgres":
        with psycopg.connect(place) as db:
            unlogged = "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'"
            if names := [name for (name,) in db.execute(unlogged) if name not in one.unlogged]:
                raise FailedError(f"not durable: {', '.join(names)} are unlogged")
    return answer


class PeerProcess:
    """A peer's script, asked line by line (see peers/serve.py); ended when it takes too long."""

    def __init__(self, line: list[str], log: Path) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def ask(self, call: str, **arguments: object) -> dict | None:
        late = threading.Timer(LONGEST_S, self._process.kill)
        late.start()
        try:
            self._process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
            self._process.stdin.flush()
            said = self._process.stdout.readline()
        except BrokenPipeError:
            said = ""
        finally:
            late.cancel()
        if not said:
            raise FailedError(reason(self._log.read_text(errors="replace")))
        answer = json.loads(said)
        if answer and "failed" in answer:
            raise FailedError(answer["failed"])
        return answer

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended by itself
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def reason(log: str) -> str:
    """The line of a peer's log that tells most: the last that names an error, or the last."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or ["it ended without a word"])[-1][:200]


def assemble(section: str, folder: Path) -> tuple[list[Contestant], dict[str, str]]:
    """Who takes part in a section, and who can't with the reason."""
    present = [lessor(section, folder, scopes=scopes) for scopes in (section == "paths", True)]
    if section == "paths":
        present.pop()
    absent = {}
    for one in PEERS:
        if one.store != section:
            continue
        print(f"  {one.name}", file=sys.stderr, flush=True)
        try:
            present.append(peer(one, folder))
        except NotInstalledError as why:
            absent[one.name] = f"not installed: {why}"
    return present, absent
