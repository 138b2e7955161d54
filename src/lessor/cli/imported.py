"""What an import did, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lessor.cli.add import find_project
from lessor.cli.files import path_rules
from lessor.cli.invocation import Invocation
from lessor.cli.phrases import next_lines, paths_text
from lessor.cli.records import task_record
from lessor.cli.text import Line, Piece, Tone, row, table
from lessor.model.claiming import Taken
from lessor.model.lifecycle import TaskState
from lessor.model.scope import Mode, parse_scopes
from lessor.model.task import Task
from lessor.project.wish import Wish


class Fate(StrEnum):
    """What became of one line."""

    ADDED = "added"
    CHANGED = "changed"
    SAME = "same"
    BEGUN = "begun"  # it differs, and somebody has begun it
    TICKED = "ticked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One line, its task, and what became of it."""

    wish: Wish
    fate: Fate
    task: Task | None


def import_record(item: Imported, *, repo: str | None) -> dict[str, object]:
    """One line for programs; `repo` is the repository's key."""
    task = None if item.task is None else task_record(item.task, repo=repo)
    return {"line": item.wish.line, "id": item.wish.id, "fate": item.fate, "task": task}


def import_lines(
    invocation: Invocation, imported: Sequence[Imported], left_out: Sequence[Task]
) -> list[Line]:
    """The import for people: what became of each line, and what can run now.

    Args:
        left_out: queued tasks of earlier imports that the file no longer asks for.
    """
    counts = Counter(item.fate for item in imported)
    said = ", ".join(_counted(fate, number) for fate, number in counts.items())
    more = "   (run it again any time: nothing is doubled)"
    fits = len(said) + len(more) <= invocation.columns
    head: Line = [Piece(said, Tone.STRONG), more if fits else ""]
    tones = {Fate.ADDED: Tone.GOOD, Fate.CHANGED: Tone.WARN, Fate.BEGUN: Tone.BAD}
    rows = (
        row(
            f"  #{item.task.number}" if item.task else "  \u2013",
            Piece(_WORDS[item.fate], tones.get(item.fate, Tone.FAINT)),
            item.wish.title,
            Piece(_waits_text(invocation, item), Tone.NAME),
        )
        for item in imported
    )
    lines = [head, *table(rows, columns=invocation.columns)]
    lines += [
        [Piece(f"  #{task.number} isn't asked for any more", Tone.WARN), f": {task.title}"]
        for task in left_out
    ]
    side_by_side = _side_by_side(invocation)
    steps = ["lessor run" if side_by_side < 2 else f"lessor run -n {min(side_by_side, 3)}"]  # noqa: PLR2004
    if left_out:
        steps.append(f"lessor cancel {' '.join(str(task.number) for task in left_out)}")
    if side_by_side:
        how = "tasks can run side by side" if side_by_side > 1 else "task can run"
        lines.append([f"{side_by_side} {how} now"])
    return [*lines, *next_lines(steps)]


def _counted(fate: Fate, number: int) -> str:
    words = _WORDS[fate]
    return f"{number} {words if number == 1 else words.replace('it was', 'they were')}"


def _waits_text(invocation: Invocation, item: Imported) -> str:
    if item.task is None:
        return ""
    needs = [
        invocation.lessor.tasks.task(need) for need in invocation.lessor.tasks.needs(item.task.id)
    ]
    waiting = [f"#{need.number}" for need in needs if need.state is not TaskState.SUCCEEDED]
    after = f", after {' '.join(waiting)}" if waiting else ""
    return f"{paths_text(item.task.scopes)}{after}"


def _side_by_side(invocation: Invocation) -> int:
    """How many ready tasks of the repository don't want each other's paths, for one agent."""
    project = find_project(invocation)
    mine = {None, project.agent if project else None}
    ready = [
        task
        for task in invocation.lessor.tasks.ready(repository=invocation.repository, most=100)
        if task.agent in mine
    ]
    taken, count = Taken(), 0
    for place, task in enumerate(ready):
        rules = path_rules(invocation, task.repository)
        scopes = (
            *parse_scopes(task.scopes, mode=Mode.WRITE, rules=rules),
            *parse_scopes(task.reads, mode=Mode.READ, rules=rules),
        )
        if taken.overlapping(scopes) is None:
            taken.add(place, scopes)
            count += 1
    return count


_WORDS = {
    Fate.ADDED: "added",
    Fate.CHANGED: "changed",
    Fate.SAME: "unchanged",
    Fate.BEGUN: "begun, left as it was",
    Fate.TICKED: "ticked",
}
