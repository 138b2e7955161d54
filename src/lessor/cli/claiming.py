"""Scripts' leases: claim, acquire, renew, sweep what ran out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from lessor.cli.fencing import acquire_fenced, claim_fenced, close_fences, recover_pushes
from lessor.cli.finding import find_task, lease_named, path_from_top
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, duration_option, pass_invocation
from lessor.cli.outlet import heard
from lessor.cli.phrases import next_lines, title_line
from lessor.cli.records import grant_record, lease_record, workspace_name
from lessor.cli.requesting import repeated, request_id_option, request_of
from lessor.cli.text import Line, Piece, Tone, wrap
from lessor.cli.times import instant
from lessor.cli.tokens import forget_left_tokens, holding, keep_granted, keep_token
from lessor.cli.workers import own_worker
from lessor.errors import LeaseLostError
from lessor.model.grant import ClaimRequest, Grant, Reach, Renewed
from lessor.model.lease import Holder
from lessor.model.task import AD_HOC, NewTask
from lessor.service.reading import LeaseRecord

NOTHING_TO_CLAIM = 3
ACQUIRE_TTL_MS = 300_000

_agent = click.option(
    "--agent", metavar="NAME", help="Under which name; else LESSOR_AGENT, else your login."
)
_ttl = duration_option("--ttl", "ttl_ms", help="How long it lasts unrenewed.")


@command("claim")
@click.option("--queue", default="default", show_default=True, metavar="NAME", help="The queue.")
@click.option("--task", metavar="N", help="Only this task.")
@_agent
@click.option("--kind", default="", metavar="KIND", help="Whose tasks; else NAME without -1.")
@click.option("--offer", "offers", multiple=True, metavar="CAPABILITY", help="What you can do.")
@click.option("-n", "wanted", type=click.IntRange(1, 1_000), default=1, help="How many at most.")
@duration_option("--wait", "wait_ms", help="Wait so long for something to claim.")
@_ttl
@duration_option("--max-hold", "max_hold_ms", help="How long it may be held, renewed or not.")
@request_id_option
@pass_invocation
def claim(
    invocation: Invocation,
    *,
    queue: str,
    task: str | None,
    agent: str | None,
    kind: str,
    offers: tuple[str, ...],
    wanted: int,
    wait_ms: int | None,
    ttl_ms: int | None,
    max_hold_ms: int | None,
    request_id: str,
) -> int:
    """Take the next task, with its lease. Exits with 3 when there is nothing to claim.

    The lease's token goes into a file that only you can read; renew, complete, fail and release
    find it by the lease's id.
    """
    name = agent or invocation.person
    standing = invocation.standing
    known_as, secret = request_of(invocation, request_id)
    request = ClaimRequest(
        worker=own_worker(invocation, name, kind=kind, capabilities=offers),
        request_id=known_as,
        secret=secret,
        queue=queue,
        repository=standing.id or Reach.NO_REPOSITORY,
        task=find_task(invocation, task).id if task else None,
        wanted=wanted,
        ttl_ms=ttl_ms,
        max_hold_ms=max_hold_ms,
    )
    forget_left_tokens(invocation)
    with repeated(request_id):
        grants = claim_fenced(
            invocation,
            lambda wait: invocation.lessor.leases.claim(request, wait_ms=wait),
            wait_ms=wait_ms or 0,
        )
    keep_granted(invocation, [grant.holder for grant in grants])
    with heard(grants):
        _answer_claim(invocation, grants, name)
    return 0 if grants else NOTHING_TO_CLAIM


@command("acquire")
@click.option(
    "--scope", "scopes", multiple=True, required=True, metavar="PATH", help="What to hold."
)
@click.option(
    "--read", "reads", multiple=True, metavar="PATH", help="Nobody may write them meanwhile."
)
@_agent
@click.option("--title", default="", metavar="TEXT", help="What it is for.")
@_ttl
@request_id_option
@pass_invocation
def acquire(
    invocation: Invocation,
    *,
    scopes: tuple[str, ...],
    reads: tuple[str, ...],
    agent: str | None,
    title: str,
    ttl_ms: int | None,
    request_id: str,
) -> None:
    """Lease paths at once, without a queued task. Exits with 6 when somebody holds one of them."""
    standing = invocation.stand(register=True)
    forget_left_tokens(invocation)
    name = agent or invocation.person
    task = NewTask(
        title=title or f"{name}: {', '.join(scopes)}"[:200],
        queue=AD_HOC,
        repository=standing.id,
        scopes=tuple(path_from_top(invocation, scope) for scope in scopes),
        reads=tuple(path_from_top(invocation, path) for path in reads),
        strict=True,
    )
    known_as, secret = request_of(invocation, request_id)
    with repeated(request_id):
        grant = acquire_fenced(
            invocation,
            task,
            worker=own_worker(invocation, name),
            ttl_ms=ttl_ms or ACQUIRE_TTL_MS,
            request_id=known_as,
            secret=secret,
        )
    keep_granted(invocation, [grant.holder])
    record = grant_record(grant, repo=standing.key or None, agent=name)
    with heard([grant]):
        invocation.answer(record, lambda: _acquired_lines(grant))


@command("renew")
@click.argument("lease")
@pass_invocation
def renew(invocation: Invocation, *, lease: str) -> None:
    """Extend a lease by another term. Exits with 7 when it is lost: stop working then."""
    named = lease_named(invocation, lease)
    with holding(invocation, named) as holder:
        renewed = _renew(invocation, holder)
        keep_token(invocation, replace(holder, version=renewed.version))
    record = {
        "leaseId": renewed.lease,
        "version": renewed.version,
        "expiresAt": instant(renewed.expires_ms),
        "ttlMs": renewed.ttl_ms,
        "last": renewed.last,
    }
    invocation.answer(record, lambda: _renewed_lines(renewed))


@command("sweep-stale")
@pass_invocation
def sweep_stale(invocation: Invocation) -> None:
    """End leases that ran out. Every claim does it too; nobody has to."""
    standing = invocation.standing
    ended = invocation.lessor.leases.sweep(repository=standing.id)
    forget_left_tokens(invocation)
    recover_pushes(invocation)
    close_fences(invocation)
    invocation.answer_all(
        [lease_record(lease, repo=standing.key or None) for lease in ended],
        lambda: _swept_lines(ended),
    )


def _renew(invocation: Invocation, holder: Holder) -> Renewed:
    """Renew; where the file is behind the store (a crash in between), with the store's version."""
    leases = invocation.lessor.leases
    try:
        return leases.renew_one(holder)
    except LeaseLostError:
        seen = leases.watch(holder)
        if not seen.live or seen.version == holder.version:
            raise
        return leases.renew_one(replace(holder, version=seen.version))


