"""Claiming: the one transaction in which authority is granted.

Under the repository's lock, in this order: end what lapsed, drain what ended, read candidates,
let the model decide, write. Tasks without a repository go by one statement where it can be done.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from lessor.errors import GrantOverError, NotFoundError, RequestReusedError
from lessor.ids import token_hash
from lessor.model.branch import branch_for
from lessor.model.claiming import RESERVATION_MS, Candidate, Decision, Room, decide, is_starved
from lessor.model.grant import ClaimRequest, Grant
from lessor.model.label import Label, format_label
from lessor.model.lease import LeaseTerms
from lessor.model.worker import Worker
from lessor.service.blockers import find_glob_blockers, parse_candidate_scopes
from lessor.service.granting import grant_of
from lessor.service.lapsing import end_lapsed
from lessor.service.marks import START, Marks
from lessor.service.naming import Naming
from lessor.service.rows import (
    CandidateRow,
    GrantRow,
    LapsedRow,
    ParkedRow,
    RepositoryRow,
    pack,
    pack_facts,
)
from lessor.store import Call, RetryRule, Row, Store, Transaction

WAKE = 32
MOST_LAPSES = 100
EXTRA = 8
WIDEST = 512
ROUNDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A checked request: rows instead of ids, terms instead of wishes."""

    request: ClaimRequest
    worker: Worker
    worker_row: int
    terms: LeaseTerms
    repository: int
    only: tuple[int, int] | None  # (rank, task): where the scan starts when one task is asked for

    @property
    def digest(self) -> str:
        """What the same request id has to come with again."""
        r = self.request
        text = f"{r.worker}|{r.queue}|{r.repository}|{r.task}|{r.wanted}|{r.ttl_ms}|{r.max_hold_ms}"
        return hashlib.sha256(text.encode()).hexdigest()

    def token(self, place: int) -> str:
        """The token of the `place`-th grant: from the caller's secret, so that a retry has it too."""
        text = f"{self.request.request_id}:{place}".encode()
        return hmac.new(self.request.secret.encode(), text, hashlib.sha256).hexdigest()


