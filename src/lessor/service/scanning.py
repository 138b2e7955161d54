"""What a claim looks at under the lock: the ready tasks in order, window by window.

A task that is found blocked is parked, and no later scan meets it; a key without room is left out of
the windows that follow. So each window brings the scan on, and nothing is answered while something
could be granted. The lock isn't held for as long as that may take: after so many tasks the scan says
where it stopped, and the claim goes on there in its next transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lessor.model.claiming import Candidate, Park, Room, decide
from lessor.model.shadow import Shadow, Unlanded
from lessor.service.blockers import find_glob_blockers, parse_candidate_scopes
from lessor.service.limits import MOST_LAPSES, Limits, room_for
from lessor.service.marks import START, Mark
from lessor.service.rows import CandidateRow, RepositoryRow, pack
from lessor.service.shadows import find_shadows
from lessor.service.wish import Claim
from lessor.store import Call, Transaction

WAKE = 32
EXTRA = 8
WIDEST = 512
MOST_LOOKED_AT = 4_096


class Batch(NamedTuple):
    """What was chosen of a batch in the transactions before, and where its scan ends.

    Attributes:
        chosen: the tasks, in order; each is decided anew.
        until: where the scan began; once it came around, it ends there.
    """

    chosen: tuple[Mark, ...]
    until: Mark
    around: bool


class Behind(NamedTuple):
    """Where a claim's next transaction goes on.

    Attributes:
        keys: of limits that others had locked; it waits for them before it looks.
        late: ended leases that others had locked; it waits for them before it begins.
        batch: what was chosen so far of a batch that goes on: nothing of it is granted yet.
    """

    mark: Mark
    keys: frozenset[str] = frozenset()
    late: bool = False
    batch: Batch | None = None


class Found(NamedTuple):
    """What a scan found.

    Attributes:
        stands: on which results that haven't landed granted tasks begin.
        now: the clock as it read after the last lock; 0 where nothing was looked at.
        limited: whether tasks before the last granted one were passed over, and stay unparked.
        freed: whether leases that ran out elsewhere were ended.
        behind: where to go on; None when everything was looked at, or enough was found.
    """

    grants: list[Candidate]
    parks: list[Park]
    stands: Mapping[int, Shadow]
    now: int
    limited: bool
    freed: bool
    behind: Behind | None


def narrow(claim: Claim) -> int:
    """How many tasks a claim looks at first."""
    return 1 if claim.only else claim.request.wanted + EXTRA


def drain_and_look(claim: Claim, *, mark: Mark, wake: int = WAKE) -> list[Call]:
    """Free what ended, and read the first window."""
    here = {"repository_id": claim.repository, "most": MOST_LAPSES, "wake": wake}
    return [("drain", here), candidates(claim, mark=mark, most=narrow(claim))]


def candidates(claim: Claim, *, mark: Mark, most: int, full: Sequence[str] = ()) -> Call:
    """The call for `most` ready tasks from `mark` on, without those of the keys that are `full`."""
    return (
        "candidates",
        {
            "queue": claim.queue,
            "repository_id": claim.repository,
            "worker_id": claim.worker_row,
            "kind": claim.worker.kind,
            "capabilities": pack(claim.worker.capabilities),
            "full_keys": pack(list(full)),
            "mark_rank": mark[0],
            "mark_id": mark[1],
            "most": most,
            "with_scopes": int(claim.request.wanted > 1),
        },
    )


def scan(
    tx: Transaction,
    claim: Claim,
    rows: list[CandidateRow],
    *,
    began: Mark,
    behind: Behind | None,
    repository: RepositoryRow,
    taken: frozenset[int] = frozenset(),
) -> Found:
    """Decide over the ready tasks from `began` to the end, then over those before it.

    Args:
        rows: the first window, as it was read in the round trip that took the lock.
        behind: where an earlier transaction of this claim stopped.
        taken: tasks that others are about to take; they are passed over.
    """
    keys = behind.keys if behind else frozenset[str]()
    windows = _Windows(tx, claim, keys=keys, repository=repository)
    most, mark = narrow(claim), began
    around = began == START
    left = MOST_LOOKED_AT
    if behind and behind.batch:
        if began == behind.mark:
            around, began = behind.batch.around, behind.batch.until
            rows = _before(rows, began if around else None)
            windows.choose_again(behind.batch)
        else:
            windows.settle_for_less()  # it began anew: what else became ready comes first
    while True:
        left -= windows.decide([row for row in rows if row.task_id not in taken], mark=mark)
        if windows.has_enough() or (around and len(rows) < most):
            return windows.found()
        if len(rows) < most:  # nothing behind the mark: before it something may have become ready
            around, mark, most = True, START, narrow(claim)
        else:
            mark, most = (rows[-1].rank, rows[-1].task_id + 1), WIDEST
        if left <= 0:
            return windows.cut(mark, began=began, around=around)
        rows = windows.read(mark=mark, most=most, until=began if around else None)


class _Windows:
    """The windows of one transaction, and what was decided over them."""

    def __init__(
        self, tx: Transaction, claim: Claim, *, keys: frozenset[str], repository: RepositoryRow
    ) -> None:
        self._tx = tx
        self._claim = claim
        self._keys = keys
        self._floor = repository.floor_ms
        self._unlanded = Unlanded(repository.unlanded) if claim.begins_work else Unlanded.IGNORE
        self._grants: list[Candidate] = []
        self._parks: list[Park] = []
        self._stands: dict[int, Shadow] = {}
        self._full: set[str] = set()
        self._locked = False
        self._closed = False
        self._limited = False
        self._freed = False
        self._busy: Behind | None = None
        self._goes_on = True
        self._chosen_before = False
        self._now = 0

    def choose_again(self, batch: Batch) -> None:
        """Decide anew over what earlier transactions chose of the batch: it may be gone, or held."""
        calls = [candidates(self._claim, mark=mark, most=1) for mark in batch.chosen]
        found = [CandidateRow._make(row) for rows in self._tx.batch(*calls) for row in rows]
        chosen = set(batch.chosen)
        self._chosen_before = True
        self.decide([row for row in found if (row.rank, row.task_id) in chosen], mark=START)

    def settle_for_less(self) -> None:
        """Let the batch be granted as it is, where it can't be looked for in this transaction alone."""
        self._goes_on = False

    def read(self, *, mark: Mark, most: int, until: Mark | None) -> list[CandidateRow]:
        """The window from `mark` on, and before `until`."""
        name, asked = candidates(self._claim, mark=mark, most=most, full=sorted(self._full))
        return _before([CandidateRow._make(row) for row in self._tx.rows(name, **asked)], until)

    def decide(self, rows: Sequence[CandidateRow], *, mark: Mark) -> int:
        """Let the model decide over a window, and how many tasks it parks.

        What was granted before takes paths and room. Whoever a limit passes over isn't counted: its
        key is left out of the next window.
        """
        if not rows or (self._claim.only and rows[0].task_id != self._claim.only[1]):
            return 0
        self._now = max(self._now, rows[0].now, self._floor)
        limits = self._limits(rows, mark=mark)
        globs = rows[0].live_globs or any(row.globs for row in rows)
        shadows: Mapping[int, tuple[Shadow, ...]] = {}
        if rows[0].shadowed and self._unlanded is not Unlanded.IGNORE:
            free = [row.task_id for row in rows if row.blocker is None]
            shadows = find_shadows(self._tx.rows, free)
        decision = decide(
            [_candidate(row, shadows.get(row.task_id, ())) for row in rows],
            wanted=self._claim.request.wanted,
            room=limits.room,
            glob_blockers=find_glob_blockers(self._tx, [r.task_id for r in rows]) if globs else {},
            unlanded=self._unlanded,
            earlier=self._grants,
        )
        self._grants += decision.grants
        self._parks += decision.parks
        self._stands |= decision.stands
        self._closed = limits.room.is_closed()
        self._full |= limits.room.full_keys()
        return len(decision.parks)

    def has_enough(self) -> bool:
        """Whether there is no more to be had."""
        enough = len(self._grants) >= self._claim.request.wanted
        return enough or self._closed or self._claim.only is not None

    def found(self) -> Found:
        """Everything, as it is to be written."""
        behind = None if self._grants else self._busy
        if self._chosen_before and not self._grants:
            behind = behind or Behind(START)  # others took it all: what waited for it may be free
        return self._found(self._grants, self._parks, behind)

    def cut(self, mark: Mark, *, began: Mark, around: bool) -> Found:
        """As it is to be written where `mark` was reached: what is parked is, and nothing is granted yet.

        Tasks that wait for the batch itself can't be parked before it is granted, and would be met
        again: where they are more than the others, the next transaction goes on behind them.
        """
        waits = [park for park in self._parks if park.behind is None]
        keys = self._keys if self._busy is None else self._busy.keys
        if self._grants and 2 * len(waits) < len(self._parks):
            if not self._goes_on:
                return self.found()
            chosen = tuple((grant.rank, grant.task) for grant in self._grants)
            batch = Batch(chosen, until=began, around=around)
            return self._found([], waits, Behind(mark, keys, batch=batch))
        first = min(((g.rank, g.task) for g in self._grants), default=mark)
        return self._found([], waits, Behind(first if self._grants else mark, keys))

    def _found(self, grants: list[Candidate], parks: list[Park], behind: Behind | None) -> Found:
        stands = self._stands if grants else {}
        limited = self._limited or self._chosen_before  # some before the last granted aren't parked
        return Found(grants, parks, stands, self._now, limited, self._freed, behind)

    def _limits(self, rows: Sequence[CandidateRow], *, mark: Mark) -> Limits:
        if not rows[0].limited:
            return Limits(Room(), 0, freed=False, busy=frozenset())
        limits = room_for(self._tx, self._claim, rows, keys=self._keys, first=not self._locked)
        self._locked = self._limited = True
        self._freed = self._freed or limits.freed
        self._now = max(self._now, limits.now)
        if limits.busy and self._busy is None:
            at = next(((r.rank, r.task_id) for r in rows if r.limit_key in limits.busy), mark)
            self._busy = Behind(at, self._keys | limits.busy)
        return limits


def _before(rows: list[CandidateRow], until: Mark | None) -> list[CandidateRow]:
    if until is None or until == START:
        return rows
    return [row for row in rows if (row.rank, row.task_id) < until]


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
