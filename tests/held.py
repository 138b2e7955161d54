"""Calls held at the very point where it matters, until they are let go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from builders import Yard
from lessor.errors import LessorError


@contextmanager
def holding(yard: Yard, text: str) -> Iterator[None]:
    """Row locks that `text` takes, until the block is left; on SQLite the whole file's."""
    if yard.store.kind == "sqlite":
        with closing(yard.store.raw()) as db:
            db.execute("BEGIN IMMEDIATE")
            yield
            db.execute("ROLLBACK")
        return
    with closing(psycopg.connect(yard.store.url, options="-c search_path=lessor")) as db:
        db.execute(text)  # type: ignore[call-overload]
        yield
        db.rollback()


def until_waiting(yard: Yard, sessions: int = 1) -> None:
    """Return once so many sessions wait for a lock; on SQLite at once: they go one after another."""
    if yard.store.kind == "sqlite":
        return
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    for _ in range(8_000):
        if yard.store.sql(waiting)[0][0] >= sessions:
            return
        threading.Event().wait(0.005)
    raise AssertionError("nobody waits")


def refusal(future: Future[Any]) -> LessorError:
    """The refusal with which a call in the background ended."""
    error = future.exception(timeout=30)
    assert isinstance(error, LessorError), error or future.result()
    return error
