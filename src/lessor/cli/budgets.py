"""What stays of worktrees beside the budget that lessor.toml gives them."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.cli.invocation import Invocation
from lessor.cli.phrases import bytes_text
from lessor.cli.times import lapse
from lessor.errors import GitError, InvalidError
from lessor.git.inspection import Verdict
from lessor.model.budget import Budget, Excess, Measure, Overrun, Stay, judge_budget
from lessor.model.workspace import Workspace
from lessor.runner.looking import Look

_MAY_BE_NAMED = {Verdict.HOLDS_WORK, Verdict.UNKNOWN}


def overrun_of(invocation: Invocation, looks: Sequence[Look]) -> Overrun:
    """What of the budget is overrun by workspaces that were looked at and stay."""
    stays = [
        Stay(
            id=look.workspace.id,
            bytes=look.bytes,
            at_ms=look.workspace.at_ms,
            may_be_named=look.verdict in _MAY_BE_NAMED,
        )
        for look in looks
    ]
    return _judged(invocation, stays)


def overrun_of_records(invocation: Invocation, found: Sequence[Workspace]) -> Overrun:
    """The same by count and age alone, for workspaces that nobody looked at; nothing is proposed."""
    stays = [Stay(id=one.id, bytes=0, at_ms=one.at_ms, may_be_named=False) for one in found]
    return _judged(invocation, stays)


def excess_text(excess: Excess) -> str:
    """One measure that is over, in words."""
    match excess.measure:
        case Measure.COUNT:
            return f"{excess.have} worktrees, and {excess.most} are to be kept"
        case Measure.BYTES:
            return f"{bytes_text(excess.have)}, and {bytes_text(excess.most)} are to be kept"
        case Measure.AGE:
            many = "1 is" if excess.have == 1 else f"{excess.have} are"
            return f"{many} older than {lapse(excess.most)}"


def _judged(invocation: Invocation, stays: Sequence[Stay]) -> Overrun:
    return judge_budget(_budget(invocation), stays, now_ms=invocation.lessor.now_ms())


def _budget(invocation: Invocation) -> Budget:
    try:
        return invocation.project().workspaces
    except (InvalidError, GitError):
        return Budget()  # a lessor.toml that can't be read stops no cleaning; every run tells of it
