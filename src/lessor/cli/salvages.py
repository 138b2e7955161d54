"""`lessor salvage`: what was saved before a worktree was taken away, listed, shown, given back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from lessor.cli.confirming import confirm, yes_option
from lessor.cli.invocation import Invocation
from lessor.cli.options import Command, group, pass_invocation
from lessor.cli.phrases import bytes_text, next_lines, title_line
from lessor.cli.saved import (
    Found,
    drop_found,
    find_salvage,
    find_salvages,
    find_unknown,
    holds_text,
    salvage_record,
)
from lessor.cli.text import Line, Piece, Tone, pad, row, table
from lessor.cli.times import clock_time
from lessor.errors import GitError
from lessor.git.restore import restore_salvage

LABEL = 11
MOST_PARTS = 20


@group("salvage")
@click.pass_context
def salvage(ctx: click.Context) -> None:
    """List, show, restore and drop what was saved of worktrees. N/EPOCH/n names one, N all of a task.

    Before Lessor takes a worktree away it saves what no branch holds: uncommitted files, commits
    that only the reflog knows, ignored files that are new or changed.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_salvages)


@salvage.command("list", cls=Command)
@click.argument("task", required=False)
@click.option("-n", "--most", type=click.IntRange(1, 10_000), default=200, show_default=True)
@pass_invocation
def list_salvages(invocation: Invocation, *, task: str | None, most: int = 200) -> None:
    """List what was saved in this repository, or of one task.

    What lies here of tasks that this store doesn't know is listed last: it was saved for another
    store, or after the backup that this one was restored from.
    """
    found = find_salvages(invocation, task, most=most)
    if task is None:
        found += find_unknown(invocation)
    invocation.answer_all(
        [salvage_record(invocation, one) for one in found],
        lambda: _list_lines(invocation, found),
    )


@salvage.command("show", cls=Command)
@click.argument("name")
@pass_invocation
def show_salvage(invocation: Invocation, *, name: str) -> None:
    """Show what a salvage holds.

    That is its files, its commits that nothing else holds, and its archive.
    """
    found = find_salvage(invocation, name)
    saved = found.content
    record = {
        **salvage_record(invocation, found),
        "commit": saved.commit,
        "changed": [{"path": path, "mode": mode} for path, mode in saved.files.items()],
        "deleted": list(saved.deleted),
        "commits": [{"commit": oid, "subject": subject} for oid, subject in saved.commits],
        "archived": [{"path": path, "bytes": size} for path, size in saved.archived.items()],
        "archiveBytes": saved.archive_bytes,
    }
    invocation.answer(record, lambda: _show_lines(invocation, found))


@salvage.command("restore", cls=Command)
@click.argument("name")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@pass_invocation
def restore(invocation: Invocation, *, name: str, directory: Path | None) -> None:
    """Write what was saved into a directory.

    DIRECTORY has to be empty or not to be there; without it a fresh one is made. Every byte and
    mode comes back, and nothing is ever written over. The whole tree is in it, as it was: what git
    had, and what nobody had committed. What was archived of the worktree's git directory (half a
    rebase, submodules' commits) goes into `DIRECTORY.git-state`.
    """
    found = find_salvage(invocation, name)
    saved = found.content
    into = (directory or _fresh(invocation, found)).absolute()
    paths = restore_salvage(
        common_dir=found.common_dir, commit=saved.commit, archive=found.archive, into=into
    )
    record = {
        **salvage_record(invocation, found),
        "directory": str(into),
        "restored": list(paths),
    }
    invocation.answer(record, lambda: _restored_lines(into, paths))


@salvage.command("drop", cls=Command)
@click.argument("names", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="Kept with the task.")
@yes_option
@pass_invocation
def drop(invocation: Invocation, *, names: tuple[str, ...], reason: str, yes: bool) -> None:
    """Delete salvages for good.

    It names what goes and asks; --yes doesn't.
    """
    chosen = [one for name in names for one in find_salvages(invocation, name)]
    found = list({one.name: one for one in chosen}.values())
    confirm(
        invocation,
        "Delete them for good?" if len(found) > 1 else "Delete it for good?",
        _going_lines(found),
        yes=yes,
        again=f"lessor salvage drop {' '.join(one.name for one in found)} --yes",
    )
    for one in found:
        drop_found(invocation, one, reason=reason)
    invocation.answer_all(
        [{**salvage_record(invocation, one), "dropped": True} for one in found],
        lambda: [[Piece("deleted", Tone.WARN), f"  {one.name}  {one.title}"] for one in found],
    )


