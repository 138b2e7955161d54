"""A connection's statements over libpq: alone or several in one round trip, each with the same answers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import psycopg
import pytest

from builders import MakeStore, StoreUnderTest
from lessor.store import Call
from lessor.store.postgres.line import Line, parse_statement

STATEMENTS = {
    name: parse_statement(text)
    for name, text in {
        "divide": "SELECT 10 / :by::bigint, :of::text",
        "echo": "SELECT :text::text, :number::bigint, :nothing::text",
        "none": "SELECT 1 WHERE :by::bigint = 0",
        "sleep": "SELECT pg_sleep(:seconds::bigint)",
        "take": "INSERT INTO taken VALUES (:number::bigint) RETURNING number",
    }.items()
}
DIVIDE = {"by": 5, "of": "ten"}


@pytest.fixture
def store(make_store: MakeStore) -> StoreUnderTest:
    made = make_store("postgres")
    made.connect()
    return made


@pytest.fixture(params=[True, False], ids=["prepared", "pooled"])
def line(store: StoreUnderTest, request: pytest.FixtureRequest) -> Iterator[Line]:
    with psycopg.connect(store.url, autocommit=True, prepare_threshold=None) as db:
        made = Line(db, STATEMENTS, prepared=request.param)
        for _ in range(2):  # the second time it is prepared
            assert made.send([("divide", DIVIDE)]) == [[(2, "ten")]]
        yield made


def test_a_statement_answers_the_same_by_itself_and_beside_others(line: Line) -> None:
    calls: list[Call] = [
        ("echo", {"text": "a'b\n€", "number": -(2**40), "nothing": None}),
        ("none", {"by": 1}),
        ("divide", DIVIDE),
    ]
    for _ in range(2):
        together = line.send(calls)
        assert together == [[("a'b\n€", -(2**40), None)], [], [(2, "ten")]]
        assert [line.send([call])[0] for call in calls] == together


def test_a_statement_that_fails_leaves_the_line_as_it_was(line: Line) -> None:
    for calls in (1, 2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            line.send([("divide", {"by": 0, "of": "ten"})] * calls)
        assert not line.connection.closed
        assert line.send([("divide", DIVIDE)] * calls) == [[(2, "ten")]] * calls


def test_a_commit_that_fails_after_its_statement_was_answered_is_told(line: Line) -> None:
    """As one does where the server keeps transactions apart that read what others write."""
    line.connection.execute(
        "CREATE TEMP TABLE taken (number bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)"
    )
    for number in (1, 2):  # the second time it is prepared
        assert line.send([("take", {"number": number})]) == [[(number,)]]
    for calls in (1, 2):
        with pytest.raises(psycopg.errors.UniqueViolation):
            line.send([("take", {"number": 1})] * calls)
        assert not line.connection.closed
        assert line.send([("divide", DIVIDE)] * calls) == [[(2, "ten")]] * calls


def test_a_text_that_the_server_would_cut_off_is_refused_before_anything_is_sent(
    line: Line,
) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        line.send([("divide", {"by": 5, "of": "ten\0"})])
    assert line.send([("divide", DIVIDE)]) == [[(2, "ten")]]


def test_more_than_both_ends_can_keep_comes_through(line: Line) -> None:
    long = {"text": "x" * 30_000_000, "number": 1, "nothing": None}
    for calls in (1, 2):
        for _ in range(2):
            answers = line.send([("echo", long)] * calls)
            assert [len(rows[0][0]) for rows in answers] == [30_000_000] * calls


def test_a_line_whose_server_process_ended_is_closed(store: StoreUnderTest, line: Line) -> None:
    pid = line.connection.info.backend_pid
    store.sql("SELECT pg_terminate_backend(:pid::integer, 10000)", pid=pid)
    with pytest.raises(psycopg.OperationalError):
        line.send([("divide", DIVIDE)])
    assert line.connection.closed


def test_an_interrupted_line_is_closed_as_nobody_reads_what_comes(
    store: StoreUnderTest, line: Line
) -> None:
    line.send([("sleep", {"seconds": 0})])
    pid = line.connection.info.backend_pid

    def interrupt() -> None:
        active = (
            "SELECT 1 FROM pg_stat_activity WHERE pid = :pid::integer AND wait_event = 'PgSleep'"
        )
        while not store.sql(active, pid=pid):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        line.send([("sleep", {"seconds": 60})])
    waiting.join()
    assert line.connection.closed
