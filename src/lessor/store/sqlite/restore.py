"""Backups of a SQLite store, and putting one back in the store's place.

A restored store must never hand out again what the lost one handed out: lease and task ids,
numbers, epochs, fences. Where the store that is replaced can still be read, everything goes on
behind it; else behind what the high-water file says and a wide gap. Every live grant of the backup
is over, and the term grows, so that resources that compare (term, fence) refuse the past.

The new content is copied into the file that is there, in one transaction of SQLite's own, instead
of putting another file in its place: a process that opens the store in that very moment sees the
old store or the new one, and never writes into a file that was moved away.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import apsw

from lessor.errors import (
    BusyError,
    ConflictError,
    InvalidError,
    StoreCorruptError,
    StoreUnavailableError,
)
from lessor.ids import new_token
from lessor.store.sqlite.errors import translate
from lessor.store.sqlite.high_water import HighWater
from lessor.store.sqlite.opening import open_connection, read_key
from lessor.store.sqlite.place import WriterLock, check_place
from lessor.store.sqlite.store import SqliteStore
from lessor.store.statements import load_statements

GAP = 1_000
"""How far numbers jump when nobody knows what the lost store handed out."""

_MAGIC = b"SQLite format 3\0"
_PAGES = 4_096
_COMPANIONS = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did.

    Attributes:
        kept: where the replaced store lies now; None where there was none.
        continued: the replaced store could be read, so that numbers go on right behind its own.
    """

    kept: Path | None
    continued: bool


def backup_store(store: SqliteStore, target: Path) -> int:
    """Copy the whole store into the new file `target`, mode 0600, on the disk; its size in bytes.

    Others go on writing meanwhile; the copy is of one moment.

    Raises:
        ConflictError: `target` is there already.
        StoreUnavailableError: it can't be written.
    """
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        raise ConflictError(
            f"{target} is there already; a backup never overwrites.",
            next_step="Name a new file.",
            file=str(target),
        ) from None
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        store.backup(target)
        _sync(target)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return target.stat().st_size


def restore_store(source: Path, target: Path, *, now: int) -> Restored:
    """Put the backup `source` in the place of the store `target`, which nobody may have open.

    The replaced store is kept beside it. A failure leaves it as it was.

    Raises:
        InvalidError: `source` is no file, or is the store itself.
        StoreError: `source` is no usable store of this Lessor's schema or an older one.
        BusyError: another process has the store open.
        StoreUnavailableError: something can't be written.
    """
    if not source.is_file():
        raise InvalidError(f"{source} isn't a file.", next_step="Name a backup's file.")
    if target.exists() and source.samefile(target):
        raise InvalidError(f"{source} is the store itself.", next_step="Name a backup's file.")
    _refuse_foreign(source)
    check_place(target)
    lock = WriterLock(target)
    draft = target.with_name(f".{target.name}.restore-{new_token()[:8]}")
    try:
        if not lock.alone():
            raise BusyError(
                f"Another process has {target} open.",
                next_step="Stop every run and service on it, then try again. "
                "A remote's hooks let go of it by themselves, half a minute after a push.",
                retry_ms=1_000,
                store=str(target),
            )
        _copy(source, draft)
        continued = _advance(draft, target, now=now)
        kept = _keep(target, now=now)
        _replace(draft, target)
        return Restored(kept=kept, continued=continued)
    except apsw.Error as error:
        raise translate(error, path=str(source)) from error
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        _remove(draft)
        lock.close()


def _refuse_foreign(source: Path) -> None:
    with source.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise StoreCorruptError(
                f"{source} is no backup of a store.",
                next_step="Name a file that `lessor backup` made.",
                file=str(source),
            )


def _copy(source: Path, draft: Path) -> None:
    """A copy of the backup beside the store, to be worked on."""
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with (
        closing(apsw.Connection(os.fspath(source), flags=apsw.SQLITE_OPEN_READONLY)) as old,
        closing(apsw.Connection(os.fspath(draft))) as new,
    ):
        _pour(old, new)


def _advance(draft: Path, target: Path, *, now: int) -> bool:
    """Let the draft go on behind everything that was handed out; whether that is known."""
    db, writers = open_connection(os.fspath(draft), now=now)
    try:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
        if found != ["ok"]:
            raise apsw.CorruptError("; ".join(found))
        continued = _attach(db, target)
        db.execute("BEGIN IMMEDIATE")
        db.execute(_script("behind_old" if continued else "behind_gap"), {"gap": GAP})
        db.execute(load_statements("sqlite")["new_term"], {"now": now, "high": _high(target)})
        db.execute("COMMIT")
        if continued:
            db.execute("DETACH old")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()
        if writers is not None:
            writers.close()
    return continued


def _script(name: str) -> str:
    folder = resources.files("lessor.store").joinpath("sqlite", "restoring")
    return folder.joinpath(f"{name}.sql").read_text(encoding="utf-8")


def _attach(db: apsw.Connection, target: Path) -> bool:
    """Attach the store that is replaced, if it can be read and is the same store as the backup."""
    if not target.exists():
        return False
    try:
        db.execute("ATTACH ? AS old", (os.fspath(target),))
        row = db.execute("SELECT value FROM old.meta WHERE key = 'store_key'").fetchone()
        if row is not None and int(row[0]) == read_key(db):
            return True
        db.execute("DETACH old")
    except (apsw.Error, ValueError):
        with suppress(apsw.Error):
            db.execute("DETACH old")
    return False


def _high(target: Path) -> int:
    high_water = HighWater(target)
    try:
        return high_water.read()
    finally:
        high_water.close()


def _keep(target: Path, *, now: int) -> Path | None:
    """A copy of the replaced store beside it; byte for byte where SQLite can't read it."""
    if not target.exists():
        return None
    kept = target.with_name(f"{target.name}.replaced-{now}")
    kept.touch(mode=0o600, exist_ok=False)
    try:
        with (
            closing(apsw.Connection(os.fspath(target))) as old,
            closing(apsw.Connection(os.fspath(kept))) as copy,
        ):
            _pour(old, copy)
    except apsw.Error:
        for suffix in ("", *_COMPANIONS):
            source = target.with_name(target.name + suffix)
            if source.exists():
                copy_of = kept.with_name(kept.name + suffix)
                copy_of.touch(mode=0o600)
                shutil.copyfile(source, copy_of)
    _sync(kept)
    return kept


def _replace(draft: Path, target: Path) -> None:
    """Pour the draft into the store's file; where that is no database any more, begin it anew."""
    target.touch(mode=0o600)  # born private, if it isn't there
    with closing(apsw.Connection(os.fspath(draft))) as new:
        try:
            with closing(apsw.Connection(os.fspath(target))) as store:
                store.execute("PRAGMA synchronous=FULL")
                _pour(new, store)
                return
        except (apsw.NotADBError, apsw.CorruptError):
            for suffix in _COMPANIONS:
                target.with_name(target.name + suffix).unlink(missing_ok=True)
            os.truncate(target, 0)
        with closing(apsw.Connection(os.fspath(target))) as store:
            store.execute("PRAGMA synchronous=FULL")
            _pour(new, store)


def _pour(source: apsw.Connection, destination: apsw.Connection) -> None:
    with destination.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(_PAGES)


def _remove(draft: Path) -> None:
    for suffix in ("", *_COMPANIONS, ".lock"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    for place, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        descriptor = os.open(place, flags | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"{path} can't be written: {error.strerror}.",
        next_step="Check the folder, its space and that it is yours to write.",
        store=str(path),
    )
