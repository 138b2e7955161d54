"""The page: bare `lessor`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import click

from lessor.cli.board import Board, read_board
from lessor.cli.given import as_given, beside
from lessor.cli.halts import halt_word
from lessor.cli.invocation import Invocation
from lessor.cli.output import Record, columns, write_lines
from lessor.cli.phrases import first_line, first_paragraph, next_lines, paths_text, reason_text
from lessor.cli.text import Line, Piece, Tone, fit, pad, painted, shown, table, wrap
from lessor.cli.text import width as text_width
from lessor.cli.times import instant, lapse, stopwatch
from lessor.model.lifecycle import TaskState
from lessor.model.task import Task
from lessor.model.waiting import Cause
from lessor.service.reading import LeaseRecord

LABEL = 11
TITLE = 32
MOST_LINES = 4
REFRESH_MS = 1_000
MOST_ROWS = 12
_QUARANTINED, _RECONCILING = TaskState.QUARANTINED, TaskState.RECONCILING
NOWHERE = "tasks without a repository"


def show_page(invocation: Invocation, *, watch: bool) -> None:
    """Show the page once, or keep it up to date until Ctrl-C."""
    if not watch:
        board = read_board(invocation)
        if board.is_empty and invocation.for_people:
            from lessor.cli.found import found_lines

            write_lines(found_lines(invocation, board))
        else:
            invocation.answer(page_record(invocation, board), lambda: page_lines(board, columns()))
        return
    if not sys.stdout.isatty() or not invocation.for_people:
        raise click.UsageError("-w needs a terminal; without one, ask again when you want to know.")
    _watch(invocation)


def page_lines(board: Board, width: int) -> list[Line]:
    """The page's lines."""
    sections = [
        _section("running", _one_each(_leases(board.running, board, width)), width),
        _section("ready", _one_each(_ready(board, width)), width),
        _section("waits", _waits(board, width), width, unseen=_unseen(board)),
        _section("needs you", _needs(board, width), width),
        _section("to land", _one_each(_results(board, width)), width, unseen=board.unseen),
        _section("held", _one_each(_holds(board.holds, board, width)), width),
        _section("failed", _failures(board, width), width),
    ]
    body = [line for section in sections for line in section]
    return [*headlines(board, width), [], *body, [], *next_lines(next_steps(board))]


def headlines(board: Board, width: int) -> list[Line]:
    """Where one is, and how many of what there are; on two lines where one is too narrow."""
    waiting = board.queued - len(board.ready)
    # The section has all that wants a person; the words are those of the states.
    apart = Counter(t.state for t in board.needs_you if t.state in {_QUARANTINED, _RECONCILING})
    needing = len(board.needs_you) - apart.total()
    counts = [
        (len(board.running), "running"),
        (len(board.ready), "ready"),
        (waiting, "waits" if waiting == 1 else "wait"),
        (needing, "needs you" if needing == 1 else "need you"),
        *((apart[state], state.word) for state in (_QUARANTINED, _RECONCILING)),
        (len(board.to_land) + board.unseen, "to land"),
        (len(board.failed), "failed"),
    ]
    said = " · ".join(f"{number} {word}" for number, word in counts if number)
    name, where = (board.name, f" · {place(board)}") if board.name else (NOWHERE, "")
    head: Line = [Piece(name, Tone.STRONG), where]
    if not said:
        return [head]
    if text_width(f"{name}{where} · {said}") <= width:
        return [[*head, f" · {said}"]]
    return [head, [said]]


def place(board: Board) -> str:
    """`main@a1b2c3d`, or as much of it as there is."""
    if not board.commit:
        return f"{board.branch}, no commit yet" if board.branch else "no clone on this machine"
    return f"{board.branch or 'detached'}@{board.commit[:7]}"


def next_steps(board: Board) -> list[str]:
    """The one or two commands that are worth the most now."""
    steps = [_need_step(task, board) for task in board.needs_you[:1]]
    first = next((task for task in board.to_land if task.id not in board.behind), None)
    if first is not None:
        # On no branch nothing says where to land.
        onto = "" if board.branch or not board.commit else " --onto BRANCH"
        steps += [f"lessor diff {first.number}", f"lessor land {first.number}{onto}"]
    if not steps and board.failed:
        steps.append(f"lessor show {board.failed[0].number}")
    if len(steps) < 2 and board.ready and not board.running:  # noqa: PLR2004
        # Agents of a run work in a clone; what has none is claimed by whoever does it.
        steps.append("lessor run" if board.name else "lessor claim --repo none")
    paused = next((why.next_step for _, why in board.waits if why.cause is Cause.PAUSED), None)
    if paused and not board.ready:
        steps.append(paused)
    if not steps and board.waits:
        steps.append(f"lessor why {board.waits[0][0].number}")
    return steps or ['lessor add "…"']


