"""`lessor logs`: what an agent printed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click

from lessor.cli.finding import find_task
from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.output import wants_colour
from lessor.cli.text import shown
from lessor.errors import NotFoundError
from lessor.runner.plain_file import is_plain, open_plain
from lessor.service.reading import LeaseRecord

POLL_MS = 250
CHUNK = 65_536
FILES = {"agent": "agent.log", "check": "check.log", "setup": "setup.log"}
# Colours are let through; nothing else that an agent prints may steer the terminal.
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")


@command("logs")
@click.argument("task")
@click.option("-f", "--follow", is_flag=True, help="Go on until the lease ends.")
@click.option("--epoch", type=click.IntRange(1), help="Of this epoch; else the last one.")
@click.option(
    "--of",
    "which",
    type=click.Choice([*FILES]),
    default="agent",
    show_default=True,
    help="Whose output.",
)
@pass_invocation
def logs(invocation: Invocation, *, task: str, follow: bool, epoch: int | None, which: str) -> None:
    """Print what a task's agent printed on this machine."""
    lease = _lease(invocation, task, epoch)
    path = invocation.settings.runs_dir / lease.id / FILES[which]
    if not is_plain(path) and not (follow and lease.live):
        from lessor.errors import NotFoundError

        others = [*logs_here(invocation, lease.id)]
        step = f"logs {lease.number} --of {others[0]}" if others else f"show {lease.number}"
        raise NotFoundError(
            f"There is no {which} log of #{lease.number}, epoch {lease.epoch}, on this machine.",
            next_step=f"See: lessor {step}.",
            lease=lease.id,
        )
    if not is_plain(path):
        invocation.note(f"No {which} log is on this machine yet; this waits until the lease ends.")
    printer = _Printer(path)
    printer.print_new()
    while follow and invocation.lessor.leases.lease(lease.id).live:
        invocation.clock.wait(POLL_MS)
        printer.print_new()
    printer.finish()


def logs_here(invocation: Invocation, lease: str) -> dict[str, Path]:
    """What this machine has of a lease's output, by whose it is."""
    folder = invocation.settings.runs_dir / lease
    return {name: folder / file for name, file in FILES.items() if is_plain(folder / file)}


def _lease(invocation: Invocation, text: str, epoch: int | None) -> LeaseRecord:
    task = find_task(invocation, text)
    leases = [
        lease
        for lease in invocation.lessor.leases.leases(task=task.id)
        if lease.kind == "lease" and epoch in {None, lease.epoch}
    ]
    if not leases:
        which = f"no epoch {epoch}" if epoch else "not been started"
        raise NotFoundError(
            f"#{task.number} has {which} yet.", next_step=f"See: lessor why {task.number}."
        )
    return leases[-1]


class _Printer:
    """Prints a growing file: as it is into a pipe, made safe on a terminal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._partial = b""
        self._raw = not sys.stdout.isatty()

    def print_new(self) -> None:
        """Print what was added since the last call, by whole lines on a terminal."""
        handle = open_plain(self._path)
        if handle is None:
            return
        with os.fdopen(handle, "rb") as file:
            file.seek(self._offset)
            while chunk := file.read(CHUNK):
                self._offset += len(chunk)
                self._print(chunk)
        sys.stdout.flush()

    def finish(self) -> None:
        """Print a last line that has no end."""
        if self._partial:
            self._write(self._partial)
            self._partial = b""
        self.print_new()
        sys.stdout.flush()

    def _print(self, chunk: bytes) -> None:
        if self._raw:
            sys.stdout.flush()
            sys.stdout.buffer.write(chunk)
            return
        *lines, self._partial = (self._partial + chunk).split(b"\n")
        for line in lines:
            self._write(line + b"\n")

    def _write(self, line: bytes) -> None:
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        parts = _COLOURS.split(text)
        colour = wants_colour(sys.stdout)
        said = "".join(
            (part if colour else "") if n % 2 else shown(part.expandtabs(8))
            for n, part in enumerate(parts)
        )
        sys.stdout.write(f"{said}\x1b[0m\n" if colour and len(parts) > 1 else f"{said}\n")