def claim_free(store: Store, claim: Claim, *, mark: tuple[int, int]) -> list[GrantRow]:
    """Claim tasks without a repository by one statement; nothing where limits are set."""
    rank, task = mark
    hashes = [token_hash(claim.token(place)) for place in range(claim.request.wanted)]
    rows = store.once(
        "claim_free",
        **_identity(claim),
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
    mark = claim.only or marks.start(claim.request.queue, claim.repository)
    repository, rows, parked = _enter(tx, claim, mark=mark)
    most = _narrow(claim)
    for _ in range(ROUNDS):
        decision = _decide(tx, claim, rows)
        if decision.grants or len(rows) < most or claim.only:
            granted = _write(tx, claim, repository, rows, decision, parked)
            marks.note(claim.request.queue, claim.repository, decision)
            return granted
        tx.rows("claim_write", **_writes(claim, repository, rows[0].now, decision))
        most = WIDEST
        rows = _candidates(tx, claim, mark=(rows[-1].rank, rows[-1].task_id + 1), most=most)
    return []


def answer_again(store: Store, claim: Claim) -> list[GrantRow]:
    """The grants of a request that was answered before; none where it wasn't.

    Raises:
        RequestReusedError: the id came with another request.
        GrantOverError: every one of its grants has ended.
    """
    seen = store.read(
        "request_seen", actor=claim.request.worker, request_id=claim.request.request_id
    )
    if not seen:
        return []
    digest, answer = seen[0]
    if digest != claim.digest:
        raise RequestReusedError(
            "This request id was used for another request.",
            next_step="Make a new id for a new request; repeat one only to retry it.",
            request_id=claim.request.request_id,
        )
    rows = [GrantRow._make(row) for row in store.read("grants", leases=answer)]
    if all(row.ended_ms is not None or row.now >= row.expires_ms for row in rows):
        raise GrantOverError(
            "What this request was granted has ended.",
            next_step="Claim again with a new request id.",
            request_id=claim.request.request_id,
        )
    return rows


def grants_of(rows: Sequence[GrantRow], claim: Claim, naming: Naming) -> list[Grant]:
    """The rows of one claim, in the order of their tokens, as grants."""
    return [
        grant_of(row, worker=claim.request.worker, token=claim.token(place), naming=naming)
        for place, row in enumerate(rows)
    ]


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
        "queue": claim.request.queue,
        "repository_id": claim.repository,
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


def _decide(tx: Transaction, claim: Claim, rows: list[CandidateRow]) -> Decision:
    if not rows:
        return Decision(grants=[], parks=[], passed=False)
    if claim.only and rows[0].task_id != claim.only[1]:
        return Decision(grants=[], parks=[], passed=True)
    globs = rows[0].live_globs or any(row.globs for row in rows)
    return decide(
        [_candidate(row) for row in rows],
        wanted=claim.request.wanted,
        room=_room(tx, claim, rows) if rows[0].limited else Room(),
        glob_blockers=find_glob_blockers(tx, [row.task_id for row in rows]) if globs else {},
    )


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


def _room(tx: Transaction, claim: Claim, rows: list[CandidateRow]) -> Room:
    """What the limits leave, counted under their locks: two claims never count the same room."""
    keys = pack(sorted({row.limit_key for row in rows if row.limit_key is not None}))
    asked = {"queue": claim.request.queue, "agent": claim.worker.agent, "keys": keys}
    _, usage = tx.batch(("lock_limits", asked), ("limit_usage", asked))
    room = Room()
    for kind, key, maximum, holding in usage:
        if kind == "queue":
            room.queue = maximum - holding
        elif kind == "agent":
            room.agent = maximum - holding
        else:
            room.keys[key] = maximum - holding
    return room


def _write(
    tx: Transaction,
    claim: Claim,
    repository: RepositoryRow,
    rows: list[CandidateRow],
    decision: Decision,
    parked: ParkedRow | None,
) -> list[GrantRow]:
    now = rows[0].now if rows else 0
    calls: list[Call] = []
    own = [grant.task for grant in decision.grants if grant.has_own]
    if own:
        calls.append(("end_own", {"tasks": pack(own), "at_ms": now}))
    if decision.grants or decision.parks:
        calls.append(("claim_write", _writes(claim, repository, now, decision)))
    if parked is not None and _starves(repository, parked, now, decision):
        fence = repository.fence + len(decision.grants)
        calls.append(
            (
                "reserve",
                {
                    "repository_id": claim.repository,
                    "task_id": parked.task_id,
                    "fence": fence,
                    "at_ms": now,
                    "ttl_ms": RESERVATION_MS,
                },
            )
        )
    answers = tx.finish(*calls)
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
    claim: Claim, repository: RepositoryRow, now: int, decision: Decision
) -> dict[str, object]:
    return {
        **_identity(claim),
        "repository_id": claim.repository,
        "term": repository.term,
        "ttl_ms": claim.terms.ttl_ms,
        "at_ms": now,
        "fence": repository.fence + (len(decision.grants) if claim.repository else 0),
        "wanted": len(decision.grants),
        "grants": pack(
            [_grant_row(claim, repository, place, c) for place, c in enumerate(decision.grants)]
        ),
        "parks": pack(
            [{"task_id": p.task, "lease_id": p.lease, "behind": p.behind} for p in decision.parks]
        ),
    }


def _grant_row(
    claim: Claim, repository: RepositoryRow, place: int, candidate: Candidate
) -> dict[str, object]:
    branch = candidate.branch
    if branch is None and claim.repository:
        branch = branch_for(
            kind=claim.worker.kind, number=candidate.number, title=candidate.title, fallback="task"
        )
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


def _identity(claim: Claim) -> dict[str, object]:
    return {
        "queue": claim.request.queue,
        "worker_id": claim.worker_row,
        "agent": claim.worker.agent,
        "kind": claim.worker.kind,
        "capabilities": pack(claim.worker.capabilities),
        "actor": claim.request.worker,
        "request_id": claim.request.request_id,
        "digest": claim.digest,
        "facts": pack_facts(worker=claim.request.worker, agent=claim.worker.agent),
    }
