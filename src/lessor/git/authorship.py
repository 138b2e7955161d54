"""Which commits of a lent branch were made in the worktree that it was lent to.

A branch is one reference for all worktrees. `git update-ref`, a push into the repository and
`git checkout --ignore-other-worktrees` move it from anywhere, and git asks nobody: then the commits
of a process that lost its lease lie below the next holder's. What the holder itself does goes
through its own worktree's HEAD, and that worktree's reflog has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lessor.errors import ForeignCommitsError
from lessor.git.command import run_git
from lessor.git.layout import Layout
from lessor.git.reflog import BEGUN, HANDED_ON, LABELLED, Move, read_reflog
from lessor.git.revision import resolve_commit
from lessor.git.trailer import labels_of
from lessor.git.unreachable import HEAD_REFLOG
from lessor.model.inheritance import still_foreign

# What git notes for a command that goes to a commit which was there before.
_MOVED = re.compile(
    r"(?:checkout|reset|bisect|clone|lessor): |Branch: |branch: |rebase finished|"
    r"(?:pull .*|rebase )(?:-i )?\((?:start|finish|abort|reset|skip|quit)\)|.*fast-forward$",
    re.IGNORECASE | re.DOTALL,
)
_CHECKOUT = "checkout: moving from "
_MOVED_NOWHERE = frozenset({"reset: moving to HEAD", HANDED_ON})
_AMENDED = "commit (amend)"
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
        inherited: those that were found to be somebody else's in an earlier epoch.
        step: how the first of the foreign ones came.
        lacking: whether the files of this worktree never had that one's changes.
    """

    head: str
    commits: Mapping[str, str]
    made: frozenset[str] = frozenset()
    slipped: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()
    step: Step | None = None
    lacking: bool = False

    @property
    def foreign(self) -> tuple[str, ...]:
        """What can't be part of the result, children before their parents."""
        return self.inherited or self.slipped or self.labelled


def read_authorship(
    layout: Layout, *, since: str, branch: str, label: str, excluding: Sequence[str] = ()
) -> Authorship:
    """Who made the commits of since..HEAD that no commit of `excluding` leads to.

    `excluding` is the target: what was merged from it is somebody else's, and no matter.

    Raises:
        GitError: A revision names no commit.
    """
    head = resolve_commit(layout.path, "HEAD")
    commits = _commits(layout.git_dir, [head, f"^{since}", *(f"^{oid}" for oid in excluding)])
    way = _Way(commits, branch=branch)
    for move in _moves(layout.git_dir, commits) if commits else ():
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
        lacking=bool(slipped),
    )


def made_on(layout: Layout, *, since: str, branch: str, targets: Sequence[str]) -> tuple[str, ...]:
    """The commits of since..HEAD that were made in this worktree and that one of `targets` leads to.

    Children come before their parents, as `touches` needs them.
    Whoever made them put them there, or moved what is known here of a remote: they stay its own. So do
    those that came to the branch by no move of HEAD: what is merged has one on record, and who empties
    the record doesn't get its commits out of sight.

    Raises:
        GitError: A revision names no commit.
    """
    if not targets:
        return ()
    found = read_authorship(layout, since=since, branch=branch, label="")
    asked = ["rev-list", "HEAD", *(f"^{oid}" for oid in (since, *targets)), "--"]
    there = {*found.made, *found.slipped}.difference(layout.git(asked).lines)
    return tuple(oid for oid in found.commits if oid in there)


def with_inherited(
    found: Authorship,
    layout: Layout,
    *,
    base: str,
    branch: str,
    recorded: Mapping[str, Step],
    excluding: Sequence[str] = (),
) -> Authorship:
    """The same with those commits of base..HEAD that are on record as somebody else's.

    Raises:
        GitError: A revision names no commit.
    """
    now = {*found.slipped, *found.labelled}
    if not recorded.keys() - now:
        return found
    commits = _commits(layout.git_dir, [found.head, f"^{base}", *(f"^{oid}" for oid in excluding)])
    inherited = still_foreign(commits, recorded=recorded.keys() - now)
    if not inherited:
        return found
    first = inherited[-1]
    slips = slips_before(layout.git_dir, tip=found.head, base=base, branch=branch)
    return replace(
        found,
        commits={oid: commit.subject for oid, commit in commits.items()},
        inherited=inherited,
        step=recorded[first],
        lacking=first in slips,
    )


