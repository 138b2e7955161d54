"""A PostgreSQL server that takes no more connections."""

from __future__ import annotations

import os
from urllib.parse import urlsplit, urlunsplit

import pytest

from builders import MakeStore
from lessor.connect import connect
from lessor.errors import StoreUnavailableError


def test_a_server_without_a_free_connection_is_told_from_one_that_is_away(
    make_store: MakeStore,
) -> None:
    store = make_store("postgres")
    store.connect()
    role = f"lessor_crowded_{os.getpid()}"
    store.sql(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
    parts = urlsplit(store.url)
    url = urlunsplit(parts._replace(netloc=f"{role}:@{parts.netloc.rpartition('@')[2]}"))
    try:
        with pytest.raises(StoreUnavailableError, match="has no connection left") as refused:
            connect(url)
    finally:
        store.sql(f"DROP ROLE {role}")
    assert "max_connections" in refused.value.next_step
