"""Claiming: the one transaction in which authority is granted.

Under the repository's lock, in this order: end what lapsed, drain what ended, read candidates,
let the model decide, write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lessor.errors import NotFoundError
from lessor.ids import token_hash
from lessor.model.branch import branch_for
from lessor.model.claiming import RESERVATION_MS, Candidate, Park, is_starved
from lessor.model.label import Label, format_label
from lessor.model.shadow import Unlanded
from lessor.service.branches import UNTITLED, free_names
from lessor.service.lapsing import end_lapsed
from lessor.service.limits import MOST_LAPSES
from lessor.service.marks import START, Mark, Marks
from lessor.service.rows import (
    CandidateRow,
    GrantRow,
    LapsedRow,
    RepositoryRow,
    SurveyRow,
    pack,
)
from lessor.service.scanning import (
    WAKE,
    WIDEST,
    Behind,
    Found,
    candidates,
    drain_and_look,
    narrow,
    scan,
)
from lessor.service.shadows import put_stands
from lessor.service.short_claims import claim_first
from lessor.service.wish import Claim
from lessor.store import TRIES, Call, RetryRule, Row, Transaction

NOWHERE = RepositoryRow(0, 0, 0, 0, 0, 1, Unlanded.IGNORE)
"""What a claim of tasks without a repository goes by."""


class Claimed(NamedTuple):
    """What a claim got in one transaction.

    Attributes:
        behind: where it has to go on before it knows that there is nothing; else None.
    """

    grants: list[GrantRow]
    behind: Behind | None


class _Place(NamedTuple):
    """The repository under its lock, as a claim met it.

    Attributes:
        began: where `rows`, the first window, begins.
        more: ended leases, lapsed ones or due tasks are left for the next transaction.
    """

    repository: RepositoryRow
    survey: SurveyRow
    rows: list[CandidateRow]
    began: Mark
    more: bool


def claim_locked(
    tx: Transaction, claim: Claim, *, marks: Marks, patient: bool, behind: Behind | None = None
) -> Claimed | None:
    """Claim under the repository's lock; an empty answer is final where it names nothing behind.

    Args:
        patient: wait for the repository's lock; else None says that it is busy.
        behind: where an earlier transaction of the same claim stopped.

    Raises:
        NotFoundError: the repository isn't registered.
        RetryRule: a task changed between its reading and the guarded write.
    """
    if not patient and not tx.rows("lock_repository_or_skip", repository_id=claim.repository):
        return None
    if not marks.used and behind is None:
        first = claim_first(tx, claim)
        if first:
            return Claimed(first, None)
    place = _enter(tx, claim, marks, behind=behind)
    look = partial(
        scan,
        tx,
        claim,
        place.rows,
        began=place.began,
        behind=behind,
        repository=place.repository,
    )
    found = look()
    if marks.used and not claim.repository:
        found = _untaken(tx, found, place.rows, look)
    if found.freed:
        marks.forget()
    granted = _write(tx, claim, place, found)
    _note(marks, claim, found)
    if granted or found.behind:
        return Claimed(granted, found.behind)
    if place.more:
        return Claimed([], Behind(START))
    # The drain passes over a lease whose row somebody has locked, as a late writer does: what it
    # would free isn't nothing.
    here = claim.repository
    late = here and tx.rows("left_ended", repository_id=here)
    return Claimed([], Behind(START, late=True) if late else None)


def _untaken(
    tx: Transaction, found: Found, rows: Sequence[CandidateRow], look: Callable[..., Found]
) -> Found:
    """What nobody else is about to take, with its tasks locked; else `found`, which is waited for.

    Locked one by one, the first ones would be gone by then, too: where no limit chooses among them,
    as many as are wanted are locked out of the whole window. A task's own hold is locked before the
    task, in the write.
    """
    first, taken, held = found, frozenset[int](), frozenset[int]()
    for _ in range(TRIES):
        if not found.grants:
            break
        wanted = {
            grant.task: (grant.rank, grant.task) for grant in found.grants if not grant.has_own
        }
        if held >= wanted.keys():
            return found
        window = (
            [] if found.limited else [r for r in rows if r.task_id not in taken and not r.has_own]
        )
        offered = wanted | {row.task_id: (row.rank, row.task_id) for row in window}
        asked = {"tasks": pack(sorted(offered)), "most": len(wanted)}
        got = [row[0] for row in tx.rows("lock_untaken", **asked)]
        held |= set(got)
        if held >= wanted.keys():
            return found
        last = offered[got[-1]] if len(got) == len(wanted) else max(offered.values())
        taken |= {task for task, at in offered.items() if task not in held and at <= last}
        found = look(taken=taken)
    return first


def _note(marks: Marks, claim: Claim, found: Found) -> None:
    """Remember how far the scan got, unless it was for one task or limits passed others over."""
    if claim.only:
        return
    if not found.grants:
        marks.forget(claim.lane)
    elif not found.limited:
        last = found.grants[-1]
        marks.reach(claim.lane, (last.rank, last.task))


def _enter(tx: Transaction, claim: Claim, marks: Marks, *, behind: Behind | None) -> _Place:
    """Lock, drain, read candidates: one round trip where nothing fell due and nothing ran out.

    What becomes ready here may lie before the mark of any lane.
    """
    began = claim.only or (behind.mark if behind else marks.start(claim.lane))
    wake = WIDEST if behind else WAKE
    lock, surveyed, rows = tx.batch(
        ("lock_repository", {"repository_id": claim.repository}),
        *drain_and_look(claim, mark=began, wake=wake),
    )
    if claim.repository and not lock:
        raise NotFoundError("The repository isn't registered.", next_step="Register it first.")
    survey = SurveyRow._make(surveyed[0])
    more = bool(survey.undrained)
    if survey.due or survey.lapsed or survey.woken:
        marks.forget()
    if survey.due or survey.lapsed:
        more = _freshen(tx, claim, most=wake) or more
        began = claim.only or START
        surveyed, rows = tx.batch(*drain_and_look(claim, mark=began, wake=wake))
        again = SurveyRow._make(surveyed[0])
        more = more or bool(again.undrained)
        survey = again._replace(drained=survey.drained + again.drained)
    elif survey.woken and began not in {claim.only, START}:
        began = START
        (rows,) = tx.batch(candidates(claim, mark=began, most=narrow(claim)))
    repository = RepositoryRow._make(lock[0]) if lock else NOWHERE
    return _Place(repository, survey, [CandidateRow._make(row) for row in rows], began, more)


def _freshen(tx: Transaction, claim: Claim, *, most: int) -> bool:
    """Make ready what fell due, and end what ran out; whether there may be more of it."""
    here = {"repository_id": claim.repository}
    due, lapsed = tx.batch(
        ("promote_due", {**here, "most": most}),
        ("lapsed_leases", {**here, "most": MOST_LAPSES}),
    )
    if lapsed:
        end_lapsed(tx, [LapsedRow._make(row) for row in lapsed])
    return len(due) == most or len(lapsed) == MOST_LAPSES


def _write(tx: Transaction, claim: Claim, place: _Place, found: Found) -> list[GrantRow]:
    repository, survey, now = place.repository, place.survey, found.now
    calls: list[Call] = []
    own = [grant.task for grant in found.grants if grant.has_own]
    fence = repository.fence + len(found.grants)
    if own:
        calls.append(("end_own", {"tasks": pack(own), "at_ms": now}))
    if found.grants:
        calls += put_stands(found.stands)
        calls.append(("claim_write", _writes(tx, claim, repository, now, found.grants)))
    elif survey.drained:
        calls.append(("turn_repository", {"repository_id": claim.repository}))
    if found.parks:
        calls.append(_parks(fence, now, found.parks))
    if survey.parked is not None and _starves(survey, found.grants, fence, now):
        turn = {
            "repository_id": claim.repository,
            "task_id": survey.parked,
            "fence": fence,
            "at_ms": now,
            "ttl_ms": RESERVATION_MS,
        }
        calls += [("lock_queue", {"task_id": survey.parked}), ("reserve", turn)]
    # An empty answer leaves the commit to the caller: it may have more to say, or take all back.
    answers = tx.finish(*calls) if found.grants else tx.batch(*calls)
    granted = _granted(calls, answers)
    if len(granted) != len(found.grants):
        raise RetryRule
    return granted


def _parks(fence: int, now: int, parks: Sequence[Park]) -> Call:
    rows = [
        {"task_id": p.task, "lease_id": p.lease, "behind": p.behind, "passed": int(not p.shadow)}
        for p in parks
    ]
    return "park_tasks", {"fence": fence, "at_ms": now, "parks": pack(rows)}


def _granted(calls: Sequence[Call], answers: Sequence[Sequence[Row]]) -> list[GrantRow]:
    for (name, _), rows in zip(calls, answers, strict=True):
        if name == "claim_write":
            return [GrantRow._make(row) for row in rows]
    return []


def _starves(survey: SurveyRow, grants: Sequence[Candidate], fence: int, now: int) -> bool:
    return (
        not survey.reserved
        and now > 0
        and all(grant.task != survey.parked for grant in grants)
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
    tx: Transaction, claim: Claim, repository: RepositoryRow, now: int, grants: Sequence[Candidate]
) -> dict[str, object]:
    branches = _branches(tx, claim, grants)
    return {
        **claim.identity(),
        "repository_id": claim.repository,
        "term": repository.term,
        "ttl_ms": claim.terms.ttl_ms,
        "at_ms": now,
        "fence": repository.fence + (len(grants) if claim.repository else 0),
        "grants": pack(
            [
                _grant_row(claim, repository, place, candidate, branch=branches[place])
                for place, candidate in enumerate(grants)
            ]
        ),
    }


def _branches(tx: Transaction, claim: Claim, grants: Sequence[Candidate]) -> list[str | None]:
    """Each granted task's branch: its own from an earlier epoch or as asked for, else a new name."""
    if not claim.repository:
        return [None] * len(grants)
    names: dict[int, str] = {
        c.task: c.branch
        or branch_for(kind=claim.worker.kind, number=c.number, title=c.title, fallback=UNTITLED)
        for c in grants
    }
    new = [c.task for c in grants if c.branch is None]
    if claim.careful and new:
        free = free_names(tx, [names[task] for task in new], repository=claim.repository)
        names.update(zip(new, free, strict=True))
    return [names[c.task] for c in grants]


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
