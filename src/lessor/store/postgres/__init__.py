"""The PostgreSQL store: a server shared by a fleet; its clock decides."""

from lessor.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
