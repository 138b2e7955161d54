"""Claiming: the one transaction in which authority is granted.

Under the repository's lock, in this order: end what lapsed, drain what ended, read candidates,
let the model decide, write. Tasks without a repository go by one statement where it can be done.
"""

from __future__ import annotations

from collections.abc import Sequence

from lessor.errors import NotFoundError
from lessor.ids import token_hash
from lessor.model.branch import branch_for
from lessor.model.claiming import RESERVATION_MS, Candidate, Decision, Room, decide, is_starved
from lessor.model.label import Label, format_label
from lessor.service.blockers import find_glob_blockers, parse_candidate_scopes
from lessor.service.branches import free_names
from lessor.service.lapsing import end_lapsed
from lessor.service.limits import MOST_LAPSES, room_for
from lessor.service.marks import START, Marks
from lessor.service.rows import (
    CandidateRow,
    GrantRow,
    LapsedRow,
    ParkedRow,
    RepositoryRow,
    pack,
)
from lessor.service.wish import Claim
from lessor.store import Call, RetryRule, Row, Store, Transaction

WAKE = 32
EXTRA = 8
WIDEST = 512
ROUNDS = 40


def claim_free(store: Store, claim: Claim, *, mark: tuple[int, int]) -> list[GrantRow]:
    """Claim tasks without a repository by one statement; nothing where limits are set."""
    rank, task = mark
    hashes = [token_hash(claim.token(place)) for place in range(claim.request.wanted)]
    rows = store.once(
        "claim_free",
        **claim.identity(),
        mark_rank=rank,
        mark_id=task,
        wanted=claim.request.wanted,
        token_hashes=pack(hashes),
        ttl_ms=claim.terms.ttl_ms,
        hold_ms=claim.terms.max_hold_ms,
        label_head=f"owner={claim.worker.agent};branch=none;env=none;task=",
    )
    return [GrantRow._make(row) for row in rows]


def claim_locked(
    tx: Transaction, claim: Claim, *, marks: Marks, patient: bool
) -> list[GrantRow] | None:
    """Claim under the repository's lock, in rounds: each parks what it finds blocked.

    Args:
        patient: wait for the repository's lock; else None says that it is busy.

    Raises:
        NotFoundError: the repository isn't registered.
        RetryRule: a task changed between its reading and the guarded write.
    """
    if not patient and not tx.rows("lock_repository_or_skip", repository_id=claim.repository):
        return None
    began = claim.only or marks.start(claim.lane)
    repository, rows, parked = _enter(tx, claim, mark=began)
    most = _narrow(claim)
    for _ in range(ROUNDS):
        decision, now = _decide(tx, claim, rows)
        end = len(rows) < most
        if decision.grants or claim.only or (end and began == START):
            granted = _write(tx, claim, repository, decision, parked, now=now)
            _note(marks, claim, rows, decision)
            return granted
        if decision.parks:
            tx.rows("claim_write", **_writes(tx, claim, repository, now, decision))
        if end:  # nothing behind the mark: before it something may have become ready
            began = mark = START
            most = _narrow(claim)
        else:
            mark = (rows[-1].rank, rows[-1].task_id + 1)
            most = WIDEST
        rows = _candidates(tx, claim, mark=mark, most=most)
    return []


def _note(marks: Marks, claim: Claim, rows: Sequence[CandidateRow], decision: Decision) -> None:
    """Remember how far the scan got, unless it was for one task or limits passed others over."""
    if claim.only:
        return
    if not decision.grants:
        marks.forget(claim.lane)
    elif not rows[0].limited:
        last = decision.grants[-1]
        marks.reach(claim.lane, (last.rank, last.task))


def _enter(
    tx: Transaction, claim: Claim, *, mark: tuple[int, int]
) -> tuple[RepositoryRow, list[CandidateRow], ParkedRow | None]:
    """Lock, end what lapsed, drain, read candidates: one round trip where nothing had lapsed."""
    here = {"repository_id": claim.repository}
    lock, promoted, lapsed, *look = tx.batch(
        ("lock_repository", here),
        ("promote_due", {"most": WAKE}),
        ("lapsed_leases", {**here, "most": MOST_LAPSES}),
        *_look(claim, mark=mark),
    )
    if claim.repository and not lock:
        raise NotFoundError("The repository isn't registered.", next_step="Register it first.")
    if lapsed:
        end_lapsed(tx, [LapsedRow._make(row) for row in lapsed])
    woken = look[0][0][1]
    if lapsed or (mark not in {claim.only, START} and (promoted or woken)):
        look = tx.batch(*_look(claim, mark=claim.only or START))
    repository = RepositoryRow._make(lock[0]) if lock else RepositoryRow(0, 0, 0, 0, 0, 1)
    _, candidates, parked = look
    return (
        repository,
        [CandidateRow._make(row) for row in candidates],
        ParkedRow._make(parked[0]) if parked else None,
    )


def _look(claim: Claim, *, mark: tuple[int, int]) -> list[Call]:
    here = {"repository_id": claim.repository}
    return [
        ("drain", {**here, "most": MOST_LAPSES, "wake": WAKE}),
        ("candidates", _scan(claim, mark=mark, most=_narrow(claim))),
        ("oldest_parked", here),
    ]


def _narrow(claim: Claim) -> int:
    return 1 if claim.only else claim.request.wanted + EXTRA


def _scan(claim: Claim, *, mark: tuple[int, int], most: int) -> dict[str, object]:
    return {
        "queue": claim.queue,
        "repository_id": claim.repository,
        "worker_id": claim.worker_row,
        "kind": claim.worker.kind,
        "capabilities": pack(claim.worker.capabilities),
        "mark_rank": mark[0],
        "mark_id": mark[1],
        "most": most,
        "with_scopes": int(claim.request.wanted > 1),
    }


