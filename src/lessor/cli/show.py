"""`lessor show`: one task on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lessor.cli.asked import Told, split_prompt
from lessor.cli.diff import counts_text
from lessor.cli.finding import find_task
from lessor.cli.given import beside
from lessor.cli.halts import halt_here, halt_text
from lessor.cli.invocation import Invocation
from lessor.cli.logs import logs_here
from lessor.cli.options import command, pass_invocation
from lessor.cli.phrases import begin_step, first_paragraph, next_lines, reason_text
from lessor.cli.records import lease_record, task_record, why_record
from lessor.cli.results import block_words, changed_files, landing_trouble
from lessor.cli.states import state_text, tone_of
from lessor.cli.text import Line, Piece, Tone, fit, pad, row, shown, table, wrap
from lessor.cli.times import clock_time, instant, lapse
from lessor.git.changes import FileChange
from lessor.model.grant import Result
from lessor.model.lease import SECOND, LeaseEnd
from lessor.model.lifecycle import is_terminal
from lessor.model.task import AD_HOC, DRILL, Task
from lessor.service.reading import HistoryEntry, LeaseRecord

LABEL = 11
MOST_TEXT_LINES = 12
MOST_FILES = 12
MOST_SAVED = 4
GAP = "     "
MOST_EVENTS = 10_000

_ENDS = {
    "completed": "completed",
    "failed": "failed",
    "released": "given back",
    "asked": "asked you",
    "cancelled": "cancelled",
    "lapsed": "its time ran out",
    "gone": "its process was proved gone",
    "rewound": "the store was restored",
    "forced": "taken by a person",
    "granted": "its turn came",
}
_PROOFS = {"reboot": "the machine restarted"}


@command("show")
@click.argument("task")
@pass_invocation
def show(invocation: Invocation, *, task: str) -> None:
    """Show what a task asked, said and changed, how it was checked, and why each lease ended."""
    found = find_task(invocation, task)
    leases = [
        lease for lease in invocation.lessor.leases.leases(task=found.id) if lease.kind == "lease"
    ]
    files = changed_files(invocation, found)
    record = _record(invocation, found, leases, files)
    invocation.answer(record, lambda: _lines(invocation, found, leases, files))


def _record(
    invocation: Invocation,
    task: Task,
    leases: Sequence[LeaseRecord],
    files: Sequence[FileChange],
) -> dict[str, object]:
    repo = invocation.standing.key or None
    return {
        **task_record(task, repo=repo),
        "why": why_record(invocation.lessor.tasks.why(task.id)),
        "needs": invocation.lessor.tasks.needs(task.id),
        "changed": [
            {"path": file.path, "added": file.added, "removed": file.removed} for file in files
        ],
        "leases": [
            {
                **lease_record(lease, repo=repo),
                "result": None if lease.result is None else {"facts": dict(lease.result.facts)},
                "logs": {name: str(file) for name, file in logs_here(invocation, lease.id).items()},
            }
            for lease in leases
        ],
        "salvaged": [
            {
                "epoch": saved.epoch,
                "n": saved.n,
                "ref": saved.ref,
                "archive": saved.archive,
                "files": saved.files,
                "at": instant(saved.at_ms),
            }
            for saved in invocation.lessor.salvages.of_task(task.id)
        ],
    }


def _lines(
    invocation: Invocation,
    task: Task,
    leases: Sequence[LeaseRecord],
    files: Sequence[FileChange],
) -> list[Line]:
    width = invocation.columns
    result = next((lease.result for lease in reversed(leases) if lease.result), None)
    facts = {} if result is None else result.facts
    asked, told = split_prompt(task, _history(invocation, task))
    lines = [_head(task, width), *_asked(task, asked, width), *_told(told, width)]
    known = {
        one.question for one in told
    }  # a question that was answered is shown beside the answer
    said = (task.said or "").strip()
    if said and said not in (task.last_error or "") and first_paragraph(said) not in known:
        lines += _shortened(_paragraph("said", f'"{said}"', width))
    if task.last_error:
        lines += _shortened(_paragraph("error", task.last_error.strip(), width, tone=Tone.BAD))
    lines += _logs(invocation, task, leases, width)
    lines += _changed(files, width)
    lines += _checked(task, result, width)
    trouble = landing_trouble(invocation, task)
    if trouble:
        lines += _paragraph("landing", trouble, width, tone=Tone.WARN)
    lines += _landed(invocation, task, width)
    lines += _leases(invocation, leases, width)
    lines += _saved(invocation, task, width)
    lines += _cost(facts, leases, width)
    if task.state in {"queued", "blocked", "running"}:
        why = invocation.lessor.tasks.why(task.id)
        now = reason_text(why, task, now=invocation.lessor.now_ms())
        lines += _paragraph("now", block_words(invocation, task) or now, width)
        halt = halt_here(invocation, leases[-1]) if leases else None
        if halt is not None:
            lines += _paragraph("", halt_text(halt), width, tone=Tone.WARN)
    followed = bool(leases) and "agent" in logs_here(invocation, leases[-1].id)
    steps = (
        _steps(task, files, followed=followed)
        if task.queue not in {AD_HOC, DRILL}
        else [_step_of_no_work(task)]
    )
    if task.state in {"needs_person", "quarantined"} and _is_here(invocation, task):
        steps.append(f"lessor open {task.number}")
    return [*lines, *next_lines(steps)]


def _is_here(invocation: Invocation, task: Task) -> bool:
    """Whether a worktree of it lies on this machine, for a person to look into."""
    known = invocation.lessor.workspaces.of_task(task.id)
    return any(w.host_id == invocation.host_id and Path(w.path).is_dir() for w in known)


def _head(task: Task, width: int) -> Line:
    state = state_text(task)
    # One that it only began from isn't its own.
    commit = f" {task.commit[:7]}" if task.commit and task.commit != task.base else ""
    said = f"{state}{commit}"
    number = f"#{task.number} "
    title = pad(shown(task.title), max(width - len(number) - len(said) - 2, 20))
    return [
        Piece(number, Tone.STRONG),
        Piece(title, Tone.STRONG),
        "  ",
        Piece(said, tone_of(state)),
    ]


def _history(invocation: Invocation, task: Task) -> list[HistoryEntry]:
    """What happened to the task, where that can matter to what it was asked for."""
    return (
        invocation.lessor.tasks.history(task.id, most=MOST_EVENTS)
        if task.prompt and task.epoch
        else []
    )


def _told(told: Sequence[Told], width: int) -> list[Line]:
    """What people told it since: answers beside their questions, and the words of a retry."""
    lines: list[Line] = []
    for one in told:
        if one.question:
            lines += _shortened(_paragraph("question", f'"{one.question}"', width))
        who = f"{one.who}: " if one.who else ""
        label = "answered" if one.question else "added"
        lines += _shortened(_paragraph(label, f"{who}{one.text.strip()}", width))
    return lines


def _asked(task: Task, text: str, width: int) -> list[Line]:
    lines = [] if task.repository else _paragraph("repo", "none", width)
    lines += _paragraph("asked", text, width) if text else []
    if len(lines) > MOST_TEXT_LINES:
        more = f"and {len(lines) - MOST_TEXT_LINES} more lines: -o json"
        lines = [*lines[:MOST_TEXT_LINES], [_label(""), Piece(more, Tone.FAINT)]]
    if task.scopes:
        lines += _paragraph("scope", ", ".join(task.scopes), width)
    if task.reads:
        lines += _paragraph("reads", ", ".join(task.reads), width)
    return lines


def _shortened(lines: list[Line]) -> list[Line]:
    """What was said or went wrong: how it begins, and above all how it ends."""
    if len(lines) <= MOST_TEXT_LINES:
        return lines
    begin = MOST_TEXT_LINES // 4
    left_out = f"… {len(lines) - MOST_TEXT_LINES + 1} lines: -o json"
    return [
        *lines[:begin],
        [_label(""), Piece(left_out, Tone.FAINT)],
        *lines[begin + 1 - MOST_TEXT_LINES :],
    ]


def _logs(
    invocation: Invocation, task: Task, leases: Sequence[LeaseRecord], width: int
) -> list[Line]:
    """Where all that the last agent and its check printed can be read, if that is on this machine."""
    found = logs_here(invocation, leases[-1].id) if leases else {}
    calls = [
        beside(f"lessor logs {task.number}{'' if name == 'agent' else f' --of {name}'}")
        for name in found
        if name != "setup"
    ]
    if len(GAP.join(calls)) <= width - LABEL:
        calls = [GAP.join(calls)]
    # Each is copied as it stands, so that none is broken between two lines.
    return [[_label("" if n else "logs"), call] for n, call in enumerate(calls) if call]


def _changed(files: Sequence[FileChange], width: int) -> list[Line]:
    rows = [row(file.path, counts_text(file.added, file.removed)) for file in files[:MOST_FILES]]
    lines: list[Line] = [
        [_label("" if n else "changed"), *line]
        for n, line in enumerate(table(rows, columns=width - LABEL))
    ]
    if len(files) > MOST_FILES:
        more = f"and {len(files) - MOST_FILES} more files"
        lines.append([_label(""), Piece(more, Tone.FAINT)])
    return lines


def _checked(task: Task, result: Result | None, width: int) -> list[Line]:
    took = None if result is None else result.facts.get("check_ms")
    time = f" in {_took(took)}" if isinstance(took, int) else ""
    on = f", on {task.commit[:7]}" if task.commit else ""
    # What was pushed or landed was no more checked by that.
    unchecked = result is not None and result.stage == "unverified"
    if result is not None and result.stage == "pushed" and took is None:
        return _paragraph("checked", "no check is on record", width, tone=Tone.WARN)
    match "unverified" if unchecked and task.stage in {"pushed", "landed"} else task.stage:
        case "verified" | "pushed" | "landed":
            what = task.check or "the project's check"
            return _paragraph("checked", f"{what}: passed{time}{on}", width, tone=Tone.GOOD)
        case "unverified":
            # Only a run looks for one; what a script completed was judged by itself.
            ran = result is not None and "rounds" in result.facts
            said = "no check was there to run" if ran else "no check is on record"
            return _paragraph("checked", said, width, tone=Tone.WARN)
        case "submitted":
            what = task.check or "the project's check"
            return _paragraph("checked", f"{what}: not passed{on}", width, tone=Tone.WARN)
        case _:
            return _paragraph("check", task.check, width) if task.check else []


def _landed(invocation: Invocation, task: Task, width: int) -> list[Line]:
    """Where a result landed: its branch may have been mended since, and a rebase makes other commits."""
    if task.stage != "landed":
        return []
    told = [e.facts for e in invocation.lessor.tasks.history(task.id) if e.kind == "landed"]
    if not told or not told[-1].get("target"):
        return []
    commit = str(told[-1].get("commit", ""))
    own = "" if commit == task.commit else f", as {commit[:7]}"
    return _paragraph("landed", f"on {told[-1]['target']}{own}", width, tone=Tone.GOOD)


def _leases(invocation: Invocation, leases: Sequence[LeaseRecord], width: int) -> list[Line]:
    now = invocation.lessor.now_ms()
    rows = []
    for lease in leases:
        ended = clock_time(lease.ended_ms, now=now) if lease.ended_ms is not None else "now"
        rows.append(
            row(
                f"epoch {lease.epoch}",
                Piece(lease.agent, Tone.NAME),
                f"{clock_time(lease.granted_ms, now=now)}\u2013{ended}",
                _end_text(lease, lease.end),
            )
        )
    return [
        [_label("" if n else "leases"), *line]
        for n, line in enumerate(table(rows, columns=width - LABEL))
    ]


def _end_text(lease: LeaseRecord, end: LeaseEnd | None) -> Piece:
    if end is None:
        return Piece("live", Tone.GOOD) if lease.live else Piece("ran out", Tone.WARN)
    text = _ENDS.get(end, end)
    if lease.proof:
        text = _PROOFS.get(lease.proof, f"{text}: {lease.proof}")
    if lease.late:
        text += f"; {lease.late} late write{'' if lease.late == 1 else 's'} refused"
    return Piece(text, Tone.GOOD if end == "completed" else Tone.PLAIN)


def _saved(invocation: Invocation, task: Task, width: int) -> list[Line]:
    lines: list[Line] = []
    known = invocation.lessor.salvages.of_task(task.id)
    for saved in known[-MOST_SAVED:]:
        files = f"{saved.files} file{'' if saved.files == 1 else 's'}" if saved.files else "commits"
        name = f"{task.number}/{saved.epoch}/{saved.n}"
        text = f"{files} of epoch {saved.epoch}: {beside(f'lessor salvage show {name}')}"
        lines += _paragraph("" if lines else "saved", text, width)
    if len(known) > MOST_SAVED:
        before = beside(f"lessor salvage list {task.number}")
        more = f"and {len(known) - MOST_SAVED} before: {before}"
        lines.append([_label(""), Piece(more, Tone.FAINT)])
    return lines


def _cost(facts: object, leases: Sequence[LeaseRecord], width: int) -> list[Line]:
    known = facts if isinstance(facts, dict) else {}
    parts = []
    if isinstance(known.get("cost_usd"), int | float):
        parts.append(f"${known['cost_usd']:.2f}")
    if isinstance(known.get("tokens"), int):
        parts.append(f"{known['tokens']:,} tokens")
    spent = sum((lease.ended_ms or lease.now_ms) - lease.granted_ms for lease in leases)
    if leases:
        parts.append(_took(spent))
    if isinstance(known.get("rounds"), int) and known["rounds"] > 1:
        parts.append(f"{known['rounds']} check rounds")
    label = "cost" if {"cost_usd", "tokens"} & known.keys() else "took"
    return _paragraph(label, ", ".join(parts), width) if parts else []


def _took(milliseconds: int) -> str:
    return lapse(milliseconds) if milliseconds >= SECOND else "under 1 s"


def _steps(task: Task, files: Sequence[FileChange], *, followed: bool) -> list[str]:
    number = task.number
    match task.state:
        case "needs_person":
            return [f'lessor answer {number} "…"']
        case "running":
            return [f"lessor logs {number} -f" if followed else f"lessor why {number}"]
        case "succeeded" if files:
            land = [] if task.stage == "landed" else [f"lessor land {number}"]
            return [f"lessor diff {number}", *land, f'lessor retry {number} "…"']
        case "blocked":
            return [f"lessor unblock {number}"]
        case "queued":
            return [begin_step(task), f"lessor why {number}"]
        case _:
            return [f'lessor retry {number} "…"', f"lessor history {number}"]


def _step_of_no_work(task: Task) -> str:
    """What comes next where a task stood for held paths, or for a drill: nobody asks for it again."""
    held = task.queue == AD_HOC and not is_terminal(task.state)
    return f"lessor {'drop' if held else 'history'} {task.number}"


def _paragraph(label: str, text: str, width: int, *, tone: Tone = Tone.PLAIN) -> list[Line]:
    lines: list[Line] = []
    for part in text.split("\n"):
        if not part.strip():
            continue  # what agents and checks print has many empty lines
        for piece in wrap(shown(part.rstrip().expandtabs(4)), width - LABEL):
            lines.append([_label(label if not lines else ""), Piece(fit(piece, width), tone)])
    return lines


def _label(text: str) -> Piece:
    return Piece(pad(f"  {text}", LABEL), Tone.FAINT)
