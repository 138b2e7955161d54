"""How an attempt ended, and what the whole run says with its exit code."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

_TAIL_BYTES = 8_192
_LONGEST = 2_000


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
    """The run's exit code from each task's *last* outcome: lost 7, waits for a person 8, failed 1."""
    outcomes = set(last)
    if Outcome.LOST in outcomes:
        return 7
    if Outcome.ASKED in outcomes:
        return 8
    return 1 if Outcome.FAILED in outcomes else 0


def last_words(run_dir: Path) -> str:
    """The last paragraph of what the agent printed, without control characters; data."""
    try:
        with (run_dir / "agent.log").open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    paragraph = text.strip().split("\n\n")[-1]
    printable = "".join(c if c.isprintable() or c == "\n" else " " for c in paragraph)
    return printable.strip()[-_LONGEST:]
