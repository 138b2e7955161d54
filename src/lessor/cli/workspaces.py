"""`lessor workspace`: the worktrees that Lessor made on this machine."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from lessor.cli.budgets import excess_text, overrun_of_records
from lessor.cli.finding import lease_named
from lessor.cli.invocation import Invocation
from lessor.cli.looks import (
    look_record,
    next_step,
    verdict_piece,
    verdict_text,
    why_text,
    workspace_record,
)
from lessor.cli.options import Command, group, pass_invocation
from lessor.cli.phrases import bytes_text, next_lines, title_line
from lessor.cli.sites import site_here, workspaces_of
from lessor.cli.text import Line, Piece, Tone, pad, row, shown, table, wrap
from lessor.cli.times import lapse
from lessor.cli.tokens import holding
from lessor.git.inspection import Verdict, inspect_worktree
from lessor.git.registry import find_linked
from lessor.model.task import Task
from lessor.model.workspace import Workspace
from lessor.runner.adopting import adopt_left
from lessor.runner.looking import Look, disk_bytes, look_at, with_merged
from lessor.runner.occupants import occupants
from lessor.runner.site import Site

LABEL = 11
MOST_NAMED = 20


@group("workspace")
@click.pass_context
def workspace(ctx: click.Context) -> None:
    """List and inspect worktrees, or go on in one that was left."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_workspaces)


@workspace.command("list", cls=Command)
@click.option("--size", is_flag=True, help="Say what each takes on disk; that takes a while.")
@pass_invocation
def list_workspaces(invocation: Invocation, *, size: bool = False) -> None:
    """List the worktrees on this machine.

    They are listed as they were recorded; `inspect` looks into them.
    """
    site = site_here(invocation)
    found = site.lessor.workspaces.on_host(site.host.id, repository=site.repository)
    tasks = {one.task: site.lessor.tasks.task(one.task) for one in found}
    sizes = {one.id: disk_bytes(Path(one.path)) for one in found} if size else {}
    records = [
        {
            **workspace_record(invocation, one, tasks[one.task]),
            **({"bytes": sizes[one.id]} if size else {}),
        }
        for one in found
    ]
    invocation.answer_all(records, lambda: _list_lines(invocation, site, found, tasks, sizes))


@workspace.command("inspect", cls=Command)
@click.argument("task", metavar="N|PATH")
@pass_invocation
def inspect(invocation: Invocation, *, task: str) -> None:
    """Look whether a task's worktrees may go.

    It says what would be lost, and writes nothing.
    PATH names a worktree of this clone that the store has no record of.
    """
    site = site_here(invocation)
    if "/" in task:
        _inspect_path(invocation, site, Path(task).absolute())
        return
    known, found = workspaces_of(invocation, site, task)
    looks = with_merged(site, [look_at(site, one) for one in found])
    invocation.answer_all(
        [look_record(invocation, look, known) for look in looks],
        lambda: _inspect_lines(invocation, known, looks),
    )


@workspace.command("adopt", cls=Command)
@click.argument("task")
@pass_invocation
def adopt(invocation: Invocation, *, task: str) -> None:
    """Go on in a worktree that an earlier lease left.

    It needs the task's lease: lessor claim --task N. What the worktree holds is saved before; one whose
    agent may still live is refused. Half a worktree is made whole.
    """
    site = site_here(invocation)
    known, found = workspaces_of(invocation, site, task)
    lease = site.lessor.leases.lease(
        lease_named(invocation, task, free="Take it first: lessor claim --task")
    )
    with holding(invocation, lease.id) as holder:
        taken = adopt_left(site, holder, found, label=lease.label)
    record = workspace_record(invocation, taken, known)
    invocation.answer(record, lambda: _adopted_lines(known, taken))


def _inspect_path(invocation: Invocation, site: Site, path: Path) -> None:
    entry = find_linked(site.repo, path)
    found = inspect_worktree(entry.path, base=entry.head, snapshot={}, occupants=occupants)
    size = disk_bytes(entry.path)
    root = shlex.quote(str(site.repo.root))
    place = shlex.quote(str(entry.path))
    forced = " -f -f" if entry.is_lessors else ""  # Lessor's stay locked
    step = f"git -C {root} worktree remove{forced} {place}"
    record = {
        "path": str(entry.path),
        "onBranch": entry.branch,
        "head": entry.head or None,
        "lockedReason": entry.locked_reason,
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "dirty": list(found.dirty),
        "bytes": size,
    }

    def lines() -> list[Line]:
        told: list[Line] = [
            [Piece(shown(str(entry.path)), Tone.STRONG), "  ", verdict_text(found.verdict)],
            [_label("branch"), entry.branch or "a detached HEAD"],
            [_label("locked"), entry.locked_reason or "no"],
            *_paragraph("why", "; ".join(found.reasons) or "nothing in it", invocation.columns),
            *_dirty_lines(found.dirty),
            [_label("size"), bytes_text(size)],
        ]
        return [*told, *next_lines([step if found.may_be_removed else f"cd {place}"])]

    invocation.answer(record, lines)


