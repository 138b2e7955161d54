"""Any order of operations leaves both stores as the specification says."""

from __future__ import annotations

import pytest
from explore import explore
from rig import PostgresRig, SqliteRig

from servers import Server


@pytest.mark.timeout(0)
def test_any_order_of_operations_on_sqlite() -> None:
    rig = SqliteRig()
    try:
        explore(rig, examples=250)
    finally:
        rig.close()


@pytest.mark.timeout(0)
def test_any_order_of_operations_on_postgres(server: Server) -> None:
    rig = PostgresRig(server)
    try:
        explore(rig, examples=60)
    finally:
        rig.close()
