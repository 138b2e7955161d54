"""What history shows of branches, for the rules in `model/landing.py`: read once for all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lessor.git.ancestry import read_ancestry, shallow_commits
from lessor.git.carried import Carried, copied, merged, with_earlier
from lessor.git.course import Begun, Course, courses
from lessor.git.equality import Changes
from lessor.git.provenance import label_branches
from lessor.git.reflog import Move, read_reflog
from lessor.git.refs import BRANCHES
from lessor.git.trial import Tried, try_merges
from lessor.model.landing import History, Trial

# Notes in a reflog of commands that make a commit, rather than move to one.
_MADE = ("commit", "cherry-pick", "revert", "am:")
_TWO = 2
_ALONE = "the target leads to it, and nothing tells its own commits from the target's"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A branch with its commits, as far as they exist here: its tip, its base, one of its work."""

    branch: str
    tip: str | None = None
    exists: bool = False
    base: str | None = None
    seen: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What history tells of one branch: the facts, its own commits, the target's that hold them."""

    history: History
    commits: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()


def read_histories(common_dir: Path, cases: Sequence[Case], *, target: str) -> list[Told]:
    """What history tells of each case, which has a tip, against the commit `target`.

    Raises:
        GitError: A commit or file on the way is missing.
        OSError: A reflog can't be read.
    """
    if not cases:
        return []
    tips = [case.tip or "" for case in cases]
    bases = [case.base for case in cases if case.base]
    # Of a branch without a base nobody knows how far back its own commits go.
    ancestry = read_ancestry(common_dir, [target, *tips, *bases], whole=len(bases) < len(cases))
    begun = [Begun(tip=tip, base=case.base) for tip, case in zip(tips, cases, strict=True)]
    found = courses(ancestry, begun, target=target)
    changes = Changes(common_dir, ancestry, found, target=target)
    hidden = shallow_commits(common_dir)
    work = [_work(common_dir, changes, *pair) for pair in zip(cases, found, strict=True)]
    told: list[Told | None] = [
        _by_course(common_dir, changes, *three, hidden=hidden)
        for three in zip(cases, found, work, strict=True)
    ]
    left = [n for n, one in enumerate(told) if one is None]
    branches = [(cases[n].branch, found[n], work[n]) for n in left]
    compared = iter(_compare(common_dir, changes, branches, target))
    return [one or next(compared) for one in told]


def _by_course(
    common_dir: Path,
    changes: Changes,
    case: Case,
    course: Course,
    work: Sequence[str],
    *,
    hidden: Collection[str],
) -> Told | None:
    """What is told by a branch that has nothing of its own, or that the target leads to."""
    if course.empty:
        return Told(history=History(empty=True))
    if course.carrier is not None and course.is_contained:
        if course.is_forward and not work:
            return Told(history=_alone(common_dir, case))
        carried = merged(changes, course, work, carrier=course.carrier)
        return _told(course.brought, carried, History(contained=True))
    if changes.is_cut_short(course, hidden):
        return Told(history=History(unknown="the clone is shallow"))
    return None


def _alone(common_dir: Path, case: Case) -> History:
    """What is known of a branch that the target leads to, and that shows no work."""
    moves = _moves(common_dir, case)
    is_new = case.base is None and bool(moves) and moves[0].new == case.tip
    return History(empty=True) if is_new else History(unknown=_ALONE)


def _work(common_dir: Path, changes: Changes, case: Case, course: Course) -> Sequence[str]:
    """The branch's own among the commits that the target has with it.

    What came by a merge is the branch's. Where the target itself was at a commit (after a
    fast-forward, or because it is the target's), a record, a label or the branch's reflog tells.
    """
    if not course.is_forward:
        return course.brought
    made = {move.new for move in _moves(common_dir, case) if move.note.startswith(_MADE)}
    if case.base is None:
        known = made or case.seen is not None
        return (course.tip,) if known and course.is_contained else ()
    return [
        oid
        for oid in course.brought
        if oid in made or oid == case.seen or case.branch in label_branches(changes.commit(oid))
    ]


def _moves(common_dir: Path, case: Case) -> Sequence[Move]:
    return read_reflog(common_dir / "logs" / f"{BRANCHES}{case.branch}") or ()


def _compare(
    common_dir: Path,
    changes: Changes,
    branches: Sequence[tuple[str, Course, Sequence[str]]],
    target: str,
) -> list[Told]:
    """What is told by branches that the target doesn't lead to: by copies, else by a try."""
    if not branches:
        return []
    found = [copied(changes, course, branch) for branch, course, _ in branches]
    merges = [changes.merges(course.own) for _, course, _ in branches]
    nets = [changes.is_net(course) for _, course, _ in branches]
    trying = [
        course.tip
        for (_, course, _), first, own, net in zip(branches, found, merges, nets, strict=True)
        if net and (first.way is None or own)
    ]
    whole = {oid for first, own in zip(found, merges, strict=True) if first.way for oid in own}
    tried = _try(common_dir, changes, trying, sorted(whole), target)
    told = []
    for (branch, course, work), first, own, net in zip(branches, found, merges, nets, strict=True):
        odd = [oid for oid in own if oid in tried.odd]
        carried = copied(changes, course, branch, odd=odd) if odd else first
        carried = with_earlier(changes, carried, course, work)
        history = History(net_change=net, trial=tried.trials.get(course.tip))
        told.append(_told(course.own, carried, history))
    return told


@dataclass(frozen=True, slots=True)
class _Tries:
    """What merging each tip would come to, and the merges that hold more than git would merge."""

    trials: Mapping[str, Trial]
    odd: Collection[str]


def _try(
    common_dir: Path, changes: Changes, tips: Sequence[str], merges: Sequence[str], target: str
) -> _Tries:
    parents = {oid: changes.commit(oid).parents for oid in merges}
    pairs = {oid: (two[0], two[1]) for oid, two in parents.items() if len(two) == _TWO}
    results = try_merges(common_dir, [*pairs.values(), *((target, tip) for tip in tips)])
    remade = dict(zip(pairs, results, strict=False))
    plain = {oid for oid, made in remade.items() if _is(made, changes.commit(oid).tree)}
    tree = changes.commit(target).tree
    trials = {
        tip: Trial.NOTHING
        if _is(made, tree)
        else (Trial.CHANGES if made.clean else Trial.CONFLICTS)
        for tip, made in zip(tips, results[len(pairs) :], strict=True)
    }
    return _Tries(trials=trials, odd=set(merges) - plain)


def _is(made: Tried, tree: str) -> bool:
    return made.clean and made.tree == tree


def _told(commits: Sequence[str], carried: Carried, history: History) -> Told:
    return Told(
        history=replace(
            history,
            way=carried.way,
            parts=carried.parts,
            reverted=carried.reverted,
            of=carried.of,
        ),
        commits=tuple(commits),
        holders=carried.holders,
    )
