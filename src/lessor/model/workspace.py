"""A workspace: the record of a checkout. A worktree is git's directory; neither proves ownership."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from lessor.errors import TransitionRefusedError


class WorkspaceState(StrEnum):
    """What is known of the directory.

    RESERVED: recorded before it is made. PRESENT: made, its holder works in it. DIRTY: its lease has
    ended and nobody has looked. SALVAGED: what it held is saved. QUARANTINED: it holds work that
    nothing else has, or nobody can tell. GONE: removed after it was proven empty or kept.
    """

    RESERVED = "reserved"
    PRESENT = "present"
    DIRTY = "dirty"
    SALVAGED = "salvaged"
    QUARANTINED = "quarantined"
    GONE = "gone"


_S = WorkspaceState

WORKSPACE_MOVES: Mapping[WorkspaceState, frozenset[WorkspaceState]] = MappingProxyType(
    {
        _S.RESERVED: frozenset({_S.PRESENT, _S.DIRTY, _S.GONE}),
        _S.PRESENT: frozenset({_S.DIRTY, _S.SALVAGED, _S.QUARANTINED, _S.GONE}),
        _S.DIRTY: frozenset({_S.PRESENT, _S.SALVAGED, _S.QUARANTINED, _S.GONE}),
        _S.SALVAGED: frozenset({_S.PRESENT, _S.DIRTY, _S.QUARANTINED, _S.GONE}),
        _S.QUARANTINED: frozenset({_S.SALVAGED, _S.PRESENT, _S.GONE}),
        _S.GONE: frozenset(),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A recorded checkout.

    Attributes:
        base: the commit that work began from.
        snapshot: path to (size, changed_ns) of the ignored files that setup left.
    """

    id: int
    task: str
    epoch: int
    host_id: str
    path: str
    branch: str
    base: str
    state: WorkspaceState
    snapshot: Mapping[str, tuple[int, int]]
    at_ms: int


def check_move(state: WorkspaceState, to: WorkspaceState) -> None:
    """Refuse a move that the table doesn't have; staying is allowed.

    Raises:
        TransitionRefusedError: names both states.
    """
    if to is not state and to not in WORKSPACE_MOVES[state]:
        raise TransitionRefusedError(
            f"A workspace that is {state} can't become {to}.",
            next_step="Look at it: lessor show TASK.",
            state=state,
            event=to,
        )
