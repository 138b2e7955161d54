"""Claiming: the one transaction in which authority is granted.

Under the repository's lock, in this order: end what lapsed, drain what ended, read candidates,
let the model decide, write. Where nothing has to be decided `short_claims` takes one round trip.
"""

from __future__ import annotations

from collections.abc import Sequence

from lessor.errors import NotFoundError
from lessor.ids import token_hash
from lessor.model.branch import branch_for
from lessor.model.claiming import RESERVATION_MS, Candidate, Decision, Room, decide, is_starved
from lessor.model.label import Label, format_label
from lessor.model.shadow import Shadow, Unlanded
from lessor.service.blockers import find_glob_blockers, parse_candidate_scopes
from lessor.service.branches import UNTITLED, free_names
from lessor.service.lapsing import end_lapsed
from lessor.service.limits import MOST_LAPSES, room_for
from lessor.service.marks import START, Marks
from lessor.service.rows import (
    CandidateRow,
    GrantRow,
    LapsedRow,
    RepositoryRow,
    SurveyRow,
    pack,
)
from lessor.service.shadows import find_shadows, put_stands
from lessor.service.wish import Claim
from lessor.store import Call, RetryRule, Row, Transaction

WAKE = 32
EXTRA = 8
WIDEST = 512
ROUNDS = 40


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
    repository, rows, survey = _enter(tx, claim, marks, mark=began)
    most = _narrow(claim)
    unlimited = True
    for _ in range(ROUNDS):
        decision, now = _decide(tx, claim, repository, rows, marks=marks, first=unlimited)
        unlimited = unlimited and not rows
        end = len(rows) < most
        if decision.grants or claim.only or (end and began == START):
            granted = _write(tx, claim, repository, decision, survey, now=now)
            _note(marks, claim, rows, decision)
            return granted
        if decision.parks:
            tx.batch(_parks(repository.fence, now, decision))
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
    tx: Transaction, claim: Claim, marks: Marks, *, mark: tuple[int, int]
) -> tuple[RepositoryRow, list[CandidateRow], SurveyRow]:
    """Lock, drain, read candidates: one round trip where nothing fell due and nothing ran out.

    What becomes ready here may lie before the mark of any lane.
    """
    lock, survey, candidates = tx.batch(
        ("lock_repository", {"repository_id": claim.repository}), *_look(claim, mark=mark)
    )
    if claim.repository and not lock:
        raise NotFoundError("The repository isn't registered.", next_step="Register it first.")
    found = SurveyRow._make(survey[0])
    if found.due or found.lapsed or found.woken:
        marks.forget()
    if found.due or found.lapsed:
        _freshen(tx, claim)
        first = found.drained
        survey, candidates = tx.batch(*_look(claim, mark=claim.only or START))
        found = SurveyRow._make(survey[0])
        found = found._replace(drained=found.drained + first)
    elif found.woken and mark not in {claim.only, START}:
        candidates = tx.rows("candidates", **_scan(claim, mark=START, most=_narrow(claim)))
    repository = (
        RepositoryRow._make(lock[0]) if lock else RepositoryRow(0, 0, 0, 0, 0, 1, Unlanded.IGNORE)
    )
    return repository, [CandidateRow._make(row) for row in candidates], found


def _freshen(tx: Transaction, claim: Claim) -> None:
    """Make ready what fell due, and end what ran out."""
    _, lapsed = tx.batch(
        ("promote_due", {"most": WAKE}),
        ("lapsed_leases", {"repository_id": claim.repository, "most": MOST_LAPSES}),
    )
    if lapsed:
        end_lapsed(tx, [LapsedRow._make(row) for row in lapsed])


