"""`lessor hold` and `lessor drop`: a person's own paths, without a heartbeat."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

import click

from lessor.cli.fencing import acquire_fenced, close_fences
from lessor.cli.files import count_files, path_rules
from lessor.cli.finding import holders_of, lease_named, path_from_top
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, duration_option, pass_invocation
from lessor.cli.outlet import heard
from lessor.cli.phrases import next_lines
from lessor.cli.records import grant_record
from lessor.cli.requesting import repeated, request_id_option, request_of
from lessor.cli.text import Line, Piece, Tone, shown
from lessor.cli.times import clock_time, lapse
from lessor.cli.tokens import forget_left_tokens, forget_token, holding, keep_granted, token_path
from lessor.cli.workers import own_worker
from lessor.errors import DeniedError, GitError, LeaseLostError, NotFoundError
from lessor.git.repository import head_commit
from lessor.model.grant import Grant
from lessor.model.task import AD_HOC, NewTask


@command("hold")
@click.argument("paths", nargs=-1, required=True)
@duration_option("--for", "for_ms", default="4h", show_default=True, help="For how long.")
@click.option("--reason", default="", metavar="TEXT", help="Shown to whoever has to wait.")
@request_id_option
@pass_invocation
def hold(
    invocation: Invocation, *, paths: tuple[str, ...], for_ms: int, reason: str, request_id: str
) -> None:
    """Keep paths to yourself: no agent gets them until you drop them or the time is up."""
    standing = invocation.stand(register=True)
    forget_left_tokens(invocation)
    task = NewTask(
        title=reason or f"held by {invocation.person}",
        queue=AD_HOC,
        repository=standing.id,
        scopes=tuple(path_from_top(invocation, path) for path in paths),
        strict=True,
        progress=False,
    )
    known_as, secret = request_of(invocation, request_id)
    with repeated(request_id):
        grant = acquire_fenced(
            invocation,
            task,
            worker=own_worker(invocation, invocation.person),
            ttl_ms=for_ms,
            max_hold_ms=for_ms,
            request_id=known_as,
            secret=secret,
        )
    keep_granted(invocation, [grant.holder])
    record = grant_record(grant, repo=standing.key or None, agent=invocation.person)
    with heard([grant]):
        invocation.answer(record, lambda: _held_lines(invocation, grant))


@command("drop")
@click.argument("names", nargs=-1, required=True, metavar="PATH|N…")
@pass_invocation
def drop(invocation: Invocation, *, names: tuple[str, ...]) -> None:
    """Give back what you hold: a path, or the number that `hold` or `acquire` answered."""
    leases = [lease for name in names for lease in _leases(invocation, name)]
    dropped = []
    for lease in dict.fromkeys(leases):
        with holding(invocation, lease) as holder:
            try:
                ended = invocation.lessor.leases.release(holder, reason="dropped")
            except LeaseLostError as error:
                over = invocation.lessor.leases.lease(lease)
                if invocation.lessor.tasks.task(over.task).queue == AD_HOC:
                    # There is no work and no branch: its paths are all that it was.
                    again = shlex.join(["lessor", "hold", *over.paths])
                    error.next_step = f"It keeps nobody out any more; to go on: {again}."
                raise
            forget_token(invocation, lease)
            dropped.append({"leaseId": lease, "taskId": ended.task, "state": ended.state})
    close_fences(invocation)
    invocation.answer_all(
        dropped, lambda: _dropped_lines(invocation, [d["taskId"] for d in dropped])
    )


def _leases(invocation: Invocation, name: str) -> list[str]:
    """The person's own leases on a path, or the one of a task.

    Raises:
        NotFoundError: nobody holds it.
        DeniedError: only others do.
    """
    if re.fullmatch(r"#?\d+|(?:lease|task)_\w+", name):
        return [lease_named(invocation, name)]
    standing = invocation.standing
    path = path_from_top(invocation, name)
    found = holders_of(invocation, path, repository=standing.id) if standing.id else []
    if not found:
        raise NotFoundError(f"Nobody holds {path}.", next_step="See what is held: lessor.")
    own = [held.lease for held in found if token_path(invocation, held.lease).is_file()]
    if not own:
        raise DeniedError(
            f"{path} belongs to #{found[0].number} ({found[0].agent}), not to you.",
            next_step=f"See: lessor show {found[0].number}.",
            path=path,
            holder=found[0].agent,
            number=found[0].number,
        )
    return own


def _held_lines(invocation: Invocation, grant: Grant) -> list[Line]:
    until = clock_time(grant.expires_ms, now=invocation.lessor.now_ms())
    lines: list[Line] = [
        [
            Piece(", ".join(grant.scopes), Tone.STRONG),
            f"  is yours for {lapse(grant.expires_ms - grant.granted_ms)}, until {until}",
        ]
    ]
    lines += [
        [f"   {shown(path)}: ", Piece("no file yet: is it spelt right?", Tone.WARN)]
        for path in _without_files(invocation, grant.scopes)
    ]
    return [*lines, *next_lines([f"lessor drop {grant.number}"])]


def _without_files(invocation: Invocation, paths: Sequence[str]) -> list[str]:
    """The paths that cover no file, neither in the commit nor in the checkout."""
    checkout = invocation.standing.checkout
    if checkout is None:
        return []
    top = checkout.cwd.joinpath(*(".." for _ in PurePosixPath(checkout.prefix).parts))
    absent = [path for path in paths if not os.path.lexists(top / path)]
    rules = path_rules(invocation, invocation.standing.id)
    try:
        commit = head_commit(checkout.cwd)
    except GitError:  # none yet
        return absent
    return [path for path in absent if not count_files(checkout, commit, path, rules=rules)]


def _dropped_lines(invocation: Invocation, tasks: Sequence[str]) -> list[Line]:
    lines: list[Line] = []
    for task in tasks:
        found = invocation.lessor.tasks.task(task)
        lines.append([f"{', '.join(found.scopes)} is free again"])
    return lines
