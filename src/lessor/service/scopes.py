"""Widening a lease, and who holds a path.

A scope grows by default: what nobody else holds is granted at once, with a fence of its own. A
widening never waits: of two leases that would wait for each other, the one that asks is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lessor.errors import LessorError, NotFoundError, ScopeHeldError
from lessor.model.lease import Holder
from lessor.model.scope import Mode, Scope, conflicts, merge_scopes
from lessor.model.task import Task
from lessor.model.waiting import Held
from lessor.service.blockers import stored_scope
from lessor.service.naming import Naming
from lessor.service.proof import lock_holder
from lessor.service.rows import LeaseRow, LockedRow, RepositoryRow, ScopeHit, pack, pack_facts
from lessor.service.submitting import scope_rows
from lessor.store import Transaction


def widen(
    tx: Transaction,
    naming: Naming,
    holder: Holder,
    scopes: Sequence[Scope],
    *,
    repository: int,
    since_start: bool,
) -> int:
    """Add `scopes` to the holder's lease; the new fence, or what they have where they are covered.

    Args:
        since_start: also refuse what an overlapping grant has taken since this lease began, ended
            or not: the rule at the completion gate, where the base may be older than that grant.

    Raises:
        HolderLostError: the caller isn't the live holder.
        ScopeHeldError: somebody else's live or later grant overlaps; nothing was added.
    """
    locked = tx.rows("lock_repository", repository_id=repository)
    if not locked:
        raise NotFoundError(
            "The task has no repository, so its lease has no paths.",
            next_step="Leave the scope out.",
        )
    repo = RepositoryRow._make(locked[0])
    row = lock_holder(tx, naming, holder)
    wanted, covered = _cover(tx, row.lease_id or 0, scopes)
    if not wanted:
        return covered
    _refuse_held(tx, naming, row, wanted, repository=repository)
    if since_start:
        _refuse_taken(tx, naming, row, wanted, repository=repository)
    first = int(tx.rows("last_scope_ord", task_id=row.task_id)[0][0]) + 1
    fence = repo.fence + 1
    tx.rows(
        "widen_write",
        rows=pack(scope_rows(row.task_id, wanted, first=first, widened=True)),
        task_id=row.task_id,
        lease_id=row.lease_id,
        repository_id=repository,
        epoch=holder.epoch,
        fence=fence,
        at_ms=max(row.now, repo.floor_ms),
        facts=pack_facts(paths=[s.text for s in wanted], fence=fence),
    )
    return fence


def widen_all(
    tx: Transaction,
    naming: Naming,
    holder: Holder,
    wanted: Mapping[str, Sequence[Scope]],
    *,
    repository: int,
) -> tuple[tuple[str, ...], dict[str, LessorError]]:
    """For each path add the first of its scopes that nobody is in the way of; what was added.

    Where one path can have none of its scopes, nothing is added, and its last refusal is told.

    Raises:
        HolderLostError: the caller isn't the live holder.
    """
    tx.rows("lock_repository", repository_id=repository)
    row = lock_holder(tx, naming, holder)
    known: dict[Scope, ScopeHeldError | None] = {}
    taken: list[Scope] = []
    refused: dict[str, LessorError] = {}
    for path, scopes in wanted.items():
        for scope in scopes:
            if scope not in known:
                known[scope] = in_the_way(tx, naming, row, scope, repository=repository)
            held = known[scope]
            if held is None:
                taken.append(scope)
                refused.pop(path, None)
                break
            refused[path] = held
    if refused or not taken:
        return (), refused
    added = merge_scopes(taken)
    widen(tx, naming, holder, added, repository=repository, since_start=True)
    return tuple(scope.text for scope in added), {}


def in_the_way(
    tx: Transaction, naming: Naming, row: LockedRow, scope: Scope, *, repository: int
) -> ScopeHeldError | None:
    """Who keeps `scope` from the live holder `row`: it is held, or was taken since the lease began."""
    try:
        _refuse_held(tx, naming, row, [scope], repository=repository)
        _refuse_taken(tx, naming, row, [scope], repository=repository)
    except ScopeHeldError as held:
        return held
    return None


def conflicting(
    tx: Any, scopes: Sequence[Scope], *, repository: int, lease: int = 0, reserved: bool = False
) -> list[tuple[Scope, ScopeHit]]:
    """Live scope rows that conflict with `scopes`, each with the asked scope it meets; exact."""
    rows = scope_rows(0, scopes)
    hits = tx(
        "scope_conflicts",
        rows=pack(rows),
        repository_id=repository,
        lease_id=lease,
        with_reserved=int(reserved),
    )
    found = []
    for raw in hits:
        hit = ScopeHit._make(raw)
        mine = scopes[hit.ord]
        plain = mine.pattern is None and hit.pattern is None  # then the lookup was exact
        if plain or conflicts(mine, stored_scope(hit.key, hit.mode, hit.pattern)):
            found.append((mine, hit))
    return found


def held_by(naming: Naming, row: LeaseRow, paths: Sequence[str]) -> Held:
    """A lease's row as the holder of `paths`."""
    return Held(
        lease=naming.lease(row.id),
        kind=row.kind,
        task=naming.task(row.task_id),
        number=row.number,
        title=row.title,
        agent=row.agent,
        epoch=row.epoch,
        paths=tuple(paths),
        since_ms=row.granted_ms,
        ends_ms=row.expires_ms,
        latest_ms=row.max_until_ms,
    )


