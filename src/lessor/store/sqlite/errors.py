"""SQLite's errors as Lessor's."""

from __future__ import annotations

from pathlib import Path

import apsw

from lessor.errors import (
    BusyError,
    ConstraintError,
    LessorError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)
from lessor.store.sqlite.place import full, is_full, is_read_only, read_only

_UNAVAILABLE = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.AuthError,
)


FAULTS = (apsw.Error, UnicodeDecodeError)
"""What a statement may raise; SQLite doesn't look whether a text is UTF-8, and quick_check neither."""


def translate(error: apsw.Error | UnicodeDecodeError, *, path: str) -> LessorError:
    """The Lessor error that says what to do about SQLite's."""
    text = str(error)
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return BusyError(
                f"Another process is writing to {path}.",
                next_step="Try again.",
                retry_ms=100,
                store=path,
            )
        case apsw.ConstraintError():
            name = text.rpartition(":")[2].strip() or text
            return ConstraintError(
                f"The store forbade the write: {name}.",
                next_step="Report this with `lessor doctor`.",
                constraint=name,
            )
        case _ if _is_full(error, path):
            return full(Path(path))
        case apsw.CorruptError() | apsw.NotADBError() | UnicodeDecodeError():
            return StoreCorruptError(
                f"{path} is damaged or no Lessor store: {text}.",
                next_step="Restore a backup: lessor restore FILE.",
                store=path,
            )
        case _ if isinstance(error, _UNAVAILABLE):
            return _unavailable(text, path)
        case _:
            return StoreError(f"SQLite: {text}.", next_step="Run `lessor doctor`.", store=path)


def _unavailable(text: str, path: str) -> StoreUnavailableError:
    if is_read_only(Path(path)):
        return read_only(Path(path))
    return StoreUnavailableError(
        f"{path} can't be read or written: {text}.",
        next_step="Check that the file and its folder are yours to write.",
        store=path,
    )


def _is_full(error: Exception, path: str) -> bool:
    if isinstance(error, apsw.IOError | apsw.CantOpenError):  # so it says where shared memory is
        return is_full(Path(path))
    return isinstance(error, apsw.FullError)
