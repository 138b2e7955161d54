"""The commits between some tips and what they have in common, read once and walked in memory.

One `git log` answers for thousands of branches what `rev-list` and `merge-base` would answer one
by one, at some milliseconds each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.git.command import CHECKOUT_TIMEOUT_S, run_git
from lessor.git.understood import understood

# The message comes last: it may hold anything but NUL.
_FORMAT = "%H%x1f%P%x1f%T%x1f%at%x1f%ae%x1f%B"
_FIELDS = _FORMAT.count("%x1f")

# With so few tips git finds quickly what all of them have in common; everything older is left out.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit; `authored` is seconds since 1970 as git writes them."""

    oid: str
    parents: tuple[str, ...]
    tree: str
    author: str
    authored: str
    message: str


class Ancestry:
    """Commits by id, children before their parents; `place` is a commit's number in that order.

    The parents of the oldest ones may be left out, where all tips have the rest in common.
    """

    def __init__(self, commits: Iterable[Commit]) -> None:
        self.commits: Mapping[str, Commit] = {commit.oid: commit for commit in commits}
        self.place: Mapping[str, int] = {oid: n for n, oid in enumerate(self.commits)}

    def __contains__(self, oid: object) -> bool:
        return oid in self.commits

    def reached_by(self, points: Iterable[str]) -> Reach:
        """Which commits each of `points` leads to, all of them in one pass."""
        return Reach(self, points)

    def walk(self, start: str, *, until: Callable[[str], bool]) -> tuple[list[str], list[str]]:
        """The commits from `start` on, newest first, and the edge: the first ones of `until`."""
        inside: set[str] = set()
        edge: dict[str, None] = {}
        waiting = [start]
        while waiting:
            oid = waiting.pop()
            if oid in inside or oid in edge or oid not in self.commits:
                continue
            if until(oid):
                edge[oid] = None
                continue
            inside.add(oid)
            waiting += self.commits[oid].parents
        return sorted(inside, key=self.place.__getitem__), list(edge)

    def first_parents(self, tip: str) -> Iterator[str]:
        """The commits that the branch at `tip` itself was at, newest first."""
        oid = tip
        while oid in self.commits:
            yield oid
            oid = next(iter(self.commits[oid].parents), "")

    def brought_by(self, tip: str) -> Mapping[str, str]:
        """For each commit that `tip` leads to, the first of its first parents that did."""
        brought: dict[str, str] = {}
        for carrier in reversed(list(self.first_parents(tip))):
            found, _ = self.walk(carrier, until=brought.__contains__)
            brought |= dict.fromkeys(found, carrier)
        return brought


class Reach:
    """Which commits some points lead to."""

    def __init__(self, ancestry: Ancestry, points: Iterable[str]) -> None:
        self._bits = {point: 1 << n for n, point in enumerate(dict.fromkeys(points))}
        self._all = (1 << len(self._bits)) - 1
        self._masks: dict[str, int] = {}
        above: dict[str, int] = {}
        for oid, commit in ancestry.commits.items():
            mask = above.pop(oid, 0) | self._bits.get(oid, 0)
            self._masks[oid] = mask
            for parent in commit.parents:
                above[parent] = above.get(parent, 0) | mask

    def leads(self, point: str, oid: str) -> bool:
        """Whether `point` leads to `oid`, itself included."""
        return bool(self._masks.get(oid, 0) & self._bits.get(point, 0))

    def all_lead(self, oid: str) -> bool:
        """Whether each of the points leads to `oid`."""
        return self._masks.get(oid, 0) == self._all

    def newest(self, points: Sequence[str]) -> list[str]:
        """Those of the points that no other of them leads to."""
        return [
            point
            for point in points
            if not any(self.leads(other, point) for other in points if other != point)
        ]


def read_ancestry(common_dir: Path, tips: Sequence[str], *, whole: bool = False) -> Ancestry:
    """The history of `tips`, which are ids of commits that exist.

    `whole` asks for all of it; else what all of a few tips have in common may be left out.

    Raises:
        GitError: A commit on the way is missing or can't be read.
    """
    wanted = sorted(set(tips))
    limits = _common(common_dir, wanted) if len(wanted) <= _FEW and not whole else []
    logged = run_git(
        [
            *("log", "--topo-order", "--boundary", "-z", f"--format={_FORMAT}"),
            *("--encoding=UTF-8", "--no-show-signature", "--no-color", "--no-notes"),
            *("--no-patch", "--stdin"),
        ],
        cwd=common_dir,
        git_dir=common_dir,
        input="".join(f"{line}\n" for line in (*wanted, *limits)).encode(),
        timeout_s=CHECKOUT_TIMEOUT_S,
    )
    return Ancestry(_commits(logged.out))


def shallow_commits(common_dir: Path) -> frozenset[str]:
    """The commits whose parents a shallow clone leaves out (gitrepository-layout(5))."""
    try:
        return frozenset((common_dir / "shallow").read_text(encoding="ascii").split())
    except FileNotFoundError:
        return frozenset()


def _common(common_dir: Path, tips: Sequence[str]) -> list[str]:
    """What leaves out the commits that all tips lead to; nothing where they have none in common."""
    asked = ["merge-base", "--octopus", *tips]
    found = run_git(asked, cwd=common_dir, git_dir=common_dir, check=False)
    return [f"^{oid}" for oid in found.lines] if found.code == 0 else []


def _commits(out: bytes) -> Iterator[Commit]:
    for record in out.split(b"\0"):
        if record:
            fields = record.decode("utf-8", "surrogateescape").split("\x1f", _FIELDS)
            with understood("a commit"):
                oid, parents, tree, authored, author, message = fields
            yield Commit(
                oid=oid,
                parents=tuple(parents.split()),
                tree=tree,
                author=author,
                authored=authored,
                message=message,
            )
