"""How attempts ended, and what the whole run says with its exit code."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from lessor.errors import BusyError, LeaseLostError

_WAITS_FOR_A_PERSON = 8


class Outcome(StrEnum):
    """The end of one attempt."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    ASKED = "asked"
    FAILED = "failed"
    KILLED = "killed"
    LOST = "lost"
    CANCELLED = "cancelled"
    STOPPED = "stopped"

    @property
    def is_result(self) -> bool:
        """Whether there is a result on the branch."""
        return self in {Outcome.VERIFIED, Outcome.UNVERIFIED}


def exit_code(last: Iterable[Outcome]) -> int:
    """The run's exit code from each task's *last* outcome.

    A lost lease 7, a task that waits for a person 8, a failed one 1, one that a person stopped
    halfway 75 (run again, and it goes on); else 0, also for a run that had nothing to do.
    """
    outcomes = set(last)
    if Outcome.LOST in outcomes:
        return LeaseLostError.exit_code
    if Outcome.ASKED in outcomes:
        return _WAITS_FOR_A_PERSON
    if Outcome.FAILED in outcomes:
        return 1
    return BusyError.exit_code if Outcome.STOPPED in outcomes else 0
