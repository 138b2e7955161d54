"""`lessor repo`: settings of the repository that one stands in."""

from __future__ import annotations

import click

from lessor.cli.fencing import close_fences
from lessor.cli.invocation import Invocation
from lessor.cli.options import Command, pass_invocation, shared_options
from lessor.cli.phrases import next_lines
from lessor.cli.repositories import Checkout
from lessor.cli.text import Line, Piece, Tone
from lessor.errors import NotARepositoryError
from lessor.model.repository import Repository

OFF = "off"


@click.group(
    "repo",
    params=shared_options(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
def repo() -> None:
    """Settings of the repository."""


@repo.command("fence", cls=Command, short_help="Show or set the remote that refuses stale pushes.")
@click.argument("remote", required=False, metavar="REMOTE|off")
@click.option(
    "--unfenced", is_flag=True, help="Grant leases, too, while the remote can't be reached."
)
@pass_invocation
def fence(invocation: Invocation, *, remote: str | None, unfenced: bool) -> None:
    """Show or set the remote that refuses stale pushes by references, without any hook there.

    Each lease then has a reference of its own at REMOTE, a remote's name or a URL. A push moves it
    by compare-and-swap together with the branch, and the lease's end deletes it. The remote is
    tried first; nothing is set where it can't do that.
    """
    if unfenced and remote in {None, OFF}:
        raise click.UsageError("--unfenced goes with a remote.")
    checkout = invocation.standing.checkout_or_refuse()
    known = _known(invocation)
    if remote is not None:
        place = None if remote == OFF else _tried(checkout, remote)
        known = invocation.lessor.registry.set_fence_remote(known.id, place, unfenced=unfenced)
        close_fences(invocation)
    record = {
        "repo": known.key,
        "fenceRemote": known.fence_remote,
        "unfenced": known.unfenced,
    }
    invocation.answer(record, lambda: _lines(known, tried=remote not in {None, OFF}))


def _known(invocation: Invocation) -> Repository:
    repository = invocation.repository
    if repository is None:
        raise NotARepositoryError(
            "Only a repository is fenced at a remote.", next_step="Run this inside of one."
        )
    return invocation.lessor.registry.repository(repository)


def _tried(checkout: Checkout, remote: str) -> str:
    """The remote as it is kept, once it has shown that it can be a fence."""
    from lessor.cli.remotes import named_remote
    from lessor.publish.trial import try_remote

    place = named_remote(checkout, remote)
    try_remote(checkout.repository.root, place)
    return place


def _lines(known: Repository, *, tried: bool) -> list[Line]:
    remote = known.fence_remote
    if remote is None:
        return [
            [f"{known.name} is fenced at no remote: no push is compared with a lease there"],
            *next_lines(["lessor repo fence origin"]),
        ]
    lines: list[Line] = [
        [Piece(known.name, Tone.STRONG), " is fenced at ", Piece(remote, Tone.STRONG)],
        ["   each lease has a reference there; a push that is late finds it gone"],
    ]
    if tried:
        lines.append(["   tried: made, refused when stale, moved and deleted, two at once"])
    lines.append(
        [
            "   while it can't be reached, leases are granted "
            + ("unfenced" if known.unfenced else "to nobody")
        ]
    )
    return [*lines, *next_lines(["lessor drill --remote"])]
