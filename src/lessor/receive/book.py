"""Who keeps the leases, as a gate at a push asks: the store on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from lessor.model.lifecycle import TaskState
from lessor.model.push import Shown, Standing
from lessor.service.admitting import uncovered
from lessor.service.lessor import Lessor
from lessor.service.publish_rows import StandingRow
from lessor.service.refusing import why_over
from lessor.service.rows import pack


class Book(Protocol):
    """Answers about one repository's leases; a LessorError means that nobody can say."""

    def shown(self, intent: int, secret: str) -> Shown | None:
        """The announced push that a push shows; None where nobody announced that."""

    def standings(self, branches: Sequence[str]) -> Mapping[str, Standing]:
        """Whose these branches are; those of nobody are left out."""

    def outside(self, lease: str, paths: Sequence[str]) -> Mapping[str, str]:
        """The paths that the lease doesn't cover for writing, each with why where a rule forbids it."""


class StoreBook:
    """The store itself."""

    def __init__(self, lessor: Lessor, repository: str) -> None:
        self._lessor = lessor
        self._repository = repository

    def shown(self, intent: int, secret: str) -> Shown | None:
        """As `Book.shown`; one of another repository is none."""
        found = self._lessor.intents.shown(intent, secret)
        if found is None or self._lessor.leases.lease(found.lease).repository != self._repository:
            return None
        return Shown(
            lease=found.lease,
            number=found.number,
            epoch=found.epoch,
            ref=found.publish.ref,
            old=found.publish.old,
            new=found.publish.new,
            live=found.live,
            settled=found.settled_ms is not None,
            ended="" if found.live else why_over(found.end),
        )

    def standings(self, branches: Sequence[str]) -> Mapping[str, Standing]:
        """As `Book.standings`."""
        row = self._lessor.naming.repository_row(self._repository)
        rows = self._lessor.store.read(
            "branch_standings", repository_id=row, branches=pack(list(branches))
        )
        return {found.branch: self._standing(found) for found in map(StandingRow._make, rows)}

    def outside(self, lease: str, paths: Sequence[str]) -> Mapping[str, str]:
        """As `Book.outside`."""
        outside, forbidden = uncovered(self._lessor.store, self._lessor.naming, lease, paths)
        return {**dict.fromkeys(outside, ""), **{p: e.message for p, e in forbidden.items()}}

    def _standing(self, row: StandingRow) -> Standing:
        held = row.lease_id is not None
        return Standing(
            number=row.number,
            title=row.title,
            state=TaskState(row.status),
            epoch=row.epoch,
            lease=self._lessor.naming.lease(row.lease_id) if row.lease_id is not None else None,
            agent=row.agent or "",
            live=held and row.now < (row.expires_ms or 0),
            head=row.head,
        )
