"""The SQLite store: one file, one writer connection a process, this machine's clock."""

from lessor.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
