"""Whichever statement fails: the refusal is Lessor's own, and nothing is granted without an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw
import pytest

from builders import MakeStore, StoreUnderTest, Yard
from lessor.errors import StoreUnavailableError
from lessor.ids import new_request_id, new_token
from lessor.store.sqlite import SqliteStore

MOST = 60


@pytest.fixture
def store(make_store: MakeStore) -> StoreUnderTest:
    return make_store("sqlite")


@pytest.fixture
def yard(store: StoreUnderTest) -> Yard:
    return Yard(store, store.connect())


def test_a_claim_of_which_a_statement_fails_is_refused_whole_or_repeated_whole(yard: Yard) -> None:
    def claim(number: int) -> None:
        task = yard.add(f"n {number}", scopes=(f"n/{number}",)).task
        asked = {"task": task, "request_id": new_request_id(), "secret": new_token()}
        with failing(yard, number) as failed:
            yard.claim(**asked)
        assert_granted_once(yard, task, asked, failed=failed)

    every_statement(claim)


def test_a_completion_of_which_a_statement_fails_is_refused_whole_or_made(yard: Yard) -> None:
    def complete(number: int) -> None:
        grant = yard.running(f"m/{number}")
        with failing(yard, number) as failed:
            yard.complete(grant)
        if failed and yard.lessor.leases.lease(grant.lease).live:
            yard.complete(grant)
        assert yard.lessor.leases.lease(grant.lease).end == "completed"

    every_statement(complete)


def test_a_wait_that_cannot_look_at_the_file_is_a_refusal(yard: Yard) -> None:
    with failing(yard, 0, only="PRAGMA data_version") as failed:
        yard.lessor.store.wait(1_000)
    assert failed


def assert_granted_once(yard: Yard, task: str, asked: dict[str, str], *, failed: list[str]) -> None:
    before = [one.id for one in yard.lessor.leases.leases(task=task)]
    (grant,) = yard.claim(**asked)
    assert before in ([], [grant.lease]), failed
    assert [one.id for one in yard.lessor.leases.leases(task=task)] == [grant.lease]


def every_statement(act: Callable[[int], None]) -> None:
    """Let the first one fail, then the second, until none is left that can."""
    for number in range(MOST):
        try:
            act(number)
        except NothingFailedError:
            assert number > 3
            return
    raise AssertionError(f"it takes more than {MOST} statements")


class NothingFailedError(Exception):
    """There weren't so many."""


@contextmanager
def failing(yard: Yard, number: int, *, only: str = "") -> Iterator[list[str]]:
    """Let the statement after so many fail; which one it was, as one that is refused."""
    store = yard.lessor.store
    assert isinstance(store, SqliteStore)
    failed: list[str] = []
    left = number

    def trace(_cursor: object, statement: str, _bindings: object) -> bool:
        nonlocal left
        left -= statement.startswith(only)
        if left < 0 and not failed and not statement.startswith("ROLLBACK"):
            failed.append(statement)
            raise apsw.IOError("disk I/O error")
        return True

    store._db.exec_trace = trace
    try:
        yield failed
    except StoreUnavailableError:
        assert failed
    finally:
        store._db.exec_trace = None
    if not failed:
        raise NothingFailedError
