"""Judges a push race by the remote's own history and the store's leases, never by the product's word.

The remote logs every transaction on its references, while it holds git's locks on them ("prepared")
and after they moved ("committed"). Two that share a reference can't overlap, so that for each
reference the order of the log is the order of the moves; its reflog has to say the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from push_journal import TAKEN, Entry, Handed, Missed, Tried

from lessor.git.fence import FENCES

GONE = "0" * 40
LATEST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A reference that moved at the remote.

    Attributes:
        locked_ms: when git held the locks, before anything was moved.
        done_ms: when it had been moved.
    """

    ref: str
    old: str
    new: str
    locked_ms: int
    done_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A lease as the store's history has it.

    Attributes:
        over_ms: when it ended or ran out, whichever came first.
    """

    lease: str
    task: str
    epoch: int
    over_ms: int


@dataclass(slots=True, kw_only=True)
class Figures:
    """What a race came to.

    Attributes:
        tried: pushes that were sent.
        accepted: branches that moved at the remote.
        stale_tried: pushes whose answer came after their lease was over.
        stale_accepted: moves after another had been handed the task, or out of the epochs' order.
        live_refused: refusals of holders whose lease lived when the answer came.
        between: moves after the lease was over and before another had the task.
        faults: what was found, in words.
    """

    tried: int = 0
    accepted: int = 0
    stale_tried: int = 0
    stale_accepted: int = 0
    live_refused: int = 0
    between: int = 0
    missed_claims: int = 0
    leases: int = 0
    faults: list[str] = field(default_factory=list)


def read_log(text: str) -> list[Moved]:
    """The moves in the order of their locks; a transaction that was aborted is none."""
    open_ones: dict[tuple[str, str], int] = {}
    moves = []
    for line in text.splitlines():
        state, at_ns, old, new, ref = line.split(" ", 4)
        at_ms = int(at_ns) // 1_000_000
        if state == "prepared":
            open_ones[ref, new] = at_ms
        elif state == "aborted":
            open_ones.pop((ref, new), None)
        elif (ref, new) in open_ones:
            locked = open_ones.pop((ref, new))
            moves.append(Moved(ref=ref, old=old, new=new, locked_ms=locked, done_ms=at_ms))
    return sorted(moves, key=lambda move: move.locked_ms)


def judge(
    moves: Sequence[Moved],
    reflogs: Mapping[str, Sequence[str]],
    leases: Sequence[Lived],
    journal: Iterable[Entry],
    whose: Mapping[str, str],
    *,
    fenced: bool,
) -> Figures:
    """The figures of a race.

    Args:
        reflogs: for each branch the commits that it was moved to, oldest first.
        whose: the lease that each commit says it is of.
        fenced: each lease's reference has to be gone before the next one is handed on.
    """
    entries = list(journal)
    handed = {entry.lease: entry for entry in entries if isinstance(entry, Handed)}
    known = {lease.lease: lease for lease in leases}
    figures = Figures(leases=len(handed))
    figures.missed_claims = sum(isinstance(entry, Missed) for entry in entries)
    following = _following(leases, handed)
    tried = [entry for entry in entries if isinstance(entry, Tried)]
    sent = {entry.commit: entry for entry in tried}
    _judge_moves(figures, moves, known, following, whose, sent)
    _judge_reflogs(figures, moves, reflogs)
    _judge_answers(figures, tried, known)
    if fenced:
        _judge_fences(figures, moves, following)
    return figures


def _following(leases: Sequence[Lived], handed: Mapping[str, Handed]) -> dict[str, Handed]:
    """The next lease of the same task that was handed on, for each lease."""
    by_task: dict[str, list[Handed]] = {}
    for entry in sorted(handed.values(), key=lambda h: h.epoch):
        by_task.setdefault(entry.task, []).append(entry)
    found = {}
    for lease in leases:
        theirs = by_task[lease.task]
        place = bisect_right([h.epoch for h in theirs], lease.epoch)
        if place < len(theirs):
            found[lease.lease] = theirs[place]
    return found


def _judge_moves(
    figures: Figures,
    moves: Sequence[Moved],
    known: Mapping[str, Lived],
    following: Mapping[str, Handed],
    whose: Mapping[str, str],
    sent: Mapping[str, Tried],
) -> None:
    highest: dict[str, int] = {}
    for move in moves:
        if not move.ref.startswith("refs/heads/") or move.new not in whose:
            continue
        lease = known[whose[move.new]]
        figures.accepted += 1
        if move.new not in sent:  # taken, and its holder was told that the lease is over
            figures.tried += 1
            figures.stale_tried += 1
        heir = following.get(lease.lease)
        late = heir is not None and move.locked_ms > heir.at_ms
        backwards = lease.epoch < highest.get(move.ref, 0)
        highest[move.ref] = max(lease.epoch, highest.get(move.ref, 0))
        if late or backwards:
            figures.stale_accepted += 1
            figures.faults.append(
                f"{move.ref} moved to {move.new[:9]} of epoch {lease.epoch} at {move.locked_ms}, "
                f"after {heir.epoch if heir else highest[move.ref]} had it: {heir}"
            )
        elif move.locked_ms > lease.over_ms:
            figures.between += 1


def _judge_reflogs(
    figures: Figures, moves: Sequence[Moved], reflogs: Mapping[str, Sequence[str]]
) -> None:
    for ref, commits in reflogs.items():
        logged = [move.new for move in moves if move.ref == ref]
        if logged != list(commits):
            figures.faults.append(f"the reflog of {ref} differs from the log of transactions")


def _judge_answers(figures: Figures, tried: Sequence[Tried], known: Mapping[str, Lived]) -> None:
    figures.tried += len(tried)
    for entry in tried:
        over = entry.answered_ms >= known[entry.lease].over_ms
        figures.stale_tried += over
        if entry.what != TAKEN and not over:
            figures.live_refused += 1
            figures.faults.append(
                f"{entry.lease} lived until {known[entry.lease].over_ms} and was refused at "
                f"{entry.answered_ms}: {entry.what} {entry.said}"
            )


def _judge_fences(
    figures: Figures, moves: Sequence[Moved], following: Mapping[str, Handed]
) -> None:
    first: dict[str, int] = {}
    made = set()
    for move in moves:
        if move.ref.startswith(FENCES):
            lease = move.ref.removeprefix(FENCES)
            made.add(lease)
            if lease in first:
                # What comes after it is a mark, by which others prove that there is none any more:
                # it was gone by then, also where whoever deleted it stood still before it said so.
                first[lease] = min(first[lease], move.locked_ms)
            elif move.new == GONE:
                first[lease] = move.done_ms
    for lease in made & following.keys():
        if first.get(lease, LATEST) > following[lease].at_ms:
            figures.faults.append(
                f"{following[lease].lease} was handed on before {lease} was fenced off"
            )
