"""What became of branches' work: whether, how and in which commit their target has it.

For one branch and for thousands: under ten git processes, whatever their number. The rules are in
`model/landing.py`, the history that they judge is read by `git/histories.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import GitError
from lessor.git.advertised import Advertised
from lessor.git.command import run_git
from lessor.git.histories import Case, Told, read_histories
from lessor.git.progress import operations_in_progress
from lessor.git.refs import BRANCHES
from lessor.git.registry import worktrees_of
from lessor.git.target import Target
from lessor.model.landing import History, Landed, Pushed, judge_landing

__all__ = ["Asked", "Landed", "Landing", "Pushed", "what_landed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A branch to judge.

    Attributes:
        branch: its name, without refs/heads/.
        base: the commit that it began from, as it was recorded; None where nobody did.
        seen: the newest commit of its work on record; it is judged where the branch is gone.
    """

    branch: str
    base: str | None = None
    seen: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One branch's verdict.

    Attributes:
        why: the rule in one sentence; where it is unknown, which part of the history is missing.
        tip: the commit that was judged; None where there is none.
        exists: whether the branch is there; else `tip` is the commit on record.
        commits: its own commits, newest first, as far as the base or the target tells them apart.
        holders: the target's commits that hold its work, newest first.
        parts: how many of its `of` changes the target has now.
        in_progress: the rebases, merges and the like in the worktrees of this branch.
    """

    branch: str
    verdict: Landed
    why: str
    tip: str | None = None
    exists: bool = True
    commits: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    parts: int = 0
    of: int = 0
    in_progress: tuple[str, ...] = ()
    pushed: Pushed = Pushed.UNKNOWN


def what_landed(
    common_dir: Path,
    asked: Sequence[Asked],
    *,
    target: Target,
    remote: Advertised | None = None,
) -> list[Landing]:
    """Judge each branch against `target`; the verdicts in the order of `asked`.

    It writes nothing to the repository, and it never raises for what it finds: a look that fails
    is a verdict. `remote` is what the remote said of its branches.
    """
    try:
        cases = _cases(common_dir, asked)
        running = _in_progress(common_dir)
    except (GitError, OSError) as refused:
        told = Told(history=History(unknown=str(refused)))
        return [_landing(Case(branch=one.branch), told, {}, None) for one in asked]
    told_at_once = [_at_once(one, case, target) for one, case in zip(asked, cases, strict=True)]
    waiting = [case for case, told in zip(cases, told_at_once, strict=True) if told is None]
    try:
        read = iter(read_histories(common_dir, waiting, target=target.commit or ""))
    except (GitError, OSError) as refused:
        unknown = Told(history=History(unknown=f"the history can't be read: {refused}"))
        read = iter([unknown] * len(waiting))
    return [
        _landing(case, told or next(read), running, remote)
        for case, told in zip(cases, told_at_once, strict=True)
    ]


def _cases(common_dir: Path, asked: Sequence[Asked]) -> list[Case]:
    names = [
        name
        for one in asked
        for name in (f"{BRANCHES}{one.branch}", one.base or "", one.seen or "")
    ]
    found = iter(_commits(common_dir, names))
    cases = []
    for one in asked:
        tip, base, seen = next(found), next(found), next(found)
        exists = tip is not None
        cases.append(Case(branch=one.branch, tip=tip or seen, exists=exists, base=base, seen=seen))
    return cases


def _commits(common_dir: Path, names: Sequence[str]) -> list[str | None]:
    """The commit that each name stands for; None where it names none here."""
    # One line a question: a name that holds a line end names nothing.
    asked = "".join("\n" if "\n" in name else f"{name}^{{commit}}\n" for name in names)
    said = run_git(
        ["cat-file", "--batch-check=%(objectname) %(objecttype)"],
        cwd=common_dir,
        git_dir=common_dir,
        input=asked.encode("utf-8", "surrogateescape"),
    )
    answers = (line.split(" ") for line in said.lines)
    return [words[0] if words[1:] == ["commit"] else None for words in answers]


def _at_once(one: Asked, case: Case, target: Target) -> Told | None:
    """What needs no look at the commits between branch and target."""
    if case.tip is None:
        return Told(history=History(exists=False))
    if one.base and case.base is None:
        reason = f"the commit that it began from isn't here: {one.base[:12]}"
        return Told(history=History(unknown=reason))
    if case.tip == case.base:
        return Told(history=History(empty=True))
    if target.commit is None:
        return Told(history=History(unknown=target.note))
    return None


def _landing(
    case: Case, told: Told, running: Mapping[str, set[str]], remote: Advertised | None
) -> Landing:
    rule = judge_landing(told.history)
    return Landing(
        branch=case.branch,
        verdict=rule.verdict,
        why=told.history.unknown or rule.why,
        tip=case.tip,
        exists=case.exists,
        commits=told.commits,
        holders=told.holders,
        parts=told.history.parts - told.history.reverted,
        of=told.history.of,
        in_progress=tuple(sorted(running.get(case.branch, ()))),
        pushed=_pushed(case, remote),
    )


def _pushed(case: Case, remote: Advertised | None) -> Pushed:
    if remote is None or case.tip is None:
        return Pushed.UNKNOWN
    there = remote.branches.get(case.branch)
    if there is None:
        return Pushed.NO
    return Pushed.YES if there == case.tip else Pushed.OTHER


def _in_progress(common_dir: Path) -> Mapping[str, set[str]]:
    """The operations in progress on each branch that some worktree has."""
    found: dict[str, set[str]] = {}
    for git_dir, branch in worktrees_of(common_dir):
        if branch is not None and (running := operations_in_progress(git_dir)):
            found.setdefault(branch, set()).update(running)
    return found
