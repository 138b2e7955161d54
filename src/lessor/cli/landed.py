"""`lessor landed`: what became of tasks' and people's branches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from lessor.cli.finding import find_task
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.output import Record
from lessor.cli.text import Line, Piece, Tone, row, shown, table, wrap
from lessor.errors import GitError
from lessor.git.advertised import Advertised, ask_remote, remote_name
from lessor.git.landed import Asked, Landed, Landing, Pushed, what_landed
from lessor.git.refs import BASES, BRANCHES
from lessor.git.target import Target, default_target, named_target, read_refs
from lessor.model.branch import BRANCH_BYTES
from lessor.model.task import Task
from lessor.service.tasks import MOST_BRANCHES

_TASK = re.compile(r"#?\d{1,15}|task_\w+")
_SHORT = 7
_NOTE = "note  "
_GOOD = frozenset({Landed.MERGED, Landed.SQUASHED, Landed.REBASED})
_BAD = frozenset({Landed.CONFLICTING, Landed.REVERTED, Landed.MISSING})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A branch to judge, and the task that it is of, if any."""

    branch: str
    task: Task | None


@command("landed")
@click.argument("names", nargs=-1, metavar="[N|BRANCH…]")
@click.option("--onto", metavar="REV", help="What they land on; else the default branch.")
@click.option("--offline", is_flag=True, help="Don't ask the remote for its branches.")
@pass_invocation
def landed(
    invocation: Invocation, *, names: tuple[str, ...], onto: str | None, offline: bool
) -> None:
    """Say what became of branches: landed, how and in which commit; open; or why nobody can tell.

    N is a task, BRANCH any branch; without either it judges all branches that are here, and those of
    results that haven't landed yet. What is found of tasks'
    results is recorded: one that landed, or whose branch was deleted and that nothing else has, is no
    ground for later tasks any more. With --onto nothing is recorded.
    """
    common_dir = invocation.standing.checkout_or_refuse().repository.common_dir
    refs = read_refs(common_dir)
    remote, said, silence = _remote(invocation, offline=offline)
    target = (
        named_target(common_dir, onto)
        if onto is not None
        else default_target(common_dir, refs, remote=remote, said=said)
    )
    wanted = _wanted(invocation, names, refs, target=target, remote=remote)
    asked = [_asked(one, refs) for one in wanted]
    found = what_landed(common_dir, asked, target=target, remote=said)
    recorded = _settle(invocation, wanted, found, target, said) if onto is None else {}
    told = [
        f"recorded as {end}: {', '.join(f'#{task.number}' for task in tasks)}"
        for end, tasks in recorded.items()
        if tasks
    ]
    invocation.answer_all(
        [
            _record(one, landing, target, recorded)
            for one, landing in zip(wanted, found, strict=True)
        ],
        lambda: _lines(invocation, wanted, found, target, [target.note, silence, *told]),
    )


def _settle(
    invocation: Invocation,
    wanted: Sequence[_Wanted],
    found: Sequence[Landing],
    target: Target,
    said: Advertised | None,
) -> dict[str, list[Task]]:
    """Record what was found of tasks' results; those that weren't known, by what they are now."""
    repository = invocation.repository
    if repository is None:
        return {}
    from lessor.runner.settling import give_up_gone, settle_found

    lessor = invocation.lessor
    common_dir = invocation.standing.checkout_or_refuse().repository.common_dir
    of_tasks = [(one.task, landing) for one, landing in zip(wanted, found, strict=True) if one.task]
    settled = settle_found(lessor, common_dir, of_tasks, repository=repository, target=target)
    named = {task.id for task, _ in of_tasks}
    gone = give_up_gone(lessor, common_dir, repository=repository, said=said, only=named)
    return {"landed": [one.task for one in settled], "given up": gone}


def _remote(invocation: Invocation, *, offline: bool) -> tuple[str | None, Advertised | None, str]:
    """The remote's name and its answer, and what stands in the way of one."""
    common_dir = invocation.standing.checkout_or_refuse().repository.common_dir
    remote = remote_name(common_dir)
    if remote is None or offline:
        return remote, None, ""
    try:
        return remote, ask_remote(common_dir, remote), ""
    except GitError as silent:
        return remote, None, f"{remote} didn't say what is pushed: {silent.message}"


def _wanted(
    invocation: Invocation,
    names: Sequence[str],
    refs: Mapping[str, str],
    *,
    target: Target,
    remote: str | None,
) -> list[_Wanted]:
    if names and all(_TASK.fullmatch(name) for name in names):
        return [_of_task(find_task(invocation, name)) for name in names]
    if names:
        by_branch = _newest(invocation, names)
        return [_named(invocation, name, by_branch) for name in names]
    branches = [ref.removeprefix(BRANCHES) for ref in refs if ref.startswith(BRANCHES)]
    branches += _unlanded(invocation)
    by_branch = _newest(invocation, branches)
    wanted = [
        _Wanted(branch=branch, task=by_branch.get(branch))
        for branch in dict.fromkeys(branches)
        if target.name not in {branch, f"{remote}/{branch}"}
    ]
    # By numbers, as people count: git lists 14 before 2. What is no task's comes last.
    return sorted(wanted, key=lambda one: (one.task is None, one.task.number if one.task else 0))


def _named(invocation: Invocation, name: str, by_branch: Mapping[str, Task]) -> _Wanted:
    if _TASK.fullmatch(name):
        return _of_task(find_task(invocation, name))
    return _Wanted(branch=name, task=by_branch.get(name))


