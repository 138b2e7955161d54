"""For each line of input, `[URL, JOURNAL]` in JSON, a child that writes until it is killed.

The children are forked from a process that has imported everything and opened nothing, so that one
costs milliseconds. Each line is answered by the child's pid, and by "gone" when it has ended.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

from journal import Journal
from telling import ends_told, grants_told, leases_asked, renewals_told, request_asked

from lessor.connect import connect
from lessor.errors import LeaseLostError, LessorError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant, Reach, Result
from lessor.model.lease import Holder
from lessor.model.task import NewTask
from lessor.model.worker import NewWorker
from lessor.store.postgres import PostgresStore
from lessor.store.sqlite import SqliteStore

DRIVERS = (PostgresStore, SqliteStore)
"""Imported before the first fork."""
REPOSITORY = "race/written"
TTL_MS = 1_000


class Writer:
    """Submits, claims, renews and completes in a loop, each answer written down once it is there."""

    def __init__(self, url: str, journal: Path) -> None:
        self.lessor = connect(url)
        self.repository = str(self.lessor.registry.add_repository(REPOSITORY).id)
        self.worker = self.lessor.registry.add_worker(NewWorker(agent="writer")).id
        self.row = self.lessor.naming.worker_row(self.worker)
        self.journal = Journal(journal, self.lessor, worker=self.row)

    def write(self, turn: int) -> None:
        """Add three tasks, of which one waits for another; claim, widen and complete what is there."""
        self.submit(turn)
        for grant in self.claim(Reach.NO_REPOSITORY if turn % 4 == 0 else self.repository):
            holder = self.renew(grant.holder)
            if holder is not None:
                if grant.repository is not None:
                    self.widen(holder, turn)
                self.complete(holder)

    def submit(self, turn: int) -> None:
        """A batch in one transaction."""
        own = f"w{self.row}/{turn}"
        tasks = [
            NewTask(title="first", repository=self.repository, scopes=(own,), reads=("shared",)),
            NewTask(title="second", repository=self.repository, scopes=(own,), needs_index=(0,)),
            NewTask(title="free"),
        ]
        naming = self.lessor.naming
        self.journal.call(
            "submit",
            {},
            lambda: self.lessor.tasks.submit(tasks),
            lambda made: {"tasks": [naming.task_row(one.task) for one in made]},
        )

    def claim(self, place: str | Reach) -> list[Grant]:
        """Two leases at most."""
        request = ClaimRequest(
            worker=self.worker,
            request_id=new_request_id(),
            secret=new_token(),
            repository=place,
            wanted=2,
            ttl_ms=TTL_MS,
        )
        grants = self.journal.call(
            "claim",
            request_asked(request),
            lambda: self.lessor.leases.claim(request),
            lambda grants: {"grants": grants_told(self.lessor.naming, grants)},
        )
        return [] if isinstance(grants, LessorError) else grants

    def renew(self, holder: Holder) -> Holder | None:
        """The holder with its new version."""
        answers = self.journal.call(
            "renew",
            {"leases": leases_asked(self.lessor.naming, [holder])},
            lambda: self.lessor.leases.renew([holder]),
            renewals_told,
        )
        if isinstance(answers, LessorError) or isinstance(answers[0], LeaseLostError):
            return None
        return replace(holder, version=answers[0].version)

    def widen(self, holder: Holder, turn: int) -> None:
        """One more path."""
        paths = [f"w{self.row}/{turn}-more"]
        self.journal.call(
            "widen",
            {
                "leases": leases_asked(self.lessor.naming, [holder]),
                "paths": paths,
                "mode": "w",
            },
            lambda: self.lessor.leases.widen(holder, paths),
            lambda fence: {"leases": [{"ok": 1, "fence": fence}]},
        )

    def complete(self, holder: Holder) -> None:
        """The end."""
        self.journal.call(
            "complete",
            {"leases": leases_asked(self.lessor.naming, [holder])},
            lambda: self.lessor.leases.complete([(holder, Result(said="written"))]),
            ends_told,
        )


def main() -> None:
    """Fork a child for each line, and say when it is gone."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            url, journal = json.loads(line)
            writer = Writer(url, Path(journal))
            for turn in count():
                writer.write(turn)
        print(child, flush=True)  # noqa: T201 - the protocol
        os.waitpid(child, 0)
        print("gone", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
