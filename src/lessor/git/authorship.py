"""Which commits of a lent branch were made in the worktree that it was lent to.

A branch is one reference for all worktrees. `git update-ref`, a push into the repository and
`git checkout --ignore-other-worktrees` move it from anywhere, and git asks nobody: then the commits
of a process that lost its lease lie below the next holder's. What the holder itself does goes
through its own worktree's HEAD, and that worktree's reflog has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lessor.errors import ForeignCommitsError
from lessor.git.layout import Layout
from lessor.git.reflog import Move, read_reflog
from lessor.git.revision import resolve_commit
from lessor.git.trailer import labels_of
from lessor.git.unreachable import HEAD_REFLOG

# What git notes for a command that goes to a commit which was there before.
_MOVED = re.compile(
    r"(?:checkout|reset|bisect|clone|lessor): |Branch: |branch: |rebase finished|"
    r"(?:pull .*|rebase )(?:-i )?\((?:start|finish|abort|reset|skip|quit)\)|.*fast-forward$",
    re.IGNORECASE | re.DOTALL,
)
_CHECKOUT = "checkout: moving from "
_SHORT = 12
_LONGEST = 60

_SHOWN = 5
_FORMAT = "%H%x1f%P%x1f%B"


@dataclass(frozen=True, slots=True)
class Step:
    """One move of the branch, by which commits came that its holder didn't make."""

    before: str | None
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorship:
    """Who made the commits after the one that a lease began from.

    Attributes:
        commits: all of them with their subjects, children before their parents.
        head: the commit that HEAD was at.
        made: those that were made in this worktree.
        slipped: those that were put on the branch from elsewhere, past this worktree's HEAD.
        labelled: those that this worktree's HEAD took over with another lease's label on them.
        step: how the first of the last two came.
    """

    head: str
    commits: Mapping[str, str]
    made: frozenset[str] = frozenset()
    slipped: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()
    step: Step | None = None


def read_authorship(
    layout: Layout, *, since: str, branch: str, label: str, excluding: Sequence[str] = ()
) -> Authorship:
    """Who made the commits of since..HEAD that no commit of `excluding` leads to.

    `excluding` is the target: what was merged from it is somebody else's, and no matter.

    Raises:
        GitError: A revision names no commit.
    """
    head = resolve_commit(layout.path, "HEAD")
    commits = _commits(layout, [head, f"^{since}", *(f"^{oid}" for oid in excluding)])
    way = _Way(commits, branch=branch)
    for move in _moves(layout) if commits else ():
        way.follow(move)
    way.end(head)
    slipped = tuple(oid for oid in commits if oid in way.slipped)
    labelled = tuple(
        oid
        for oid, commit in commits.items()
        if commit.labels and label not in commit.labels and not {oid} & (way.made | way.slipped)
    )
    first = (slipped or labelled)[-1:]
    return Authorship(
        head=head,
        commits={oid: commit.subject for oid, commit in commits.items()},
        made=frozenset(way.made & commits.keys()),
        slipped=slipped,
        labelled=labelled,
        step=way.came[first[0]] if first else None,
    )


def refuse_foreign(found: Authorship, *, branch: str) -> None:
    """Refuse a branch with commits that its holder didn't make.

    Raises:
        ForeignCommitsError: The message names them, and how to take them out.
    """
    foreign = found.slipped or found.labelled
    if not foreign or found.step is None:
        return
    which = "a commit" if len(foreign) == 1 else f"{len(foreign)} commits"
    whose = (
        "that came to it past this worktree's HEAD, from a process without the lease"
        if found.slipped
        else "made under another lease's label"
    )
    named = "; ".join(f"{oid[:_SHORT]} {found.commits[oid]!r}" for oid in foreign[:_SHOWN])
    more = f"; and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
    raise ForeignCommitsError(
        f"{branch} has {which} {whose}: {named}{more}.",
        next_step=f"Take {'it' if len(foreign) == 1 else 'them'} out: {_way_out(found, found.step)}",
        branch=branch,
        commits=list(foreign),
    )


def _way_out(found: Authorship, step: Step) -> str:
    if step.before is None:
        return "git reset --soft $LESSOR_BASE; what is left in the files is committed for you."
    if step.after != found.head:
        return f"git rebase --onto {step.before} {step.after}"
    # What slipped in never was in the files; what HEAD went to is.
    return f"git reset {'--soft' if found.slipped else '--keep'} {step.before}"


@dataclass(frozen=True, slots=True)
class _Commit:
    parents: tuple[str, ...]
    subject: str
    labels: tuple[str, ...]


class _Way:
    """HEAD's way over the commits, move by move."""

    def __init__(self, commits: Mapping[str, _Commit], *, branch: str) -> None:
        self.made: set[str] = set()
        self.slipped: set[str] = set()
        self.came: dict[str, Step] = {}
        self._commits = commits
        self._branch = branch
        self._last: str | None = None
        self._left: str | None = None

    def follow(self, move: Move) -> None:
        if move.old is not None and move.old != self._last:
            # HEAD was where it had never gone to: its branch was moved from elsewhere.
            self._arrive(move.old, before=self._last, slips=True)
        if move.note.startswith(f"{_CHECKOUT}{self._branch} to "):
            self._left = move.old
        elif move.note.startswith(_CHECKOUT) and move.note.endswith(f" to {self._branch}"):
            # Back on its branch: what is new there came while HEAD was away.
            self._arrive(move.new, before=self._left, slips=True)
        self._arrive(move.new, before=move.old, slips=False)
        if move.new is not None and not _MOVED.match(move.note):
            self.made.add(move.new)
        self._last = move.new

    def end(self, head: str) -> None:
        """Come to the commit that HEAD is at now."""
        if head != self._last:
            self._arrive(head, before=self._last, slips=True)

    def _arrive(self, oid: str | None, *, before: str | None, slips: bool) -> None:
        waiting = [oid]
        while waiting:
            one = waiting.pop()
            if one is None or oid is None or one not in self._commits or one in self.came:
                continue
            self.came[one] = Step(before, oid)
            if slips:
                self.slipped.add(one)
            waiting += self._commits[one].parents


def _commits(layout: Layout, asked: Sequence[str]) -> dict[str, _Commit]:
    logged = layout.git(
        [
            *("log", "--topo-order", "-z", f"--format={_FORMAT}", "--no-show-signature"),
            *("--no-color", "--no-notes", "--no-patch", *asked, "--"),
        ]
    )
    found: dict[str, _Commit] = {}
    for record in logged.out.split(b"\0"):
        if record:
            oid, parents, message = record.split(b"\x1f", 2)
            subject = message.partition(b"\n")[0].decode(errors="replace")
            found[oid.decode()] = _Commit(
                parents=tuple(parents.decode().split()),
                subject=subject[:_LONGEST],
                labels=tuple(labels_of(message)),
            )
    return found


def _moves(layout: Layout) -> Iterator[Move]:
    """The moves of the worktree's HEAD, oldest first."""
    kept = read_reflog(layout.git_dir / HEAD_REFLOG)
    if kept is not None:
        yield from kept
        return
    # The reftable format has no such file, and git shows only where HEAD went to.
    shown = layout.git(["log", "-g", "-z", "--format=%H%x1f%gs", "HEAD", "--"], check=False)
    for record in reversed(shown.records):
        oid, _, note = record.partition("\x1f")
        yield Move(old=None, new=oid, note=note)
