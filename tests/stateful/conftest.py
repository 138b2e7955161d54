"""Rigs, made once a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from rig import PostgresRig, Rig, SqliteRig


@pytest.fixture
def make_rig(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Rig]]:
    """Makes rigs by the kind of store."""
    made: list[Rig] = []

    def make(kind: str) -> Rig:
        sqlite = kind == "sqlite"
        made.append(SqliteRig() if sqlite else PostgresRig(request.getfixturevalue("server")))
        return made[-1]

    yield make
    for rig in made:
        rig.close()