def _need_step(task: Task, board: Board) -> str:
    """The one command that ends what a task wants of a person."""
    if task.state == "needs_person":
        return f'lessor answer {task.number} "…"'
    if task.id in board.blocking and not board.troubles.get(task.id):
        return f"lessor land {task.number}"
    return f"lessor show {task.number}"


def page_record(invocation: Invocation, board: Board) -> Record:
    """The page for programs."""
    from lessor.cli.records import lease_record, task_record, why_record

    repo = invocation.standing.key
    return {
        "repo": repo,
        "branch": board.branch or None,
        "commit": board.commit or None,
        "running": [lease_record(lease, repo=repo) for lease in board.running],
        "waits": [why_record(why) for _, why in board.waits],
        "ready": [task_record(task, repo=repo) for task in board.ready],
        "queued": board.queued,
        "needsYou": [task_record(task, repo=repo) for task in board.needs_you],
        "blocking": [
            {
                "taskId": one.task,
                "waiting": one.waiting,
                "first": one.first,
                "since": instant(one.since_ms),
            }
            for one in board.blocking.values()
        ],
        "toLand": [task_record(task, repo=repo) for task in board.to_land],
        "held": [lease_record(lease, repo=repo) for lease in board.holds],
        "failed": [task_record(task, repo=repo) for task in board.failed],
        "next": [as_given(step) for step in next_steps(board)],
    }


def _watch(invocation: Invocation) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), auto_refresh=False, screen=True) as live:
        try:
            while True:
                width = columns()
                lines = [
                    *page_lines(read_board(invocation), width),
                    [Piece("Ctrl-C ends it", Tone.FAINT)],
                ]
                text = "\n".join(painted(line, colour=True) for line in lines)
                live.update(Text.from_ansi(text, no_wrap=True), refresh=True)
                invocation.lessor.store.wait(REFRESH_MS)
        except KeyboardInterrupt:
            return


def _section(
    name: str, entries: Sequence[Sequence[Line]], width: int, *, unseen: int = 0
) -> list[Line]:
    """A name, and as many whole entries beside it as there is room for; `unseen` more weren't read."""
    tone = {"needs you": Tone.WARN, "failed": Tone.BAD, "running": Tone.GOOD}.get(name, Tone.NAME)
    rows: list[Line] = []
    left = unseen
    for n, entry in enumerate(entries):
        if len(rows) + len(entry) > MOST_ROWS:
            left += len(entries) - n
            break
        rows += entry
    lines: list[Line] = [
        [Piece(pad("" if n else name, LABEL), tone), *row] for n, row in enumerate(rows)
    ]
    if left:
        more = beside(f"and {left} more: lessor list")
        lines.append([pad("", LABEL), Piece(fit(more, width - LABEL), Tone.FAINT)])
    return lines


def _leases(leases: Sequence[LeaseRecord], board: Board, width: int) -> list[Line]:
    return table(
        (
            [
                f"{_number(lease.number, board)} {lease.title}",
                Piece(lease.agent, Tone.NAME),
                paths_text(lease.paths) if board.name else "",
                _age(lease, board),
            ]
            for lease in leases
        ),
        columns=width - LABEL,
    )


def _age(lease: LeaseRecord, board: Board) -> Piece:
    if not lease.live:
        return Piece("lease ran out", Tone.WARN)
    age, halt = stopwatch(board.now_ms - lease.granted_ms), board.halts.get(lease.id)
    return Piece(age) if halt is None else Piece(f"{age}, {halt_word(halt)}", Tone.WARN)


def _ready(board: Board, width: int) -> list[Line]:
    return table(
        (
            [
                f"{_number(task.number, board)} {task.title}",
                Piece(paths_text(task.scopes) if board.name else "", Tone.NAME),
            ]
            for task in board.ready
        ),
        columns=width - LABEL,
    )