def slips_before(
    git_dir: Path, *, tip: str, base: str, branch: str, excluding: Sequence[str] = ()
) -> dict[str, Step]:
    """The commits of base..tip that reached the branch past the HEAD of the worktree that had it.

    Read when the branch is handed on from that worktree, whose git directory is given: once it was
    taken off its HEAD, what is committed there is no word of the branch's holder any more.

    Raises:
        GitError: A revision names no commit.
    """
    commits = _commits(git_dir, [tip, f"^{base}", *(f"^{oid}" for oid in excluding)])
    way = _Way(commits, branch=branch)
    for move in _moves(git_dir, commits) if commits else ():
        way.follow(move)
        if move.note == HANDED_ON:
            break
    way.end(tip)
    return {oid: way.came[oid] for oid in commits if oid in way.slipped}


def refuse_foreign(found: Authorship, *, branch: str) -> None:
    """Refuse a branch with commits that its holder didn't make.

    Raises:
        ForeignCommitsError: The message names them, and how to take them out.
    """
    foreign = found.foreign
    if not foreign or found.step is None:
        return
    which = "a commit" if len(foreign) == 1 else f"{len(foreign)} commits"
    whose = "made under another lease's label"
    if found.inherited:
        whose = "that came to it in an earlier epoch from a process without the lease"
    elif found.slipped:
        whose = "that came to it past this worktree's HEAD, from a process without the lease"
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
    return f"git reset {'--soft' if found.lacking else '--keep'} {step.before}"


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
        arrived = self._arrive(move.new, before=move.old, slips=False)
        if move.note == LABELLED:
            # Each of its own commits is another one since, and the move names the last of them alone.
            self.made |= arrived
        elif move.new is not None and not move.begins and not _MOVED.match(move.note):
            self.made.add(move.new)
        self._last = move.new

    def end(self, head: str) -> None:
        """Come to the commit that HEAD is at now."""
        if head != self._last:
            self._arrive(head, before=self._last, slips=True)

    def _arrive(self, oid: str | None, *, before: str | None, slips: bool) -> set[str]:
        """Note which commits came by going to `oid`; those."""
        arrived: set[str] = set()
        waiting = [oid]
        while waiting:
            one = waiting.pop()
            if one is None or oid is None or one not in self._commits or one in self.came:
                continue
            self.came[one] = Step(before, oid)
            arrived.add(one)
            waiting += self._commits[one].parents
        if slips:
            self.slipped |= arrived
        return arrived


def _commits(git_dir: Path, asked: Sequence[str]) -> dict[str, _Commit]:
    logged = run_git(
        [
            *("log", "--topo-order", "-z", f"--format={_FORMAT}", "--no-show-signature"),
            *("--no-color", "--no-notes", "--no-patch", *asked, "--"),
        ],
        cwd=git_dir,
        git_dir=git_dir,
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


def _moves(git_dir: Path, commits: Mapping[str, _Commit]) -> Iterator[Move]:
    """The moves of the worktree's HEAD, oldest first."""
    kept = read_reflog(git_dir / HEAD_REFLOG)
    if kept is not None:
        yield from kept
        return
    # The reftable format has no such file, and git shows only where HEAD went to. A commit that was
    # made there has what HEAD was at for its parent: another one means that HEAD was moved unseen.
    asked = ["log", "-g", "-z", "--format=%H%x1f%gs", "HEAD", "--"]
    shown = run_git(asked, cwd=git_dir, git_dir=git_dir, check=False)
    first = True
    for record in reversed(shown.records):
        oid, _, note = record.partition("\x1f")
        if note in _MOVED_NOWHERE:
            yield Move(old=oid, new=oid, note=note)
            continue
        made = oid in commits and not _MOVED.match(note) and not note.startswith(_AMENDED)
        parents = commits[oid].parents if made and not (first and note == BEGUN) else ()
        first = False
        yield Move(old=parents[0] if parents else None, new=oid, note=note)