def _look(claim: Claim, *, mark: tuple[int, int]) -> list[Call]:
    return [
        ("drain", {"repository_id": claim.repository, "most": MOST_LAPSES, "wake": WAKE}),
        ("candidates", _scan(claim, mark=mark, most=_narrow(claim))),
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


def _decide(
    tx: Transaction,
    claim: Claim,
    repository: RepositoryRow,
    rows: list[CandidateRow],
    *,
    marks: Marks,
    first: bool,
) -> tuple[Decision, int]:
    """What the model says of these candidates, and the clock as it read after the last lock."""
    now = max(rows[0].now, repository.floor_ms) if rows else 0
    if not rows or (claim.only and rows[0].task_id != claim.only[1]):
        return Decision(grants=[], parks=[]), now
    room = Room()
    if rows[0].limited:
        room, later, lapsed = room_for(tx, claim, rows, first=first)
        now = max(now, later)
        if lapsed:
            marks.forget()
    globs = rows[0].live_globs or any(row.globs for row in rows)
    unlanded = Unlanded(repository.unlanded) if claim.begins_work else Unlanded.IGNORE
    shadows: dict[int, tuple[Shadow, ...]] = {}
    if rows[0].shadowed and unlanded is not Unlanded.IGNORE:
        shadows = find_shadows(tx.rows, [row.task_id for row in rows if row.blocker is None])
    decision = decide(
        [_candidate(row, shadows.get(row.task_id, ())) for row in rows],
        wanted=claim.request.wanted,
        room=room,
        glob_blockers=find_glob_blockers(tx, [row.task_id for row in rows]) if globs else {},
        unlanded=unlanded,
    )
    return decision, now


def _candidate(row: CandidateRow, shadows: tuple[Shadow, ...]) -> Candidate:
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
        shadows=shadows,
    )


def _write(
    tx: Transaction,
    claim: Claim,
    repository: RepositoryRow,
    decision: Decision,
    survey: SurveyRow,
    *,
    now: int,
) -> list[GrantRow]:
    calls: list[Call] = []
    own = [grant.task for grant in decision.grants if grant.has_own]
    fence = repository.fence + len(decision.grants)
    if own:
        calls.append(("end_own", {"tasks": pack(own), "at_ms": now}))
    if decision.grants:
        calls += put_stands(decision.stands)
        calls.append(("claim_write", _writes(tx, claim, repository, now, decision)))
    elif survey.drained:
        calls.append(("turn_repository", {"repository_id": claim.repository}))
    if decision.parks:
        calls.append(_parks(fence, now, decision))
    if survey.parked is not None and _starves(survey, decision, fence, now):
        turn = {
            "repository_id": claim.repository,
            "task_id": survey.parked,
            "fence": fence,
            "at_ms": now,
            "ttl_ms": RESERVATION_MS,
        }
        calls += [("lock_queue", {"task_id": survey.parked}), ("reserve", turn)]
    # An empty answer leaves the commit to the caller: it may have more to say, or take all back.
    answers = tx.finish(*calls) if decision.grants else tx.batch(*calls)
    granted = _granted(calls, answers)
    if len(granted) != len(decision.grants):
        raise RetryRule
    return granted


def _parks(fence: int, now: int, decision: Decision) -> Call:
    rows = [
        {"task_id": p.task, "lease_id": p.lease, "behind": p.behind, "passed": int(not p.shadow)}
        for p in decision.parks
    ]
    return "park_tasks", {"fence": fence, "at_ms": now, "parks": pack(rows)}


def _granted(calls: Sequence[Call], answers: Sequence[Sequence[Row]]) -> list[GrantRow]:
    for (name, _), rows in zip(calls, answers, strict=True):
        if name == "claim_write":
            return [GrantRow._make(row) for row in rows]
    return []


def _starves(survey: SurveyRow, decision: Decision, fence: int, now: int) -> bool:
    return (
        not survey.reserved
        and now > 0
        and all(grant.task != survey.parked for grant in decision.grants)
        and is_starved(
            fence=fence,
            now=now,
            parked_fence=survey.parked_fence,
            parked_ms=survey.parked_ms,
            limit=survey.overtake_limit,
            limit_ms=survey.overtake_ms,
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
        "grants": pack(
            [
                _grant_row(claim, repository, place, candidate, branch=branches[place])
                for place, candidate in enumerate(decision.grants)
            ]
        ),
    }


def _branches(tx: Transaction, claim: Claim, decision: Decision) -> list[str | None]:
    """Each granted task's branch: its own from an earlier epoch or as asked for, else a new name."""
    if not claim.repository:
        return [None] * len(decision.grants)
    names: dict[int, str] = {
        c.task: c.branch
        or branch_for(kind=claim.worker.kind, number=c.number, title=c.title, fallback=UNTITLED)
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
