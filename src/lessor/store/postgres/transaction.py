"""Transactions: Lessor's own, on a line, and the caller's, on a psycopg connection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg
import psycopg.abc
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8Dumper

from lessor.store import Call, Row
from lessor.store.postgres.line import Line, Statement, parse_statement
from lessor.store.postgres.lineage import Lineage
from lessor.store.postgres.opening import LOCAL_SETTINGS, LOCK_PATIENCE_MS
from lessor.store.statements import load_statements

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_BEGIN: Call = ("begin", {})
_COMMIT: Call = ("commit", {})
_SETTINGS: Call = ("settings", {})
_ROLLBACK: Call = ("rollback", {})


@lru_cache
def own_statements() -> Mapping[str, Statement]:
    """All statements, and those that frame them."""
    frame = {
        "begin": "BEGIN",
        "commit": "COMMIT",
        "rollback": "ROLLBACK",
        "discard_plans": "DISCARD PLANS",
        # See opening.settle.
        "settings": f"SELECT set_config('lock_timeout', '{LOCK_PATIENCE_MS}', true), {LOCAL_SETTINGS}",
    }
    texts = {**load_statements("postgres"), **frame}
    return {name: parse_statement(text) for name, text in texts.items()}


class PostgresTransaction:
    """A transaction that begins with its first statement.

    Args:
        first: what it begins with, answered by nothing that the rule asked for.
    """

    def __init__(self, line: Line, *, first: Sequence[Call] = ()) -> None:
        self._line = line
        self._first = first
        self._begun = False
        self.over = False

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Run one named statement."""
        return self.batch((name, values))[0]

    def batch(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order, in one round trip."""
        if not calls:
            return []
        begin = self._begin()
        return self._line.send([*begin, *calls])[len(begin) :]

    def finish(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order and commit, in one round trip."""
        begin = self._begin() if calls else []
        answers = self._line.send([*begin, *calls, _COMMIT]) if self._begun else []
        self.over = True
        return answers[len(begin) : len(begin) + len(calls)]

    def now(self) -> int:
        """The server's clock, read now, in milliseconds."""
        return int(self.rows("clock")[0][0])

    def roll_back(self) -> None:
        """Give up; a connection that can't is closed."""
        if self._line.connection.closed or not self._begun:
            return
        try:
            self._line.send([_ROLLBACK])
        except psycopg.Error:
            self._line.connection.close()

    def _begin(self) -> list[Call]:
        if self._begun:
            return []
        self._begun = True
        return [_BEGIN, *self._first]


def through_pooler(known: Lineage) -> list[Call]:
    """What a transaction begins with whose connection a pooler keeps, whatever server it leads to.

    A session's setting would leak to the pooler's other clients. And after a failover no connection
    is lost by which it would be noticed: each transaction compares, and fails as a guard does.
    """
    told = [
        ("same_cluster", {"cluster": known.cluster}),
        ("same_timeline", {"timeline": known.timeline}),
    ]
    return [_SETTINGS, *(call for call in told if any(call[1].values()))]


class JoinedTransaction:
    """The caller's own open transaction; the caller commits it."""

    over = False

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Run one named statement."""
        cursor = psycopg.Cursor(self._db, row_factory=tuple_row)
        # The caller's connection may send numbers in its own way.
        cursor.adapters.register_dumper(int, Int8Dumper)
        cursor.execute(_for_psycopg(name), values)
        return list(cursor) if cursor.description else []

    def batch(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order."""
        return [self.rows(name, **values) for name, values in calls]

    def finish(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order; committing is the caller's."""
        return self.batch(*calls)

    def now(self) -> int:
        """The server's clock, read now, in milliseconds."""
        return int(self.rows("clock")[0][0])


@lru_cache
def _for_psycopg(name: str) -> bytes:
    text = load_statements("postgres")[name].replace("%", "%%")
    return _PARAMETER.sub(r"%(\1)s", text).encode()
