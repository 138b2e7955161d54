"""PostgreSQL's errors as Lessor's."""

from __future__ import annotations

import re

import psycopg
from psycopg import errors as pg

from lessor.errors import (
    BusyError,
    ConstraintError,
    LessorError,
    StoreError,
    StoreUnavailableError,
    StoreUnsupportedError,
)

REPEATABLE = (pg.SerializationFailure, pg.DeadlockDetected)
"""What runs a rule again: 40001 and 40P01."""

GUARD_FAILED = "LS001"
"""Raised by lessor.expect: fewer rows moved than were decided."""

LONG_WAY = "LS002"
"""Raised by lessor.require: a rule has to decide."""

# Refused before there is a connection: libpq has the server's words then, and no SQLSTATE (53300).
_NO_CONNECTION_LEFT = re.compile(
    r"too many clients already|remaining connection slots are reserved|too many connections for \w+"
)


def translate(error: psycopg.Error) -> LessorError:
    """The Lessor error that says what to do about the server's."""
    match error:
        case pg.LockNotAvailable() | pg.SerializationFailure() | pg.DeadlockDetected():
            return BusyError("The store is busy.", next_step="Try again.", retry_ms=100)
        case pg.IntegrityError():
            name = error.diag.constraint_name or str(error)
            return ConstraintError(
                f"The store forbade the write: {name}.",
                next_step="Report this with `lessor doctor`.",
                constraint=name,
            )
        case (
            pg.DiskFull()
            | pg.OutOfMemory()
            | pg.ReadOnlySqlTransaction()
            | pg.IdleInTransactionSessionTimeout()
        ):
            return StoreUnavailableError(
                f"The server refused to write: {_first_line(error)}.",
                next_step="Look at the server; nothing was changed.",
            )
        case pg.InsufficientPrivilege() | pg.InvalidCatalogName():
            return StoreUnsupportedError(
                f"The server refused: {_first_line(error)}.",
                next_step="Give Lessor a database and a role that owns the schema `lessor`.",
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return _unreachable(error)
        case _:
            return StoreError(
                f"PostgreSQL: {_first_line(error)}.", next_step="Run `lessor doctor`."
            )


def _unreachable(error: psycopg.Error) -> StoreUnavailableError:
    if _NO_CONNECTION_LEFT.search(str(error)):
        return StoreUnavailableError(
            f"The server has no connection left for Lessor: {_first_line(error)}.",
            next_step="Try again once others have ended, raise its max_connections, or go through a pooler.",
        )
    return StoreUnavailableError(
        f"The server can't be reached: {_first_line(error)}.",
        next_step="Check --store and that the server runs. A write that was under way may have been made: the same request id finds out.",
    )


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
