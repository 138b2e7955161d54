"""What a named statement takes and gives, as the database itself describes it."""

from __future__ import annotations

import re
from typing import Any

import apsw
import apsw.ext
import psycopg

from lessor.store.statements import load_statements

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_NUMBER = 20  # int8's oid, which the store gives every number

NUMBERS = frozenset(
    [
        "at_ms",
        "at_most",
        "decided",
        "epoch",
        "fence",
        "files",
        "free",
        "gone",
        "granted",
        "hold_ms",
        "lease_id",
        "live",
        "mark_id",
        "mark_rank",
        "maximum",
        "most",
        "n",
        "normalize",
        "fold_case",
        "heartbeat",
        "now",
        "number",
        "overtake_limit",
        "overtake_ms",
        "paused",
        "pid",
        "rank",
        "repository_id",
        "start_ticks",
        "strict",
        "task_id",
        "term",
        "ttl_ms",
        "wait_max_ms",
        "wake",
        "wanted",
        "with_reserved",
        "with_scopes",
        "worker_id",
        "workspace_id",
        "before",
        "after",
        "progress",
        "globs",
        "needs_left",
        "queued",
        "charge",
        "narrow",
        "slept",
        "noticed",
        "high",
        "least",
        "whole",
        "intent_id",
        "unfenced",
    ]
)


def names() -> list[str]:
    """Statements that both dialects have; own.sql holds what only one of them needs."""
    return sorted(load_statements("sqlite").keys() & load_statements("postgres").keys())


def own(dialect: str) -> set[str]:
    """The names in the dialect's own.sql."""
    from importlib import resources  # noqa: PLC0415

    text = resources.files("lessor.store").joinpath(dialect, "sql", "own.sql").read_text("utf-8")
    return set(re.findall(r"^-- name: (\w+)", text, re.MULTILINE))


def parameters(dialect: str, name: str) -> set[str]:
    """The parameters of a statement; SQLite's `now` is PostgreSQL's lessor.ms()."""
    text = re.sub(r"--[^\n]*", "", load_statements(dialect)[name])
    return set(_PARAMETER.findall(text)) - {"now"}


def sqlite_columns(db: apsw.Connection, name: str) -> list[str]:
    """The result columns of the last of a statement's parts."""
    columns: list[str] = []
    rest: str | None = load_statements("sqlite")[name]
    while rest and rest.strip():
        info = apsw.ext.query_info(db, rest)
        columns = [column[0] for column in info.description]
        rest = info.query_remaining
    return columns


def postgres_text(name: str) -> tuple[bytes, list[str]]:
    """The statement with numbered parameters, and their names in that order."""
    found: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if match[1] not in found:
            found.append(match[1])
        return f"${found.index(match[1]) + 1}"

    text = re.sub(r"--[^\n]*", "", load_statements("postgres")[name])
    return _PARAMETER.sub(numbered, text).encode(), found


def postgres_columns(db: psycopg.Connection[Any], name: str) -> list[str]:
    """The result columns that the server describes for the prepared statement."""
    text, found = postgres_text(name)
    oids = [_NUMBER if parameter in NUMBERS else 0 for parameter in found]
    done = db.pgconn.prepare(b"", text, oids)
    assert done.status == psycopg.pq.ExecStatus.COMMAND_OK, (name, done.get_error_message())
    described = db.pgconn.describe_prepared(b"")
    return [(described.fname(n) or b"").decode() for n in range(described.nfields)]


def explain_postgres(
    db: psycopg.Connection[Any], name: str, values: dict[str, Any] | None = None
) -> list[str]:
    """The plan of the statement as the store prepares it: one plan, whatever the values are."""
    text, found = postgres_text(name)
    types = ", ".join("bigint" if parameter in NUMBERS else "unknown" for parameter in found)
    db.execute("DEALLOCATE ALL")
    db.execute(f"PREPARE named{f' ({types})' if found else ''} AS ".encode() + text)
    given = [(values or {}).get(parameter) for parameter in found]
    literals = ", ".join(
        "NULL" if v is None else str(v) if isinstance(v, int) else f"'{v}'" for v in given
    )
    rows = db.execute(f"EXPLAIN EXECUTE named{f'({literals})' if found else ''}")  # type: ignore[call-overload]
    return [str(row[0]) for row in rows]
