"""The changes of some branches beside those of their target, compared by what they do to the lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from lessor.git.ancestry import Ancestry, Commit
from lessor.git.course import Course
from lessor.git.patches import Span, patch_ids
from lessor.git.provenance import reversals

# How many beginnings of a branch are looked for as a squash of their own; each costs a diff.
_MOST_BEGINNINGS = 50


class Changes:
    """Who makes which change, in the part of the target's history that may hold the branches'."""

    def __init__(
        self, common_dir: Path, ancestry: Ancestry, found: Sequence[Course], *, target: str
    ) -> None:
        self._ancestry = ancestry
        self._target = target
        # "" leads to nothing: for a branch that shares no history no commit may be left out.
        starts = [start for course in found for start in (course.forks or (course.carrier or "",))]
        self._reach = ancestry.reached_by([*starts, target])
        since = [
            oid
            for oid in ancestry.commits
            if self._reach.leads(target, oid) and not self._reach.all_lead(oid)
        ]
        self._reversals = reversals(ancestry, since)
        theirs = {oid: span for oid in since if (span := self.span_of(oid))}
        spans = dict.fromkeys(theirs.values())
        for course in found:
            spans |= dict.fromkeys(self._spans(course))
        wanted = [span for span in spans if self._is_change(span)]
        self._ids = dict(zip(wanted, patch_ids(common_dir, wanted), strict=True))
        self._makers: dict[str, list[str]] = {}
        for oid, span in theirs.items():
            if patch := self._ids.get(span):
                self._makers.setdefault(patch, []).append(oid)

    def commit(self, oid: str) -> Commit:
        """The commit of this id."""
        return self._ancestry.commits[oid]

    def units(self, commits: Iterable[str]) -> list[str]:
        """Those of the commits that are no merges and change something."""
        return [
            oid
            for oid in commits
            if oid in self._ancestry and (span := self.span_of(oid)) and self._is_change(span)
        ]

    def merges(self, commits: Iterable[str]) -> list[str]:
        """Those of the commits that are merges."""
        return [oid for oid in commits if len(self.commit(oid).parents) > 1]

    def is_net(self, course: Course) -> bool:
        """Whether a branch changes anything, taken as one."""
        whole = self.whole(course)
        return whole is None or self._is_change(whole)

    def is_cut_short(self, course: Course, hidden: Collection[str]) -> bool:
        """Whether a commit of `hidden`, whose parents aren't here, lies between branch and target."""
        return any(
            oid in course.own
            or (
                self._reach.leads(self._target, oid)
                and not any(self._reach.leads(fork, oid) for fork in course.forks)
            )
            for oid in hidden
        )

    def span_of(self, oid: str) -> Span | None:
        """What a commit changes; None for a merge."""
        parents = self.commit(oid).parents
        return Span(next(iter(parents), None), oid) if len(parents) <= 1 else None

    def of_merge(self, oid: str) -> Span | None:
        """What a merge changed in the branch that it was made on; None for any other commit."""
        parents = self.commit(oid).parents if oid in self._ancestry else ()
        return Span(parents[0], oid) if len(parents) > 1 else None

    def whole(self, course: Course) -> Span | None:
        """All that a branch changes, as one; None where it doesn't begin from one commit."""
        start = course.fork or course.base
        if course.own and len(course.forks) > 1:
            return None
        if start is None:
            return Span(None, course.tip) if course.own else None
        return Span(start, course.tip) if start in self._ancestry else None

    def beginnings(self, course: Course) -> Iterator[tuple[int, Span]]:
        """What the first one, two, three … commits of a branch without merges change together."""
        units = self.units(course.own)
        if course.fork is None or self.merges(course.own):
            return
        for count, oid in enumerate(reversed(units[-_MOST_BEGINNINGS:]), start=1):
            if 1 < count < len(units):
                yield count, Span(course.fork, oid)

    def makers(self, span: Span | None, *, since: Sequence[str]) -> list[str]:
        """The target's commits that make this change, and that none of `since` leads to."""
        patch = self._ids.get(span) if span else None
        found = self._makers.get(patch, []) if patch else []
        return [oid for oid in found if not any(self._reach.leads(old, oid) for old in since)]

    def is_undone(self, made: Iterable[str], span: Span | None) -> bool:
        """Whether the newest word on a change is a revert of the commits that `made` it.

        A revert says so in its message, or makes exactly the opposite change; the revert of a
        revert brings it back.
        """
        landed, undone = set(made), set(self.makers(_opposite(span), since=()))
        while True:
            again = undone | self._reverting(landed)
            more = landed | self._reverting(again)
            if (more, again) == (landed, undone):
                break
            landed, undone = more, again
        if not undone:
            return False
        return min((self._ancestry.place[oid], oid in undone) for oid in landed | undone)[1]

    def in_order(self, commits: Iterable[str]) -> tuple[str, ...]:
        """The commits once each, newest first."""
        return tuple(sorted(set(commits), key=self._ancestry.place.__getitem__))

    def _reverting(self, commits: Iterable[str]) -> set[str]:
        return {oid for commit in commits for oid in self._reversals.get(commit, ())}

    def _spans(self, course: Course) -> Iterator[Span]:
        """Every change that may have to be found, and its opposite."""
        commits = course.own or course.brought
        singles = [self.span_of(oid) for oid in commits]
        of_merge = self.of_merge(course.carrier) if course.carrier else None
        for span in (*singles, self.whole(course), of_merge):
            yield from (one for one in (span, _opposite(span)) if one)
        if course.own:
            yield from (span for _, span in self.beginnings(course))

    def _is_change(self, span: Span) -> bool:
        start, end = (self._ancestry.commits.get(oid or "") for oid in span)
        return start is None or end is None or start.tree != end.tree


def _opposite(span: Span | None) -> Span | None:
    return Span(span.end, span.start) if span and span.start else None