def _list_lines(
    invocation: Invocation,
    site: Site,
    found: Sequence[Workspace],
    tasks: dict[str, Task],
    sizes: dict[int, int],
) -> list[Line]:
    if not found:
        return [["no worktrees of Lessor's are here"], *next_lines(["lessor"])]
    now = site.lessor.now_ms()
    rows = (
        row(
            f"#{tasks[one.task].number}",
            tasks[one.task].title,
            Piece(one.state, Tone.NAME),
            one.branch,
            Piece(f"{lapse(now - one.at_ms)} ago", Tone.FAINT),
            bytes_text(sizes[one.id]) if sizes else "",
        )
        for one in found
    )
    first = tasks[found[0].task].number
    steps = [f"lessor workspace inspect {first}", "lessor clean --dry-run"]
    lines = table(rows, columns=invocation.columns)
    for excess in overrun_of_records(invocation, found).excesses:
        lines.append([Piece("budget   ", Tone.WARN), excess_text(excess)])
    return [*lines, *next_lines(steps)]


def _inspect_lines(invocation: Invocation, task: Task, looks: Sequence[Look]) -> list[Line]:
    lines: list[Line] = []
    for look in looks:
        workspace = look.workspace
        lines += [
            title_line(task.number, task.title, verdict_piece(look)),
            [_label("path"), workspace.path],
            [_label("epoch"), f"{workspace.epoch}, {workspace.state}"],
            [_label("branch"), _branch_text(look)],
            *_paragraph("why", why_text(look), invocation.columns),
        ]
        if look.found is not None:
            lines += _dirty_lines(look.found.dirty)
        if look.bytes:
            lines.append([_label("size"), bytes_text(look.bytes)])
    steps = list(dict.fromkeys(_steps(looks, task)))
    return [*lines, *next_lines(steps)]


def _dirty_lines(dirty: Sequence[str]) -> list[Line]:
    lines: list[Line] = [
        [_label("" if n else "holds"), shown(path)] for n, path in enumerate(dirty[:MOST_NAMED])
    ]
    if len(dirty) > MOST_NAMED:
        more = f"and {len(dirty) - MOST_NAMED} more: -o json"
        lines.append([_label(""), Piece(more, Tone.FAINT)])
    return lines


def _steps(looks: Sequence[Look], task: Task) -> list[str]:
    """What goes on with each; whoever has just looked goes in, and may take it away by name."""
    own = f"lessor workspace inspect {task.number}"
    steps: list[str] = []
    for look in looks:
        step = next_step(look, task)
        steps.append(f"cd {shlex.quote(look.workspace.path)}" if step == own else step)
    if any(look.verdict in {Verdict.HOLDS_WORK, Verdict.UNKNOWN} for look in looks):
        steps.append(f"lessor clean --discard {task.number}")
    return steps


def _branch_text(look: Look) -> str:
    workspace, found = look.workspace, look.found
    if found is None:
        return workspace.branch
    commits = len(found.commits)
    on = found.branch or f"a detached HEAD (made for {workspace.branch})"
    many = f"{commits} commit{'' if commits == 1 else 's'}"
    return f"{on}, {many} past {workspace.base[:7]}" if commits else f"{on}, no commits"


def _adopted_lines(task: Task, taken: Workspace) -> list[Line]:
    return [
        title_line(task.number, task.title, Piece("is yours to go on with", Tone.GOOD)),
        [_label("path"), taken.path],
        *next_lines([f"cd {shlex.quote(taken.path)}"]),
    ]


def _paragraph(label: str, text: str, width: int) -> list[Line]:
    return [
        [_label("" if n else label), part]
        for n, part in enumerate(wrap(shown(text), width - LABEL))
    ]


def _label(text: str) -> Piece:
    return Piece(pad(f"  {text}", LABEL), Tone.FAINT)
