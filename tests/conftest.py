# ruff: noqa: PLC0415 - drivers are imported where they are needed: git's tests run without
"""Both stores, fresh for each test, on a clock that only moves when told."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # Imported where they are needed: tests of git or the model shouldn't load the drivers.
    from builders import StoreUnderTest, Yard
    from lessor.service.lessor import Lessor
    from servers import Server

KINDS = ("sqlite", "postgres")


def pytest_configure(config: pytest.Config) -> None:
    """Markers of these tests; a closed terminal and Ctrl-C end what they start, also under nohup and behind `&`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "breaks_rules: writes past the rules by raw SQL; the invariants aren't checked"
    )


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server, started when the first test needs it."""
    from servers import Server

    running = Server()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file; copying it is faster than migrating each test's own."""
    from lessor.clock import ManualClock
    from lessor.connect import connect

    path = tmp_path_factory.mktemp("template") / "lessor.db"
    connect(f"sqlite://{path}", clock=ManualClock()).close()
    return path


@pytest.fixture
def make_store(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path
) -> Iterator[Callable[..., StoreUnderTest]]:
    """Makes stores: `make_store(kind)`, `make_store(kind, real_time=True)`."""
    from builders import StoreUnderTest
    from lessor.clock import ManualClock, SystemClock

    made: list[StoreUnderTest] = []

    def make(kind: str, *, real_time: bool = False) -> StoreUnderTest:
        clock = SystemClock() if real_time else ManualClock()
        if kind == "sqlite":
            path = tmp_path / f"store-{len(made)}" / "lessor.db"
            path.parent.mkdir()
            if not real_time:
                shutil.copy(sqlite_template, path)
            url = f"sqlite://{path}"
        else:
            server: Server = request.getfixturevalue("server")
            url = server.create("real" if real_time else "manual")
        made.append(StoreUnderTest(kind, url, clock))
        return made[-1]

    yield make
    for store in made:
        store.close()
        if store.kind == "postgres":
            request.getfixturevalue("server").drop(store.url)


@pytest.fixture(params=KINDS)
def store(
    request: pytest.FixtureRequest, make_store: Callable[..., StoreUnderTest]
) -> Iterator[StoreUnderTest]:
    """A fresh store of each kind; whatever the test did, the invariants hold afterwards."""
    from invariants import check_invariants

    under_test = make_store(request.param)
    yield under_test
    if "breaks_rules" not in request.keywords:
        check_invariants(under_test)


@pytest.fixture
def lessor(store: StoreUnderTest) -> Lessor:
    """Lessor over the store; a refusal that isn't in the table of refusals fails the test."""
    from declared import declared

    return declared(store.connect())


@pytest.fixture
def yard(store: StoreUnderTest, lessor: Lessor) -> Yard:
    """A repository, two workers and short verbs."""
    from builders import Yard

    return Yard(store, lessor)