def _of_task(task: Task) -> _Wanted:
    return _Wanted(branch=task.branch or "", task=task)


def _newest(invocation: Invocation, branches: Sequence[str]) -> dict[str, Task]:
    """The newest task of each branch; a branch that none of the repository's has is left out."""
    # No task has another: a person's may be any bytes.
    own = [name for name in dict.fromkeys(branches) if name.isascii() and len(name) <= BRANCH_BYTES]
    found: dict[str, Task] = {}
    for at in range(0, len(own) if invocation.repository else 0, MOST_BRANCHES):
        some = own[at : at + MOST_BRANCHES]
        newest = invocation.lessor.tasks.newest_on(some, repository=invocation.repository)
        found |= {task.branch: task for task in newest if task.branch}
    return found


def _unlanded(invocation: Invocation) -> list[str]:
    """The branches of results that neither landed nor were given up: one may be deleted by now."""
    if invocation.repository is None:
        return []
    landings = invocation.lessor.landings
    return [one.branch for one in landings.all_results(repository=invocation.repository)]


def _asked(wanted: _Wanted, refs: Mapping[str, str]) -> Asked:
    task = wanted.task
    if task is None:
        return Asked(branch=wanted.branch)
    pins = (refs.get(f"{BASES}{task.id}/{epoch}") for epoch in range(1, task.epoch + 1))
    base = next((pin for pin in pins if pin), None) or task.base
    return Asked(branch=wanted.branch, base=base, seen=task.commit)


def _record(
    wanted: _Wanted, landing: Landing, target: Target, recorded: Mapping[str, list[Task]]
) -> Record:
    ends = (end for end, tasks in recorded.items() if wanted.task in tasks)
    return {
        "branch": landing.branch,
        "taskId": wanted.task.id if wanted.task else None,
        "number": wanted.task.number if wanted.task else None,
        "verdict": landing.verdict,
        "why": landing.why,
        "target": target.name,
        "targetCommit": target.commit,
        "commit": landing.tip,
        "branchExists": landing.exists,
        "ownCommits": list(landing.commits),
        "heldBy": list(landing.holders),
        "changes": {"landed": landing.parts, "of": landing.of},
        "pushed": landing.pushed,
        "inProgress": list(landing.in_progress),
        "recorded": next(ends, None),
    }


def _lines(
    invocation: Invocation,
    wanted: Sequence[_Wanted],
    found: Sequence[Landing],
    target: Target,
    notes: Sequence[str],
) -> list[Line]:
    if not found:
        return [["no branches but ", target.name]]
    rows = [
        row(
            Piece(f"#{one.task.number}" if one.task else "", Tone.STRONG),
            Piece(landing.branch, Tone.NAME),
            Piece(_sentence(landing, target.name), _tone(landing.verdict)),
        )
        for one, landing in zip(wanted, found, strict=True)
    ]
    lines = table(rows, columns=invocation.columns)
    for note in filter(None, notes):
        parts = wrap(shown(note), invocation.columns - len(_NOTE))
        lines += [
            [Piece(f"{_NOTE if n == 0 else ' ' * len(_NOTE)}{part}", Tone.FAINT)]
            for n, part in enumerate(parts)
        ]
    return lines


def _tone(verdict: Landed) -> Tone:
    if verdict in _GOOD:
        return Tone.GOOD
    if verdict in _BAD:
        return Tone.BAD
    return Tone.WARN if verdict in {Landed.PARTLY, Landed.UNKNOWN} else Tone.PLAIN


def _sentence(landing: Landing, target: str) -> str:
    parts = [_verdict(landing, target)]
    if not landing.exists and landing.tip:
        parts.append("branch deleted")
    if not landing.verdict.is_in:
        parts += _pushed(landing)
    parts += [f"{name} in progress" for name in landing.in_progress]
    return ", ".join(parts)


def _verdict(landing: Landing, target: str) -> str:
    count = len(landing.commits)
    commits = f"{count} commit" if count == 1 else f"{count} commits"
    held = landing.holders[0][:_SHORT] if landing.holders else ""
    of = "1 change" if landing.of == 1 else f"{landing.of} changes"
    by_commits = f"one by one, up to {held}" if len(landing.holders) > 1 else f"as {held}"
    return {
        Landed.MISSING: "no such branch here",
        Landed.UNKNOWN: f"unknown: {landing.why}",
        Landed.EMPTY: "empty: no commit of its own",
        Landed.REVERTED: f"landed on {target} in {held}, and was reverted there",
        Landed.MERGED: f"merged into {target} by {held}",
        Landed.NO_CHANGE: f"no net change in {commits}",
        Landed.SQUASHED: f"squashed into {target} as {held}",
        Landed.REBASED: f"rebased onto {target} {by_commits}",
        Landed.EQUIVALENT: f"{target} has the same change"
        + (f" from somebody else, {held}" if held else ", in no commit of its own"),
        Landed.PARTLY: f"{landing.parts} of {of} on {target}" + (f", in {held}" if held else ""),
        Landed.CONFLICTING: f"open with {commits}, conflicts with {target}",
        Landed.OPEN: f"open with {commits}",
    }[landing.verdict]


def _pushed(landing: Landing) -> list[str]:
    if not landing.commits:
        return []
    return {
        Pushed.YES: ["pushed"],
        Pushed.OTHER: ["pushed at another commit"],
        Pushed.NO: ["not pushed"],
        Pushed.UNKNOWN: [],
    }[landing.pushed]
