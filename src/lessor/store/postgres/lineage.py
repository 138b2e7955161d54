"""Which server answers, and in which of its histories: another one after a failover or a restore.

A managed host may keep a role from asking, and a standby can't say. What isn't told is left out of
the comparison, so that a role which may ask and one which may not never take each other for a failover.
"""

from __future__ import annotations

from typing import NamedTuple

import psycopg
from psycopg import errors as pg

_UNTOLD = (
    pg.InsufficientPrivilege,
    pg.UndefinedFunction,
    pg.FeatureNotSupported,
    pg.ObjectNotInPrerequisiteState,
)
_STANDBY = b"SELECT pg_is_in_recovery()"
_CLUSTER = b"SELECT system_identifier FROM pg_control_system()"
# The write-ahead log's own: what the last checkpoint says lags behind a promotion.
_TIMELINE = b"SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"


class Lineage(NamedTuple):
    """What a server says of itself.

    Attributes:
        cluster: its system identifier, which a copy of it has too; empty where it can't be asked.
        timeline: another one after each promotion and each restore; empty where it can't be asked.
        standby: it only reads, until it is promoted.
    """

    cluster: str = ""
    timeline: str = ""
    standby: bool = False


def lineage(db: psycopg.Connection[tuple[object, ...]]) -> Lineage:
    """What the server at the other end says of itself; `db` commits each statement."""
    return Lineage(
        cluster=_told(db, _CLUSTER),
        timeline=_told(db, _TIMELINE),
        standby=_told(db, _STANDBY) == str(True),
    )


def _told(db: psycopg.Connection[tuple[object, ...]], question: bytes) -> str:
    try:
        row = db.execute(question, prepare=False).fetchone()
    except _UNTOLD:
        return ""
    return "" if row is None else str(row[0])