def _fresh(invocation: Invocation, found: Found) -> Path:
    """A directory of the state directory that isn't there yet."""
    name = f"{invocation.standing.name}-{found.name.replace('/', '-')}"
    top = invocation.settings.state_dir / "restored"
    number = 1
    while True:
        place = top / (name if number == 1 else f"{name}-again-{number - 1}")
        if not place.exists():
            return place
        number += 1


def _list_lines(invocation: Invocation, found: Sequence[Found]) -> list[Line]:
    if not found:
        return [["this store knows of nothing saved here"], *next_lines(["lessor"])]
    known = [one for one in found if one.number]
    unknown = [one for one in found if not one.number]
    lines = _rows(invocation, known, titled=True)
    if unknown:
        lines.append(["saved here, of tasks that this store doesn't know:"])
        lines += _rows(invocation, unknown, titled=False)
    return [*lines, *next_lines([f"lessor salvage show {found[0].name}"])]


def _rows(invocation: Invocation, found: Sequence[Found], *, titled: bool) -> list[Line]:
    now = invocation.lessor.now_ms()
    rows = (
        row(
            one.name,
            *([one.title] if titled else []),
            holds_text(one),
            Piece(clock_time(one.saved.at_ms, now=now), Tone.FAINT),
            Piece("" if one.is_here else "on another machine", Tone.WARN),
        )
        for one in found
    )
    return list(table(rows, columns=invocation.columns, whole=frozenset({0})))


def _show_lines(invocation: Invocation, found: Found) -> list[Line]:
    saved, now = found.content, invocation.lessor.now_ms()
    epoch = f"epoch {found.saved.epoch}, saved {clock_time(found.saved.at_ms, now=now)}"
    lines = _head(found, epoch)
    if found.saved.ref:
        lines.append([_label("ref"), found.saved.ref])
    if found.archive is not None:
        size = bytes_text(saved.archive_bytes)
        lines.append([_label("archive"), f"{found.archive}  {size}, yours alone"])
    lines += _listed("holds", _parts(found))
    return [*lines, *next_lines([f"lessor salvage restore {found.name}"])]


def _head(found: Found, epoch: str) -> list[Line]:
    if not found.number:
        return [[Piece(found.name, Tone.STRONG), f"  {found.title}"], [_label("of"), epoch]]
    return [
        title_line(found.number, found.title, Piece(found.name, Tone.FAINT)),
        [_label("of"), f"{epoch}, on {found.saved.branch}"],
        [_label("worktree"), found.saved.path],
    ]


def _parts(found: Found) -> list[Line]:
    """A line for each file, sorted by its path, and each commit that nothing else holds."""
    saved = found.content
    files = [(path, "changed") for path in saved.files]
    files += [(path, "deleted") for path in saved.deleted]
    files += [
        (path, "archived" if part == "files" else "of its git directory")
        for part, _, path in (member.partition("/") for member in saved.archived)
    ]
    lines: list[Line] = [[Piece(pad(what, 10), Tone.FAINT), path] for path, what in sorted(files)]
    return lines + [
        [Piece(pad(f"{oid[:9]}", 10), Tone.FAINT), subject] for oid, subject in saved.commits
    ]


def _listed(label: str, parts: Sequence[Line]) -> list[Line]:
    lines: list[Line] = [
        [_label("" if n else label), *part] for n, part in enumerate(parts[:MOST_PARTS])
    ]
    if len(parts) > MOST_PARTS:
        more = f"and {len(parts) - MOST_PARTS} more: -o json"
        lines.append([_label(""), Piece(more, Tone.FAINT)])
    return lines


def _going_lines(found: Sequence[Found]) -> list[Line]:
    """What would be deleted, named as far as it can be read."""
    lines: list[Line] = [["this is deleted for good:"]]
    for one in found:
        lines.append([Piece(f"  {one.name}  ", Tone.STRONG), f"{one.title}: {holds_text(one)}"])
        try:
            lines += _listed("", _parts(one))
        except GitError as missing:
            lines.append([_label(""), Piece(missing.message, Tone.WARN)])
    return lines


def _restored_lines(into: Path, paths: Sequence[str]) -> list[Line]:
    files = "1 saved file" if len(paths) == 1 else f"{len(paths)} saved files"
    lines: list[Line] = [[Piece("restored", Tone.GOOD), f"  {files} into {into}"]]
    return [*lines, *next_lines([f"cd {shlex.quote(str(into))}"])]


def _label(text: str) -> Piece:
    return Piece(pad(f"  {text}", LABEL), Tone.FAINT)
