"""How a script ends its lease: complete, fail, release."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import click

from lessor.cli.fencing import close_fences
from lessor.cli.files import STDIN, read_text
from lessor.cli.finding import lease_named
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.phrases import next_lines, title_line
from lessor.cli.states import state_words
from lessor.cli.text import Line, Piece, Tone
from lessor.cli.tokens import forget_token, holding
from lessor.errors import LessorError
from lessor.git.target import fork_of
from lessor.model.grant import Ended, Failure, Result
from lessor.model.intent import Outcome
from lessor.model.lease import Holder
from lessor.model.task import Stage, Task

_CLAIMED_STAGES = (Stage.UNVERIFIED, Stage.SUBMITTED, Stage.VERIFIED, Stage.PUSHED)


@command("complete")
@click.argument("lease")
@click.option("--base", metavar="COMMIT", help="What the work began from.")
@click.option("--commit", metavar="COMMIT", help="What it came to.")
@click.option("--said", default="", metavar="TEXT|-", help="What was done, in words.")
@click.option("--no-change", metavar="REASON", help="Why nothing had to be changed.")
@click.option(
    "--stage",
    type=click.Choice([stage.value for stage in _CLAIMED_STAGES]),
    default=Stage.UNVERIFIED.value,
    show_default=True,
    help="How far the result got.",
)
@pass_invocation
def complete(
    invocation: Invocation,
    *,
    lease: str,
    base: str | None,
    commit: str | None,
    said: str,
    no_change: str | None,
    stage: str,
) -> None:
    """Finish the task that a lease is for. A late result is refused with 7, and kept.

    With `--stage pushed` the commit is the one that was pushed last under the lease, unless told.
    """
    result = Result(
        stage=Stage(stage),
        said=read_text(STDIN, what="text").strip() if said == STDIN else said,
        base=base,
        commit=commit,
        no_change=no_change,
    )
    leases = invocation.lessor.leases
    _end(
        invocation,
        lease,
        lambda holder: leases.complete_one(holder, _with_push(invocation, holder, result)),
        work=no_change is None,
    )


def _with_push(invocation: Invocation, holder: Holder, result: Result) -> Result:
    """A pushed result with its commit, and with where it began, as far as that is known here."""
    if result.stage is not Stage.PUSHED or result.no_change:
        return result
    pushed = (
        intent.publish.new
        for intent in reversed(invocation.lessor.intents.of_task(holder.task))
        if intent.lease == holder.lease and intent.outcome is Outcome.DONE
    )
    commit = result.commit or next(pushed, None)
    base = result.base
    if commit is not None and base is None:
        with suppress(LessorError):  # there is no clone around
            base = fork_of(invocation.standing.checkout_or_refuse().repository.common_dir, commit)
    return replace(result, commit=commit, base=base)


@command("fail")
@click.argument("lease")
@click.option("--error", required=True, metavar="TEXT", help="What went wrong.")
@click.option("--fingerprint", default="", metavar="TEXT", help="The same for the same failure.")
@click.option("--final", is_flag=True, help="The task has failed; else the rules decide.")
@click.option("--credential", is_flag=True, help="It stopped for want of a credential.")
@pass_invocation
def fail(
    invocation: Invocation,
    *,
    lease: str,
    error: str,
    fingerprint: str,
    final: bool,
    credential: bool,
) -> None:
    """Say that an attempt failed; the recovery rules decide what follows."""
    failure = Failure(error=error, fingerprint=fingerprint, retry=not final, credential=credential)
    leases = invocation.lessor.leases
    _end(invocation, lease, lambda holder: leases.fail(holder, failure))


@command("release")
@click.argument("lease")
@click.option("--reason", default="", metavar="TEXT", help="Kept with the task.")
@pass_invocation
def release(invocation: Invocation, *, lease: str, reason: str) -> None:
    """Give a lease back unfinished: no attempt is spent, the next worker takes the task.

    Paths that were acquired without a task are simply free again.
    """
    leases = invocation.lessor.leases
    _end(invocation, lease, lambda holder: leases.release(holder, reason=reason))


def _end(
    invocation: Invocation, lease: str, how: Callable[[Holder], Ended], *, work: bool = False
) -> None:
    """End a lease and say so; `work`: it ends in a result that somebody may want to land."""
    named = lease_named(invocation, lease)
    with holding(invocation, named) as holder:
        ended = how(holder)
        forget_token(invocation, named)
    close_fences(invocation)
    task = invocation.lessor.tasks.task(ended.task)
    record = {
        "leaseId": ended.lease,
        "taskId": ended.task,
        "number": task.number,
        "end": ended.end,
        "state": ended.state,
        "rule": ended.rule or None,
        "repeated": ended.repeated,
    }
    lost = work and task.repository is not None and task.commit is None
    invocation.answer(record, lambda: _lines(task, ended, lost=lost))


def _lines(task: Task, ended: Ended, *, lost: bool) -> list[Line]:
    rule = f" by the rule {ended.rule!r}" if ended.rule else ""
    lines: list[Line] = [
        title_line(task.number, task.title),
        [f"   lease {ended.end}; the task {state_words(ended.state)}{rule}"]
        if ended.rule != "ad hoc"
        else [f"   lease {ended.end}; its paths are free again"],
    ]
    if lost:
        lines.append([Piece("   no --commit was named, so that nothing of it can land", Tone.WARN)])
    return [*lines, *next_lines([f"lessor show {task.number}"])]
