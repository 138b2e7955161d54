"""`lessor clean`: worktrees that nothing is lost with are removed, the others listed with a reason."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lessor.cli.budgets import excess_text, overrun_of
from lessor.cli.confirming import confirm, yes_option
from lessor.cli.finding import find_task
from lessor.cli.given import beside
from lessor.cli.given_up import (
    LABEL,
    found_lines,
    found_records,
    going_lines,
    result_record,
    unlanded_of,
    with_results,
)
from lessor.cli.invocation import Invocation
from lessor.cli.looks import look_record, next_step, verdict_piece, why_text
from lessor.cli.options import command, pass_invocation
from lessor.cli.phrases import bytes_text, next_lines
from lessor.cli.sites import site_here, workspaces_of
from lessor.cli.text import Line, Piece, Tone, fit, pad, row, shown, table, wrap
from lessor.errors import ConflictError
from lessor.git.inspection import Verdict
from lessor.model.budget import Overrun
from lessor.model.task import Task
from lessor.runner.cleaning import (
    Cleaning,
    Fate,
    Outcome,
    clean,
    discard,
    give_up,
    settle_results,
)
from lessor.runner.looking import Look, look_at, with_merged
from lessor.runner.site import Site
from lessor.runner.unrecorded import Stray

FAILED = 1
_LEFT = {Fate.REMOVED, Fate.FORGOTTEN, Fate.GONE}


@command("clean")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option(
    "--discard", "named", multiple=True, metavar="N", help="Take away this task's, work or not."
)
@yes_option
@pass_invocation
def clean_(invocation: Invocation, *, dry_run: bool, named: tuple[str, ...], yes: bool) -> int:
    """Remove the worktrees of this repository that nothing is lost with; list the others.

    A worktree goes if it is empty, its commits are merged, or they stay on its branch and all its
    ignored files are as setup left them. Branches stay. Whatever holds work stays, with the reason
    and a command.

    Results that landed, or whose branch was deleted and that nothing else has, are recorded: they are
    no ground for later tasks any more.

    --discard takes a task's worktrees away although they hold work: all of it is saved first (see
    lessor salvage). A result that hasn't landed is given up with that; its branch stays. It shows what
    goes and asks.
    """
    if named:
        return _discard(invocation, named, dry=dry_run, yes=yes)
    site = site_here(invocation)
    done = clean(site, dry=dry_run)
    outcomes = done.outcomes
    tasks = _tasks(invocation, [outcome.look for outcome in outcomes])
    overrun = overrun_of(invocation, [one.look for one in outcomes if one.fate not in _LEFT])
    records = [
        {
            **_record(invocation, one, tasks, dry=dry_run),
            "overBudget": one.look.workspace.id in overrun.proposed,
        }
        for one in outcomes
    ]
    records += [_stray_record(stray) for stray in done.strays]
    records += found_records(done)
    invocation.answer_all(
        records, lambda: _all_lines(invocation, done, tasks, overrun, dry=dry_run)
    )
    failed = done.refused or any(outcome.fate is Fate.FAILED for outcome in outcomes)
    return FAILED if failed else 0


def _discard(invocation: Invocation, named: Sequence[str], *, dry: bool, yes: bool) -> int:
    site = site_here(invocation)
    if not dry:
        settle_results(site)  # what landed isn't given up
    results = unlanded_of(invocation, named)
    looks = _looks_of(invocation, site, named, results)
    tasks = _tasks(invocation, looks)
    for look in looks:
        _refuse_others(look, tasks[look.workspace.task])
    if dry:
        planned = [Outcome(look=look, fate=Fate.REMOVED, why=why_text(look)) for look in looks]
    else:
        again = f"lessor clean {' '.join(f'--discard {name}' for name in named)} --yes"
        going = _going_lines(invocation, looks, tasks) + going_lines(results)
        question = "Save it, and take it away?" if looks else "Give it up?"
        confirm(invocation, question, going, yes=yes, again=again)
        planned = [discard(site, look) for look in looks]
        for result in results:
            give_up(site, result.id)
    records = [_record(invocation, one, tasks, dry=dry) for one in planned]
    records += [result_record(task, "given up", "discarded by a person") for task in results]
    invocation.answer_all(
        records,
        lambda: with_results(_lines(invocation, planned, tasks, dry=dry), results, dry=dry),
    )
    return 0


def _looks_of(
    invocation: Invocation, site: Site, named: Sequence[str], results: Sequence[Task]
) -> list[Look]:
    """The worktrees of the named tasks; only one with a result to give up may have none."""
    looks = []
    without = {task.id for task in results if not invocation.lessor.workspaces.of_task(task.id)}
    for name in named:
        if find_task(invocation, name).id not in without:
            _, found = workspaces_of(invocation, site, name)
            looks += [look_at(site, workspace) for workspace in found]
    return with_merged(site, list({look.workspace.id: look for look in looks}.values()))


def _refuse_others(look: Look, task: Task) -> None:
    """Refuse what another clone has, and what is in use."""
    if look.clone is not None:
        raise ConflictError(
            f"#{task.number} has its worktree in another clone.",
            next_step=f"Run this there: {next_step(look, task)}",
            path=look.workspace.path,
        )
    if look.verdict is Verdict.IN_USE:
        raise ConflictError(
            f"#{task.number} is in use: {'; '.join(look.reasons)}.",
            next_step="Nothing was removed; end that first.",
            path=look.workspace.path,
            reasons=list(look.reasons),
        )


def _tasks(invocation: Invocation, looks: Sequence[Look]) -> dict[str, Task]:
    ids = {look.workspace.task for look in looks}
    return {task: invocation.lessor.tasks.task(task) for task in ids}


def _record(
    invocation: Invocation, outcome: Outcome, tasks: dict[str, Task], *, dry: bool
) -> dict[str, object]:
    look = outcome.look
    left = outcome.fate in _LEFT
    return {
        **look_record(invocation, look, tasks[look.workspace.task]),
        "fate": outcome.fate,
        "why": outcome.why,
        "removed": left and not dry,
        "savedRef": outcome.saved.ref,
        "savedArchive": str(outcome.saved.archive) if outcome.saved.archive else None,
        "savedFiles": len(outcome.saved.files),
    }


def _stray_record(stray: Stray) -> dict[str, object]:
    return {
        "path": str(stray.path),
        "verdict": Verdict.UNKNOWN,
        "fate": Fate.STAYS,
        "why": stray.why,
        "removed": False,
        "nextStep": stray.step,
    }


def _all_lines(
    invocation: Invocation,
    done: Cleaning,
    tasks: dict[str, Task],
    overrun: Overrun,
    *,
    dry: bool,
) -> list[Line]:
    if done == Cleaning(outcomes=()):
        return [["no worktrees of Lessor's are here"], *next_lines(["lessor"])]
    *lines, last = _lines(invocation, done.outcomes, tasks, dry=dry)
    for stray in done.strays:
        lines += _wrapped("stays", f"{stray.path}: {stray.why}", invocation.columns)
        lines.append([pad("", LABEL), Piece(stray.step, Tone.FAINT)])
    for error in done.refused:
        text = f"{error.message} {error.next_step}"
        lines += _wrapped("stuck", text, invocation.columns, tone=Tone.BAD)
    if done.noted:
        many = "1 salvage" if done.noted == 1 else f"{done.noted} salvages"
        lines.append([Piece(pad("found", LABEL), Tone.NAME), f"{many} that the store had missed"])
    lines += found_lines(done)
    for n, excess in enumerate(overrun.excesses):
        label = Piece(pad("" if n else "budget", LABEL), Tone.WARN)
        lines.append([label, excess_text(excess)])
    numbers = [
        tasks[outcome.look.workspace.task].number
        for outcome in done.outcomes
        if outcome.look.workspace.id in overrun.proposed
    ]
    if not numbers or dry:
        return [*lines, last]
    named = " ".join(f"--discard {number}" for number in dict.fromkeys(numbers))
    return [*lines, *next_lines([f"lessor clean {named}"])]


def _lines(
    invocation: Invocation,
    outcomes: Sequence[Outcome],
    tasks: dict[str, Task],
    *,
    dry: bool,
) -> list[Line]:
    gone = [outcome for outcome in outcomes if outcome.fate in _LEFT]
    stay = [outcome for outcome in outcomes if outcome.fate not in _LEFT]
    width = invocation.columns
    lines: list[Line] = []
    lines += _gone_lines(gone, tasks, "would go" if dry else "removed", width)
    steps = _going_on(stay, tasks)
    for n, outcome in enumerate(stay):
        lines += _stay_lines(outcome, tasks, "" if n else "stays", width)
        if len(steps) > 1:  # one alone is said by the last line
            step = next_step(outcome.look, tasks[outcome.look.workspace.task])
            lines.append([pad("", LABEL), Piece(step, Tone.FAINT)])
    freed = sum(outcome.look.bytes for outcome in gone)
    if freed:
        lines.append([Piece(bytes_text(freed), Tone.STRONG), " to free" if dry else " free again"])
    return [*lines, *next_lines([_step(gone, stay, tasks, dry=dry)])]


def _step(
    gone: Sequence[Outcome], stay: Sequence[Outcome], tasks: dict[str, Task], *, dry: bool
) -> str:
    if dry and gone:
        return "lessor clean"
    steps = _going_on(stay, tasks)
    return steps[0] if len(steps) == 1 else "lessor"


def _going_on(stay: Sequence[Outcome], tasks: dict[str, Task]) -> list[str]:
    """The commands that go on with what stays, each once."""
    return list(dict.fromkeys(next_step(one.look, tasks[one.look.workspace.task]) for one in stay))


def _gone_lines(
    gone: Sequence[Outcome], tasks: dict[str, Task], label: str, width: int
) -> list[Line]:
    rows = []
    for outcome in gone:
        look = outcome.look
        task = tasks[look.workspace.task]
        was_there = outcome.fate is Fate.REMOVED
        rows.append(
            row(
                f"#{task.number} {task.title}",
                Piece(why_text(look) if was_there else "its directory was gone", Tone.FAINT),
                bytes_text(look.bytes) if look.bytes else "",
            )
        )
    told = table(rows, columns=width - LABEL)
    lines: list[Line] = []
    for n, (outcome, line) in enumerate(zip(gone, told, strict=True)):
        lines.append([Piece(pad("" if n else label, LABEL), Tone.GOOD), *line])
        lines += _saved_lines(outcome, tasks[outcome.look.workspace.task])
    return lines


def _saved_lines(outcome: Outcome, task: Task) -> list[Line]:
    if not (outcome.saved.ref or outcome.saved.archive):
        return []
    files = len(outcome.saved.files)
    what = f"{files} file{'' if files == 1 else 's'}" if files else "its commits"
    return [
        [pad("", LABEL), f"{what} saved: ", Piece(beside(f"lessor salvage list {task.number}"))]
    ]


def _stay_lines(outcome: Outcome, tasks: dict[str, Task], label: str, width: int) -> list[Line]:
    look = outcome.look
    task = tasks[look.workspace.task]
    head = f"#{task.number} {shown(task.title)}"
    failed = outcome.fate is Fate.FAILED
    verdict = Piece("couldn't go", Tone.BAD) if failed else verdict_piece(look)
    lines: list[Line] = [
        [
            Piece(pad(label, LABEL), Tone.WARN),
            fit(head, width - LABEL - len(verdict.text) - 2),
            "  ",
            verdict,
        ]
    ]
    return lines + _wrapped("", outcome.why, width)


def _wrapped(label: str, text: str, width: int, *, tone: Tone = Tone.PLAIN) -> list[Line]:
    parts = wrap(shown(text.strip()), width - LABEL)
    return [
        [Piece(pad("" if n else label, LABEL), tone), part] for n, part in enumerate(parts) if part
    ]


def _going_lines(
    invocation: Invocation, looks: Sequence[Look], tasks: dict[str, Task]
) -> list[Line]:
    """What a discard would take away."""
    lines: list[Line] = []
    for look in looks:
        task = tasks[look.workspace.task]
        lines.append(
            [Piece(f"#{task.number} ", Tone.STRONG), shown(task.title), "  ", verdict_piece(look)]
        )
        lines += _wrapped("", why_text(look), invocation.columns)
        lines.append([pad("", LABEL), Piece(look.workspace.path, Tone.FAINT)])
    return lines