def _cover(tx: Transaction, lease: int, scopes: Sequence[Scope]) -> tuple[list[Scope], int]:
    """What a plain scope of the lease that is as strong doesn't cover yet, and the fence of the rest."""
    held = tx.rows("lease_scopes", leases=pack([lease]))
    plain = {(key, mode): fence for _, _, _, key, mode, pattern, fence in held if pattern is None}
    same = {(key, mode, pattern): fence for _, _, _, key, mode, pattern, fence in held}
    missing: list[Scope] = []
    highest = 0
    for scope in scopes:
        modes = (Mode.WRITE,) if scope.mode is Mode.WRITE else (Mode.WRITE, Mode.READ)
        fences = [
            *(
                plain[key, mode]
                for key in scope.ancestors
                for mode in modes
                if (key, mode) in plain
            ),
            *(
                same[scope.key, mode, scope.pattern]
                for mode in modes
                if (scope.key, mode, scope.pattern) in same
            ),
        ]
        if fences:
            highest = max(highest, *fences)
        else:
            missing.append(scope)
    return missing, highest


def _refuse_held(
    tx: Transaction, naming: Naming, row: LockedRow, wanted: Sequence[Scope], *, repository: int
) -> None:
    own = row.task_id
    hits = [
        pair
        for pair in conflicting(tx.rows, wanted, repository=repository, lease=row.lease_id or 0)
        if pair[1].task_id != own
    ]
    if hits:
        mine, hit = hits[0]
        lease = LeaseRow._make(tx.rows("lease", lease_id=hit.lease_id)[0])
        raise scope_held(naming, mine, hit.text, lease)


def _refuse_taken(
    tx: Transaction, naming: Naming, row: LockedRow, wanted: Sequence[Scope], *, repository: int
) -> None:
    for lease_id, _, _, text, key, mode, pattern in tx.rows(
        "taken_since", repository_id=repository, fence=row.fence, task_id=row.task_id
    ):
        other = stored_scope(key, mode, pattern)
        mine = next((scope for scope in wanted if conflicts(scope, other)), None)
        if mine is not None:
            lease = LeaseRow._make(tx.rows("lease", lease_id=lease_id)[0])
            raise scope_held(naming, mine, text, lease)


def scope_held(naming: Naming, mine: Scope, theirs: str, lease: LeaseRow) -> ScopeHeldError:
    """The refusal that names the path, its holder, how long, and one command."""
    left = max(0, lease.expires_ms - lease.now) // 1000
    verb = "belongs to" if lease.ended_ms is None else "was taken meanwhile by"
    until = f" for {_about(left)}" if lease.ended_ms is None else ""
    return ScopeHeldError(
        f"{mine.text} {verb} #{lease.number} ({lease.agent}){until}.",
        next_step=f"Leave it, or see: lessor why {lease.number}.",
        path=mine.text,
        held=theirs,
        lease=naming.lease(lease.id),
        holder=lease.agent,
        task=naming.task(lease.task_id),
        number=lease.number,
        epoch=lease.epoch,
        fence=lease.fence,
        ttl_ms=max(0, lease.expires_ms - lease.now) if lease.ended_ms is None else 0,
    )


def _about(seconds: int) -> str:
    """How long somebody may still have a path: two of a unit before the next larger one."""
    size, unit = next(
        (size, unit)
        for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"))
        if seconds >= 2 * size or unit == "minute"
    )
    rounded = max(1, round(seconds / size))
    return f"about {rounded} more {unit}{'' if rounded == 1 else 's'}"


def confined(task: Task, paths: Sequence[str]) -> ScopeHeldError:
    """The refusal of a widening because the task was confined when it was added."""
    return ScopeHeldError(
        f"#{task.number} is confined to {', '.join(task.scopes[:3]) or 'what it began with'}; {', '.join(paths[:3])} lies outside.",
        next_step="Leave it, or add a task for it.",
        path=", ".join(paths[:3]),
        held="",
        lease="",
        holder="",
        task=task.id,
        number=task.number,
        epoch=task.epoch,
        ttl_ms=0,
    )