def _holds(leases: Sequence[LeaseRecord], board: Board, width: int) -> list[Line]:
    return table(
        (
            [
                paths_text(lease.paths),
                Piece(lease.agent, Tone.NAME),
                f"{lapse(lease.expires_ms - board.now_ms)} left",
                Piece(beside(f"lessor drop {lease.number}"), Tone.FAINT),
            ]
            for lease in leases
        ),
        columns=width - LABEL,
    )


def _waits(board: Board, width: int) -> list[list[Line]]:
    rows = [
        (
            task,
            Piece(
                (
                    board.blocked[task.id].removeprefix("is ")
                    or reason_text(why, task, now=board.now_ms, brief=True)
                )
                + ("  (overdue)" if why.overdue else ""),
                Tone.WARN if why.overdue else Tone.PLAIN,
            ),
        )
        for task, why in board.waits
    ]
    return _told(rows, board, width)


def _unseen(board: Board) -> int:
    """How many of the queued weren't asked why they wait."""
    return max(board.queued - len(board.ready) - len(board.waits), 0)


def _needs(board: Board, width: int) -> list[list[Line]]:
    rows = [(task, Piece(_wish(task, board), Tone.WARN)) for task in board.needs_you]
    return _told(rows, board, width)


def _wish(task: Task, board: Board) -> str:
    """What a task wants of a person."""
    blocks = _blocks(task, board)
    if board.troubles.get(task.id):
        return f"can't land: {board.troubles[task.id]}{blocks}"
    if task.state == "needs_person":
        said = first_paragraph(task.said or "")
        return f'asks: "{said}"{blocks}' if said else f"asks you something{blocks}"
    if task.state == "succeeded":
        return f"waits to land{blocks}: {beside(f'lessor land {task.number}')}"
    if task.state == "quarantined":
        return f"quarantined: {first_line(task.last_error) or 'see lessor show'}"
    return "reconciling: may have had effects outside; look first"


def _blocks(task: Task, board: Board) -> str:
    """Whom a result keeps waiting for too long, as the end of what it wants."""
    one = board.blocking.get(task.id)
    if one is None:
        return ""
    others = f" and {one.waiting - 1} more" if one.waiting > 1 else ""
    verb = "waits" if one.waiting == 1 else "wait"
    return f"; #{one.first}{others} {verb} for it since {lapse(board.now_ms - one.since_ms)}"


def _told(rows: Sequence[tuple[Task, Piece]], board: Board, width: int) -> list[list[Line]]:
    """Tasks with a text each, which goes on below itself for a few lines.

    Where the texts leave room, the titles have it.
    """
    if not rows:
        return []
    free = width - LABEL - 2 - max(text_width(shown(told.text)) for _, told in rows)
    title = max(min(TITLE, (width - LABEL) // 2), free - len(_number(0, board)) - 1)
    heads = [f"{_number(task.number, board)} {fit(shown(task.title), title)}" for task, _ in rows]
    left = max(text_width(head) for head in heads)
    entries: list[list[Line]] = []
    for head, (_, told) in zip(heads, rows, strict=True):
        parts = wrap(shown(told.text), width - LABEL - left - 2)
        if len(parts) > MOST_LINES:
            parts = [*parts[: MOST_LINES - 1], f"{parts[MOST_LINES - 1].rstrip('.')}…"]
        entries.append(
            [
                [pad(head if n == 0 else "", left), "  ", Piece(part, told.tone)]
                for n, part in enumerate(parts)
            ]
        )
    return entries


def _one_each(lines: Sequence[Line]) -> list[list[Line]]:
    return [[line] for line in lines]


def _results(board: Board, width: int) -> list[Line]:
    return table(
        (
            [
                f"{_number(task.number, board)} {task.title}",
                Piece(board.sizes.get(task.id, ""), Tone.FAINT),
                Piece(task.stage, Tone.GOOD if task.stage == "verified" else Tone.WARN),
            ]
            for task in board.to_land
        ),
        columns=width - LABEL,
    )


def _failures(board: Board, width: int) -> list[list[Line]]:
    rows = [(task, Piece(first_line(task.last_error), Tone.BAD)) for task in board.failed]
    return _told(rows, board, width)


def _number(number: int, board: Board) -> str:
    """`#7`, as wide as the widest on the page, so that titles stand below each other."""
    tasks = (*board.ready, *(task for task, _ in board.waits), *board.needs_you)
    shown_ones = [task.number for task in (*tasks, *board.to_land, *board.failed)]
    shown_ones += [lease.number for lease in board.running]
    return pad(f"#{number}", len(f"#{max(shown_ones)}"))
