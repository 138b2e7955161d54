"""A repository: its canonical remote, else an id kept in its common directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from lessor.model.shadow import Unlanded

RepositoryId = NewType("RepositoryId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A registered repository; clones of one remote are checkouts of one repository.

    Attributes:
        fence: the grant counter, +1 at each grant in the grant's own transaction.
        unlanded: what a claim does where a result lies that hasn't landed.
        term: grows when the store was restored or promoted; resources compare (term, fence).
        fence_remote: the remote, by name or URL, that holds a fence reference for each lease; None
            where pushes are compared with nothing there.
        unfenced: whether leases are granted, too, while that remote can't be reached.
    """

    id: RepositoryId
    key: str
    name: str
    fold_case: bool
    normalize: bool
    fence: int
    term: int
    unlanded: Unlanded
    fence_remote: str | None = None
    unfenced: bool = False
