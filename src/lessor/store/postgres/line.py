"""A connection's statements over libpq itself: prepared once, sent together, read at once.

psycopg's cursors cost 50 us a statement and its pipelines 70, as much as the server takes; this
costs 10. It can do less: parameters are numbers, texts or nothing, and one call is one round trip.
"""

from __future__ import annotations

import re
import select
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from lessor.store import Call, Row

_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_INT8 = 20
_UNKNOWN = 0  # the server takes a text as what stands at its place
_ANSWERED = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})

SHORTEST_KEPT_MS = 1_000
LONGEST_KEPT_MS = 60_000

Key = tuple[str, tuple[int, ...]]
"""A statement's name and the types of its parameters: one prepared plan each."""


class Statement(NamedTuple):
    """A statement as the server takes it: `$1` for the first of `names`."""

    text: bytes
    names: tuple[str, ...]


def parse_statement(text: str) -> Statement:
    """`text` with its `:names` numbered, without its comments."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    numbered = _PARAMETER.sub(number, _COMMENT.sub("", text))
    return Statement(numbered.strip().encode(), tuple(names))


class Line:
    """One connection, which nobody else uses to prepare statements.

    Args:
        prepared: whether the server is the same one at every call; behind a pooler it isn't.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        statements: Mapping[str, Statement],
        *,
        prepared: bool,
    ) -> None:
        self.connection = connection
        self._pg = connection.pgconn
        self._statements = statements
        self._known: dict[Key, bytes] | None = {} if prepared else None
        self._count = 0
        self._reader = Transformer.from_context(connection)
        self._poll = select.poll()
        self._awaited = 0
        self._planned_ms: int | None = None
        self._kept_ms = SHORTEST_KEPT_MS

    def send(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Run statements in order; outside of a transaction, all of them are one.

        Raises:
            psycopg.Error: the first fault. What came after it wasn't run.
        """
        packed = [self._pack(name, values) for name, values in calls]
        try:
            known = self._known.get(packed[0].key) if self._known and len(packed) == 1 else None
            answers, fault = (
                self._send_all(packed) if known is None else self._send_one(known, packed[0])
            )
        except BaseException:  # lost or interrupted: what is still under way belongs to nobody
            self.connection.close()
            raise
        if fault is not None:
            raise error_from_result(fault)
        return answers

    def _send_one(self, known: bytes, call: _Packed) -> tuple[list[list[Row]], PGresult | None]:
        """A prepared statement by itself: setting a pipeline up is half of what it would cost."""
        self._pg.send_query_prepared(known, call.arguments)
        self._flush()
        result = self._next()
        if result is None:
            raise psycopg.OperationalError("the server left a statement unanswered")
        while (end := self._next()) is not None:  # the commit itself
            result = result if result.status not in _ANSWERED else end
        if result.status in _ANSWERED:
            return [self._rows(result)], None
        return [], result

    def _send_all(self, packed: Sequence[_Packed]) -> tuple[list[list[Row]], PGresult | None]:
        pg = self._pg
        pg.enter_pipeline_mode()
        asked = [self._ask(call) for call in packed]
        pg.pipeline_sync()
        self._flush()
        answers, fault = self._receive(asked)
        pg.exit_pipeline_mode()
        return answers, fault

    def replan(self, now: int) -> None:
        """Have the server plan anew what it planned a while ago.

        A plan made beside an empty table reads all of it, and goes on doing so as it grows; the
        server notices at the next ANALYZE, a minute later at best. At first after a second, then
        after twice the time each.
        """
        if self._planned_ms is None:
            self._planned_ms = now
        elif self._known is not None and now - self._planned_ms >= self._kept_ms:
            self._planned_ms = now
            self._kept_ms = min(2 * self._kept_ms, LONGEST_KEPT_MS)
            self.send([("discard_plans", {})])

    def _pack(self, name: str, values: Mapping[str, Any]) -> _Packed:
        statement = self._statements[name]
        given = [values[key] for key in statement.names]
        types = tuple([_INT8 if isinstance(value, int) else _UNKNOWN for value in given])
        # One expression without calls of its own: a claim and its completion have thirty parameters.
        arguments = [
            value.encode()
            if isinstance(value, str)
            else b"%d" % value
            if isinstance(value, int)
            else None
            if value is None
            else str(value).encode()
            for value in given
        ]
        if b"\0" in b"".join(filter(None, arguments)):  # libpq would take it for the end
            raise psycopg.DataError("PostgreSQL text can't contain NUL")
        return _Packed((name, types), statement.text, arguments)

    def _ask(self, call: _Packed) -> _Asked:
        """Put one statement on its way; whether it has to be prepared on the way, and its name."""
        if self._known is None:
            self._pg.send_query_params(call.text, call.arguments, call.key[1])
            return _Asked(None, b"")
        known = self._known.get(call.key)
        if known is not None:
            self._pg.send_query_prepared(known, call.arguments)
            return _Asked(None, known)
        self._count += 1
        fresh = f"lessor_{self._count}_{call.key[0]}".encode()
        self._pg.send_prepare(fresh, call.text, call.key[1])
        self._pg.send_query_prepared(fresh, call.arguments)
        return _Asked(call.key, fresh)

    def _receive(self, asked: Sequence[_Asked]) -> tuple[list[list[Row]], PGresult | None]:
        answers: list[list[Row]] = []
        faults: list[PGresult] = []
        for one in asked:
            if one.key is not None:
                prepared = self._answer()
                if prepared.status == ExecStatus.COMMAND_OK and self._known is not None:
                    self._known[one.key] = one.name
                else:
                    faults.append(prepared)
            result = self._answer()
            if result.status in _ANSWERED:
                answers.append(self._rows(result))
            else:
                faults.append(result)
        while (end := self._next()) is None or end.status != ExecStatus.PIPELINE_SYNC:
            if end is not None:  # the commit itself
                faults.append(end)
        return answers, next((f for f in faults if f.status == ExecStatus.FATAL_ERROR), None)

    def _rows(self, result: PGresult) -> list[Row]:
        if result.ntuples == 0:
            return []
        self._reader.set_pgresult(result)
        return self._reader.load_rows(0, result.ntuples, tuple)

    def _answer(self) -> PGresult:
        """The answer to one message; libpq ends each with nothing."""
        result = self._next()
        if result is None:
            raise psycopg.OperationalError("the server left a statement unanswered")
        self._next()
        return result

    def _next(self) -> PGresult | None:
        pg = self._pg
        while pg.is_busy():
            self._wait(select.POLLIN)
            pg.consume_input()
        return pg.get_result()

    def _flush(self) -> None:
        pg = self._pg
        while pg.flush():  # both sides may be full: read while there is more to write
            if self._wait(select.POLLIN | select.POLLOUT) & select.POLLIN:
                pg.consume_input()

    def _wait(self, events: int) -> int:
        if events != self._awaited:
            self._poll.register(self._pg.socket, events)
            self._awaited = events
        return self._poll.poll()[0][1]


class _Packed(NamedTuple):
    key: Key
    text: bytes
    arguments: list[bytes | None]


class _Asked(NamedTuple):
    key: Key | None
    name: bytes
