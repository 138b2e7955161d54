"""Rows in, records out; no rule.

One `Transaction` class over two dialects of the same named statements. What every statement keeps:

* Lock order: repository rows by id, then limit rows by (kind, key), then lease rows by id (or
  SKIP LOCKED), then task rows by id. Nothing waits for an earlier kind while it holds a later one.
* Scope rows are inserted, deleted and handed to another lease only by a transaction that holds the
  repository's row *and updates its counter*: at snapshot isolation a row that was only locked lets
  two overlapping claims through.
* Time is read after the last lock. A guarded UPDATE that waited for a row lock would otherwise be
  judged by the moment it began to wait.

It doesn't promise that a write which raised wasn't made: a connection lost during COMMIT leaves
that open, and the same request id sent again finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

Row = Sequence[Any]
Call = tuple[str, dict[str, Any]]
T = TypeVar("T")


class Transaction(Protocol):
    """An open transaction."""

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named statement; its result rows.

        Raises:
            ConstraintError: a constraint forbade it; the transaction can only be rolled back.
        """

    def batch(self, *calls: Call) -> list[list[Row]]:
        """Run statements in order, in one round trip where there is a network."""

    def finish(self, *calls: Call) -> list[list[Row]]:
        """The same, then commit, in the same round trip; the transaction is over."""

    def now(self) -> int:
        """The store's clock, read now; call it after the last lock."""


class Store(Protocol):
    """A database that keeps Lessor's tables."""

    dialect: str
    concurrent: bool  # many writers at once: worth a claim by one statement, and low-water marks
    key: int  # 60 random bits made with the store; part of every id that it issues

    def write(self, rule: Callable[[Transaction], T]) -> T:
        """Run `rule` in one write transaction; commit when it returns, roll back when it raises.

        A serialization failure or a deadlock runs `rule` again, a few times; so does RetryRule.
        """

    def read(self, name: str, /, **values: Any) -> list[Row]:
        """Run one named statement that only reads."""

    def once(self, name: str, /, **values: Any) -> list[Row]:
        """Run one named statement that writes, in a transaction of its own, in one round trip."""

    def together(self, *calls: Call) -> list[list[Row]]:
        """Run statements that write, in one transaction of their own, in one round trip.

        Raises:
            LongWay: one of them left it to a rule.
        """

    def join(self, connection: Any) -> AbstractContextManager[Transaction]:
        """The caller's own open transaction on this store's database; the caller commits it.

        What is written within is undone when it raises, and nothing else of the transaction is.
        Whoever waits for a change is woken by the caller's commit.

        Raises:
            InvalidError: it is no open transaction, or on another database.
            BusyError: what was read has changed, and only the caller can begin again.
        """

    def notify(self) -> None:
        """Wake whoever waits for a change; nobody's correctness depends on it."""

    def wait(self, milliseconds: int) -> None:
        """Return when something may have changed, or after `milliseconds`."""

    def close(self) -> None:
        """Give up connections and locks."""


class RetryRule(Exception):  # noqa: N818 - a signal to the store, never seen by a caller
    """What a rule read was changed before its guarded write: roll back and decide again."""


class LongWay(Exception):  # noqa: N818 - a signal to a rule, never seen by a caller
    """A statement that was to do it all found what it can't decide; nothing was written."""


TRIES = 8
