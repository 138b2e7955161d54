"""`lessor widen`: more paths for a lease that one holds."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lessor.cli.finding import lease_named, path_from_top
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.pushing import LEASE_FILE
from lessor.cli.requesting import request_id_option
from lessor.cli.text import Piece, Tone
from lessor.cli.tokens import held
from lessor.model.lease import Holder
from lessor.runner.lease_file import read_holder


@command("widen")
@click.argument("lease", metavar="N")
@click.argument("paths", nargs=-1, required=True)
@request_id_option
@pass_invocation
def widen(invocation: Invocation, *, lease: str, paths: tuple[str, ...], request_id: str) -> None:
    """Add paths to the lease of a task that you hold, all of them or none.

    Exits with 6 when somebody else holds one of them, or took it since your lease began.
    """
    named = lease_named(invocation, lease)
    holder = _holder(invocation, named)
    wanted = [path_from_top(invocation, path) for path in paths]
    fence = invocation.lessor.leases.widen(holder, wanted, since_start=True, request_id=request_id)
    scopes = list(invocation.lessor.tasks.task(holder.task).scopes)
    record = {
        "leaseId": named,
        "taskId": holder.task,
        "fence": fence,
        "scope": {"kind": "path-set", "paths": scopes},
    }
    invocation.answer(
        record, lambda: [[Piece(", ".join(wanted), Tone.STRONG), f"  is yours too, fence {fence}"]]
    )


def _holder(invocation: Invocation, lease: str) -> Holder:
    """The token that an agent was given for this lease, else the one that this machine keeps."""
    own = os.environ.get(LEASE_FILE)
    if own:
        holder = read_holder(Path(own))
        if holder.lease == lease:
            return holder
    return held(invocation, lease)
