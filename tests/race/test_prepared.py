"""What a failed pipeline leaves behind on its connection: nothing."""

from __future__ import annotations

import pytest

from builders import MakeStore
from lessor.errors import ConstraintError
from lessor.store import Transaction

ASKED = {"actor": "a", "request_id": "r"}
KEPT = ("keep_request", {**ASKED, "digest": "d", "answer": "[]"})


class Given(Exception):  # noqa: N818 - a rule's own way out
    """A rule that changes its mind."""


def test_a_statement_that_a_failed_pipeline_never_prepared_is_prepared_again(
    make_store: MakeStore,
) -> None:
    """The driver counts a statement as prepared once it is sent, also behind one that fails."""
    store = make_store("postgres").connect().store

    def gives_up(tx: Transaction) -> None:
        tx.rows("clock")
        raise Given

    def fails(tx: Transaction) -> None:
        tx.batch(KEPT, KEPT, ("request_seen", ASKED))

    with pytest.raises(Given):
        store.write(gives_up)
    assert store.read("request_seen", **ASKED) == []
    for _ in range(3):
        with pytest.raises(ConstraintError):
            store.write(fails)
    assert store.read("request_seen", **ASKED) == []
