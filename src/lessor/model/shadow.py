"""A result that hasn't landed, and what begins where it lies.

The lease ended with the result; the conflict lives until the branch is landed. So a finished result
keeps a *shadow* on the paths that it had for writing. What overlaps exactly one such result begins
on its commit; what overlaps several that don't contain one another waits until all but one landed.

A task that asked a person and got no answer while its paths were held leaves one, too, where it has
commits: its work is on its branch, and may go on there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

SHADOW_MS = 72 * 3_600_000
"""The longest that a shadow lies: a repository in which nobody lands with Lessor isn't blocked for ever."""


class Unlanded(StrEnum):
    """What a claim does where a result lies that hasn't landed; a repository's own setting."""

    STACK = "stack"  # begin on top of it, where there is one
    WAIT = "wait"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """A result that hasn't landed.

    Attributes:
        lease: the shadow's own, for whoever waits for its end.
        head: the result's commit.
        below: the tasks on whose results it stands itself, the nearest first.
    """

    lease: int
    task: int
    branch: str
    head: str
    below: tuple[int, ...] = ()


def is_work(commit: str | None, *, base: str | None) -> bool:
    """Whether there is something that could land.

    Args:
        commit: the last one, as it was reported with the result or with the question.
        base: the one that the work began from, as it was reported or as the workspace's record has
            it; None where neither says.
    """
    return bool(commit) and commit != base


def foundation(shadows: Sequence[Shadow]) -> Shadow | None:
    """The one of `shadows` that contains all the others; None where there is no such one."""
    tasks = {shadow.task for shadow in shadows}
    return next((s for s in shadows if tasks - {s.task} <= set(s.below)), None)
