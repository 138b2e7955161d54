"""Standard output that remembers why nothing more goes out, and leases that somebody has to hear of.

Python tells of a full disk by an error without a file's name: nobody could say whether the output
was meant, or a file of the command's.
"""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from lessor.cli.problem import FAILED, Problem

if TYPE_CHECKING:
    from typing_extensions import override

    from lessor.model.grant import Grant
else:

    def override(method: Callable[..., Any]) -> Callable[..., Any]:
        """typing.override, which Python 3.11 lacks."""
        return method


PIPE_CLOSED = 128 + 13


class Outlet(io.FileIO):
    """What standard output writes to.

    Attributes:
        failure: why a write failed; None while all went out.
    """

    failure: OSError | None = None

    @override
    def write(self, data: Any, /) -> int:
        """Write, and remember a failure; what is written after one goes nowhere."""
        if self.failure is not None:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise


class UnheardError(Exception):
    """Leases were granted, and the answer with their ids reached nobody."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def open_outlet(stream: TextIO) -> TextIO:
    """A stream to the same place as `stream`, over an Outlet."""
    return io.TextIOWrapper(
        io.BufferedWriter(Outlet(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.isatty(),
    )


def failure() -> OSError | None:
    """Why standard output failed; None where it didn't."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, Outlet) else None


def unwritten(error: OSError) -> Problem:
    """An answer that couldn't be written."""
    return Problem(
        code="unwritten",
        message=f"The answer couldn't be written: {error.strerror}.",
        next_step="What the command changed stays changed. See it: lessor list.",
        exit_code=exit_code(error),
    )


def exit_code(error: OSError) -> int:
    """141 for a pipe that nobody reads any more, else 1."""
    return PIPE_CLOSED if error.errno == errno.EPIPE else FAILED


@contextmanager
def heard(grants: Sequence[Grant]) -> Iterator[None]:
    """Answer with `grants`; where that can't be written, standard error says what is held.

    They aren't given back: who read a part of the answer may be at work already.

    Raises:
        UnheardError: the answer couldn't be written.
    """
    try:
        yield
    except OSError as error:
        if not grants or failure() is None:
            raise
        held = ", ".join(f"{grant.lease} (#{grant.number})" for grant in grants)
        problem = Problem(
            code="unwritten",
            message=f"The answer couldn't be written: {error.strerror}. You hold {held}.",
            next_step="\n".join(
                ["Give back what nobody works under:"]
                + [f"  lessor release {grant.lease}" for grant in grants]
            ),
            exit_code=exit_code(error),
            facts={"leases": [grant.lease for grant in grants]},
        )
        raise UnheardError(problem) from error