def _candidates(
    tx: Transaction, claim: Claim, *, mark: tuple[int, int], most: int
) -> list[CandidateRow]:
    return [
        CandidateRow._make(row)
        for row in tx.rows("candidates", **_scan(claim, mark=mark, most=most))
    ]


def _decide(tx: Transaction, claim: Claim, rows: list[CandidateRow]) -> tuple[Decision, int]:
    """What the model says of these candidates, and the clock as it read after the last lock."""
    now = rows[0].now if rows else 0
    if not rows or (claim.only and rows[0].task_id != claim.only[1]):
        return Decision(grants=[], parks=[]), now
    room = Room()
    if rows[0].limited:
        room, later = room_for(tx, claim, rows)
        now = max(now, later)
    globs = rows[0].live_globs or any(row.globs for row in rows)
    decision = decide(
        [_candidate(row) for row in rows],
        wanted=claim.request.wanted,
        room=room,
        glob_blockers=find_glob_blockers(tx, [row.task_id for row in rows]) if globs else {},
    )
    return decision, now


def _candidate(row: CandidateRow) -> Candidate:
    return Candidate(
        task=row.task_id,
        epoch=row.epoch,
        rank=row.rank,
        number=row.number,
        title=row.title,
        branch=row.branch,
        limit_key=row.limit_key,
        progress=bool(row.progress),
        has_own=bool(row.has_own),
        blocker=row.blocker,
        scopes=parse_candidate_scopes(row.scopes) if row.scopes else (),
    )


def _write(
    tx: Transaction,
    claim: Claim,
    repository: RepositoryRow,
    decision: Decision,
    parked: ParkedRow | None,
    *,
    now: int,
) -> list[GrantRow]:
    calls: list[Call] = []
    own = [grant.task for grant in decision.grants if grant.has_own]
    if own:
        calls.append(("end_own", {"tasks": pack(own), "at_ms": now}))
    if decision.grants or decision.parks:
        calls.append(("claim_write", _writes(tx, claim, repository, now, decision)))
    if parked is not None and _starves(repository, parked, now, decision):
        turn = {
            "repository_id": claim.repository,
            "task_id": parked.task_id,
            "fence": repository.fence + len(decision.grants),
            "at_ms": now,
            "ttl_ms": RESERVATION_MS,
        }
        calls += [("lock_queue", {"task_id": parked.task_id}), ("reserve", turn)]
    # An empty answer leaves the commit to the caller: it may have more to say, or take all back.
    answers = tx.finish(*calls) if decision.grants else tx.batch(*calls)
    granted = _granted(calls, answers)
    if len(granted) != len(decision.grants):
        raise RetryRule
    return granted


def _granted(calls: Sequence[Call], answers: Sequence[Sequence[Row]]) -> list[GrantRow]:
    for (name, _), rows in zip(calls, answers, strict=True):
        if name == "claim_write":
            return [GrantRow._make(row) for row in rows if row[0] is not None]
    return []


def _starves(repository: RepositoryRow, parked: ParkedRow, now: int, decision: Decision) -> bool:
    return (
        not parked.reserved
        and now > 0
        and is_starved(
            fence=repository.fence + len(decision.grants),
            now=now,
            parked_fence=parked.parked_fence,
            parked_ms=parked.parked_ms,
            limit=parked.overtake_limit,
            limit_ms=parked.overtake_ms,
        )
    )


def _writes(
    tx: Transaction, claim: Claim, repository: RepositoryRow, now: int, decision: Decision
) -> dict[str, object]:
    branches = _branches(tx, claim, decision)
    return {
        **claim.identity(),
        "repository_id": claim.repository,
        "term": repository.term,
        "ttl_ms": claim.terms.ttl_ms,
        "at_ms": now,
        "fence": repository.fence + (len(decision.grants) if claim.repository else 0),
        "wanted": len(decision.grants),
        "grants": pack(
            [
                _grant_row(claim, repository, place, candidate, branch=branches[place])
                for place, candidate in enumerate(decision.grants)
            ]
        ),
        "parks": pack(
            [{"task_id": p.task, "lease_id": p.lease, "behind": p.behind} for p in decision.parks]
        ),
    }


def _branches(tx: Transaction, claim: Claim, decision: Decision) -> list[str | None]:
    """Each granted task's branch: its own from an earlier epoch or as asked for, else a new name."""
    if not claim.repository:
        return [None] * len(decision.grants)
    names: dict[int, str] = {
        c.task: c.branch
        or branch_for(kind=claim.worker.kind, number=c.number, title=c.title, fallback="task")
        for c in decision.grants
    }
    new = [c.task for c in decision.grants if c.branch is None]
    if claim.careful and new:
        free = free_names(tx, [names[task] for task in new], repository=claim.repository)
        names.update(zip(new, free, strict=True))
    return [names[c.task] for c in decision.grants]


def _grant_row(
    claim: Claim, repository: RepositoryRow, place: int, candidate: Candidate, *, branch: str | None
) -> dict[str, object]:
    label = Label(
        owner=claim.worker.agent,
        branch=branch or "none",
        env="none",
        task=str(candidate.number),
        epoch=candidate.epoch + 1,
    )
    return {
        "ord": place,
        "task_id": candidate.task,
        "epoch": candidate.epoch,
        "token_hash": token_hash(claim.token(place)),
        "branch": branch,
        "label": format_label(label),
        "fence": repository.fence + place + 1 if claim.repository else 0,
        "hold_ms": claim.terms.max_hold_ms if candidate.progress else claim.terms.ttl_ms,
    }
