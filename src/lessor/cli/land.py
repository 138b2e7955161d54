"""`lessor land`: results onto their branch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lessor.cli.finding import find_tasks
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.output import Record, columns, write_lines
from lessor.cli.phrases import next_lines, title_line
from lessor.cli.text import Line, Piece, Tone, pad, shown, width, wrap
from lessor.cli.to_land import in_landing_order
from lessor.errors import ConflictError, GitError, InvalidError
from lessor.git.repository import current_branch
from lessor.model.task import Task

if TYPE_CHECKING:
    from lessor.runner.landing import Landing

_WAITS_FOR_A_PERSON = 8
_SHORT = 7


@command("land")
@click.argument("tasks", nargs=-1, metavar="[N…]")
@click.option("--all", "every", is_flag=True, help="Every result that hasn't landed.")
@click.option("--onto", metavar="BRANCH", help="Where to; else the branch that you are on.")
@click.option("--pr", "pull_request", is_flag=True, hidden=True)
@pass_invocation
def land(
    invocation: Invocation,
    *,
    tasks: tuple[str, ...],
    every: bool,
    onto: str | None,
    pull_request: bool,
) -> int:
    """Put results onto a branch: rebased, checked there, and only then the branch moves.

    That is done beside your checkout. One that has the branch is moved along by git's own
    fast-forward where it has no uncommitted changes; else nothing is done. What conflicts is given
    back with the paths, and the others land.
    """
    if bool(tasks) == every:
        raise click.UsageError("Name the results, lessor land 1 2, or say --all.")
    if pull_request:
        raise _no_pull_request(invocation, tasks, onto)
    from lessor.cli.running import ensure_trusted, landing_desk
    from lessor.runner.landing import Came, Lander

    branch = onto or _branch_here(invocation, tasks)
    ensure_trusted(invocation, invocation.project(commit=_tip(invocation, branch)))
    wanted = _all(invocation) if every else find_tasks(invocation, tasks)
    told: set[str] = set()

    def tell(task: Task, text: str) -> None:
        if invocation.for_people:
            head = [] if task.id in told else [title_line(task.number, task.title)]
            told.add(task.id)
            write_lines([*head, ["   ", Piece(text, Tone.FAINT)]])

    done = Lander(landing_desk(invocation), branch=branch, tell=tell).land(wanted)
    if invocation.for_people:
        write_lines(_lines(done, branch))
    else:
        invocation.answer_all([_record(one, branch) for one in done], list)
    came = {one.came for one in done}
    if came & {Came.CONFLICTS, Came.WAITS}:
        return _WAITS_FOR_A_PERSON
    return int(Came.CHECK_FAILED in came)


def _no_pull_request(
    invocation: Invocation, tasks: Sequence[str], onto: str | None
) -> InvalidError:
    """Lessor opens none: what a remote calls so, and who may open one, is the remote's own matter."""
    import shutil

    branches = [task.branch for task in find_tasks(invocation, tasks) if task.branch]
    step = f"Push the result: git push -u origin {' '.join(branches) or 'BRANCH'}"
    if len(branches) == 1 and shutil.which("gh"):
        onto_text = f" --base {shlex.quote(onto)}" if onto else ""
        step += f" && gh pr create --fill --head {branches[0]}{onto_text}"
    return InvalidError(
        "Lessor opens no pull request; once one is merged, `lessor landed` finds its result there.",
        next_step=step,
        branches=branches,
    )


def _branch_here(invocation: Invocation, tasks: Sequence[str]) -> str:
    checkout = invocation.standing.checkout_or_refuse()
    branch = current_branch(checkout.cwd)
    if branch is None:
        raise ConflictError(
            "You are on no branch, so nothing says where to land.",
            next_step=f"Name one: lessor land {shlex.join(tasks) or '--all'} --onto BRANCH.",
        )
    return branch


def _tip(invocation: Invocation, branch: str) -> str:
    from lessor.git.refs import BRANCHES, read_ref

    common_dir = invocation.standing.checkout_or_refuse().repository.common_dir
    tip = read_ref(common_dir, f"{BRANCHES}{branch}")
    if tip is None:
        raise GitError(
            f"There is no branch {branch!r} here.", next_step="Name another: --onto BRANCH."
        )
    return tip


def _all(invocation: Invocation) -> list[Task]:
    results = invocation.lessor.landings.results(repository=invocation.repository)
    return in_landing_order(invocation.lessor, results)


def _lines(done: Sequence[Landing], branch: str) -> list[Line]:
    if not done:
        return [["nothing to land"], *next_lines(["lessor"])]
    steps = [one.step for one in done if one.step]
    wide = max(len(f"#{one.task.number}") for one in done)
    told = [line for one in done for line in _result(one, branch, wide + 2)]
    return [[], *told, *next_lines(steps[:1] or ["lessor"])]


def _result(one: Landing, branch: str, left: int) -> list[Line]:
    """What a landing came to; what doesn't fit beside that stands below it."""
    head = Piece(pad(f"#{one.task.number}", left), Tone.STRONG)
    moved = "" if one.new is None else f"  {branch} {one.old[:_SHORT]} -> {one.new[:_SHORT]}"
    good = one.new is not None or one.came == "there already"
    word = Piece("landed" if moved else one.came, Tone.GOOD if good else Tone.WARN)
    text = shown(one.text)
    if text.startswith(f"{word.text} "):  # it begins with the same word: conflicts with …
        beside = text.removeprefix(word.text)
    else:
        beside = f"{moved}  {text}"
    if width(f"{pad('', left)}{word.text}{beside}") <= columns():
        return [[head, word, beside]]
    below = wrap(text.removeprefix(f"{word.text} "), columns() - left)
    return [[head, word, moved], *([pad("", left), part] for part in below)]


def _record(one: Landing, branch: str) -> Record:
    return {
        "taskId": one.task.id,
        "number": one.task.number,
        "outcome": one.came,
        "target": branch,
        "from": one.old or None,
        "to": one.new,
        "text": one.text,
        "conflicts": list(one.conflicts),
        "next": one.step or None,
    }
