"""`lessor push`: a leased branch to its remote, as its holder."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lessor.cli.finding import lease_named
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.phrases import next_lines, title_line
from lessor.cli.remotes import usual_remote
from lessor.cli.repositories import Checkout
from lessor.cli.text import Line, Piece, Tone, shown
from lessor.cli.tokens import held, token_path
from lessor.errors import DeniedError, NotFoundError
from lessor.git.refs import BRANCHES, read_ref
from lessor.model.lease import Holder
from lessor.publish.pushing import Errand, Published, publish
from lessor.runner.lease_file import read_holder
from lessor.service.reading import LeaseRecord

LEASE_FILE = "LESSOR_LEASE_FILE"


@command("push")
@click.argument("task", required=False, metavar="[N]")
@click.option("--remote", metavar="NAME", help="Where to; else the fenced remote, else origin.")
@pass_invocation
def push(invocation: Invocation, *, task: str | None, remote: str | None) -> None:
    """Push the branch of a task that you hold; without N, the one that you are on.

    The remote gets it only while your lease lives: where the repository is fenced, your lease's
    reference moves in the same atomic push; where Lessor's hooks are, they ask the store. Exits
    with 7 when the lease is lost, with 6 when the remote refuses, with 75 when nobody knows yet.
    """
    checkout = invocation.standing.checkout_or_refuse()
    holder, lease = _held(invocation, checkout, task)
    branch = lease.branch or ""
    commit = read_ref(checkout.repository.common_dir, f"{BRANCHES}{branch}")
    if commit is None:
        raise NotFoundError(
            f"There is no branch {branch!r} in this clone.",
            next_step="Push from the clone that the work is in.",
            branch=branch,
        )
    errand = Errand(
        repo=checkout.repository,
        remote=remote or usual_remote(invocation, checkout),
        ref=f"{BRANCHES}{branch}",
        commit=commit,
        hooks=True,
    )
    done = publish(invocation.lessor, holder, errand)
    record = {
        "leaseId": lease.id,
        "taskId": lease.task,
        "number": lease.number,
        "remote": done.remote,
        "ref": done.ref,
        "commit": done.commit,
        "moved": done.moved,
        "fenced": done.fenced,
    }
    invocation.answer(record, lambda: _lines(lease, done))


def _held(
    invocation: Invocation, checkout: Checkout, task: str | None
) -> tuple[Holder, LeaseRecord]:
    """The lease that the caller holds: an agent's own, the task's, or that of the branch it is on."""
    leases = invocation.lessor.leases
    named = None if task is None else lease_named(invocation, task)
    own = os.environ.get(LEASE_FILE)
    if own:
        holder = read_holder(Path(own))
        if named not in {None, holder.lease}:
            raise DeniedError(
                f"{task} isn't your task.",
                next_step="Push your own: lessor push.",
                lease=named or "",
            )
        return holder, leases.lease(holder.lease)
    lease = named or _of_branch(invocation, checkout)
    return held(invocation, lease), leases.lease(lease)


def _of_branch(invocation: Invocation, checkout: Checkout) -> str:
    from lessor.git.repository import current_branch

    branch = current_branch(checkout.cwd)
    live = invocation.lessor.leases.leases(repository=invocation.repository, live=True)
    found = [lease for lease in live if branch is not None and lease.branch == branch]
    for lease in found:
        if token_path(invocation, lease.id).is_file():
            return lease.id
    raise NotFoundError(
        f"Nobody holds the branch {branch} here."
        if branch
        else "You are on no branch, so that none can be pushed.",
        next_step="Name the task: lessor push N.",
    )


def _lines(lease: LeaseRecord, done: Published) -> list[Line]:
    name = done.ref.removeprefix(BRANCHES)
    what = "pushed" if done.moved else "was there already:"
    how = ", fenced" if done.fenced else ""
    lines: list[Line] = [
        title_line(lease.number, lease.title),
        ["   ", Piece(what, Tone.GOOD), f" {name} {done.commit[:7]} to {done.remote}{how}"],
    ]
    told = [line.removeprefix("remote:").strip() for line in done.said if "remote:" in line]
    lines += [["   ", Piece(shown(text), Tone.FAINT)] for text in told if text]
    return [*lines, *next_lines([f"lessor complete {lease.id} --stage pushed"])]