def _answer_claim(invocation: Invocation, grants: Sequence[Grant], agent: str) -> None:
    repo = invocation.standing.key or None
    invocation.answer_all(
        [grant_record(grant, repo=repo, agent=agent) for grant in grants],
        lambda: _claimed_lines(invocation, grants),
    )


def _claimed_lines(invocation: Invocation, grants: Sequence[Grant]) -> list[Line]:
    if not grants:
        return [["nothing to claim"], *next_lines(["lessor claim --wait 60s"])]
    lines: list[Line] = []
    for grant in grants:
        lines.append(title_line(grant.number, grant.title))
        facts = {
            "lease": grant.lease,
            "epoch": f"{grant.epoch}, fence {grant.fence}",
            "ttl": f"{(grant.expires_ms - grant.granted_ms) // 1_000}s",
            "branch": grant.branch or "",
            "scope": ", ".join(grant.scopes) or ("grows" if invocation.repository else ""),
            "check": grant.check or "",
        }
        lines += [
            [Piece(f"  {name:<7} ", Tone.FAINT), value] for name, value in facts.items() if value
        ]
        for paragraph in grant.prompt.splitlines():
            lines += [["  ", text] for text in wrap(paragraph, invocation.columns - 2)]
    lease = grants[0].lease
    return [*lines, *next_lines([f"lessor renew {lease}"])]


def _acquired_lines(grant: Grant) -> list[Line]:
    return [
        [f"lease acquired: {grant.lease}"],
        [f"workspace: {workspace_name(grant.number, grant.scopes)}"],
        [f"ttl: {(grant.expires_ms - grant.granted_ms) // 1_000}s"],
    ]


def _renewed_lines(renewed: Renewed) -> list[Line]:
    lines: list[Line] = [
        [f"lease renewed: version={renewed.version} expiresAt={instant(renewed.expires_ms)}"]
    ]
    if renewed.last:
        lines.append(["this is its last term: the longest hold is reached"])
    return lines


def _swept_lines(ended: Sequence[LeaseRecord]) -> list[Line]:
    if not ended:
        return [["nothing to reclaim"]]
    return [
        [
            f"reclaimed: {lease.id} owner={lease.agent or lease.kind}/{lease.number} ",
            f"expired={max(0, lease.now_ms - lease.expires_ms) // 1_000}s",
        ]
        for lease in ended
    ]
