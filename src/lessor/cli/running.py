"""What `run` and `do` share: a desk out of the invocation, trust, and notes as lines."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from lessor.cli.invocation import Invocation
from lessor.cli.output import write_json, write_lines
from lessor.cli.text import Line, Piece, Tone, fit, pad, shown
from lessor.cli.trusting import agree
from lessor.errors import DeniedError, InvalidError
from lessor.git.repository import resolve_commit
from lessor.model.lease import HEARTBEAT_TERMS, terms_for
from lessor.project import Project, project_of
from lessor.runner.commands import AGENT_COMMANDS
from lessor.runner.desk import Desk, Plan, RunOptions
from lessor.runner.host import this_host
from lessor.runner.noting import Note, NoteKind
from lessor.runner.progress import ProgressLimits
from lessor.runner.run import Run
from lessor.runner.stopping import Stopping

if TYPE_CHECKING:
    from lessor.clock import Clock

_TITLE = 26
_AGENT = 9
_NAMED_FILES = 3
_TONES = {
    NoteKind.VERIFIED: Tone.GOOD,
    NoteKind.UNVERIFIED: Tone.GOOD,
    NoteKind.ASKED: Tone.WARN,
    NoteKind.QUIET: Tone.WARN,
    NoteKind.CHECK_FAILED: Tone.WARN,
    NoteKind.FAILED: Tone.BAD,
    NoteKind.LOST: Tone.BAD,
    NoteKind.KILLED: Tone.BAD,
    NoteKind.LIMIT: Tone.BAD,
}
_SILENT = frozenset({NoteKind.PREPARED, NoteKind.KEPT})
_FOR_A_PERSON = frozenset({NoteKind.ASKED, NoteKind.LOST})


class LineReporter:
    """Notes as lines of a terminal, or of JSON for programs.

    A terminal that was closed stops the lines and nothing else.
    """

    def __init__(self, invocation: Invocation) -> None:
        self._people = invocation.for_people
        self._columns = invocation.columns
        self._clock: Clock = invocation.clock
        self._started = self._clock.boottime_ms()
        self._lock = threading.Lock()

    def note(self, note: Note) -> None:
        """Show a note."""
        with self._lock, suppress(OSError, ValueError):
            if not self._people:
                write_json({**asdict(note), "kind": note.kind.value}, indent=None)
            elif note.kind not in _SILENT:
                write_lines([self._line(note)])
                if note.kind in _FOR_A_PERSON:
                    ring(f"#{note.number} {note.kind}")

    def _line(self, note: Note) -> Line:
        seconds = (self._clock.boottime_ms() - self._started) // 1000
        head = f" {seconds // 60:>2}:{seconds % 60:02d}  "
        if note.number:
            head += (
                pad(f"#{note.number} {shown(note.title)}", _TITLE)
                + "  "
                + pad(shown(note.agent), _AGENT)
                + "  "
            )
        text = shown(f"{note.kind} {note.text}".strip().splitlines()[0])
        return [
            head,
            Piece(fit(text, max(self._columns - len(head), 30)), _TONES.get(note.kind, Tone.PLAIN)),
        ]


def ring(text: str) -> None:
    """BEL and OSC 9 on a terminal: only when a person is needed or all is done."""
    if sys.stdout.isatty():
        with suppress(OSError, ValueError):
            sys.stdout.write(f"\a\x1b]9;lessor: {shown(text)}\a")
            sys.stdout.flush()


def run_here(invocation: Invocation, options: RunOptions) -> tuple[int, Run]:
    """Run with `options` in the repository around; the exit code, and what became of the tasks."""
    reporter = LineReporter(invocation)
    desk = desk_for(invocation, options, reporter)
    stopping = Stopping(
        on_drain=lambda: desk.note(
            NoteKind.DRAINING, "finishing what runs; once more stops it and keeps everything"
        )
    )
    run = Run(desk, stopping)
    with stopping.by_signals():
        code = run.run()
    return code, run


def desk_for(invocation: Invocation, options: RunOptions, reporter: LineReporter) -> Desk:
    """The run's surroundings."""
    checkout = invocation.standing.checkout_or_refuse()
    repository = invocation.repository
    if repository is None:
        raise InvalidError("Agents run in a repository.", next_step="Run this inside of one.")
    settings = invocation.settings
    plans: dict[str, Plan] = {}

    def plan_at(commit: str) -> Plan:
        if commit not in plans:
            found = project_of(checkout.repository, commit=commit, settings=settings)
            if not found.trusted:
                raise _untrusted(found)
            plans[commit] = Plan(check=found.check, setup=found.setup, bring=found.bring)
        return plans[commit]

    return Desk(
        lessor=invocation.lessor,
        repo=checkout.repository,
        cwd=checkout.cwd,
        repository=repository,
        store_url=settings.store_url,
        listen_dsn=settings.listen_dsn,
        state_dir=settings.state_dir,
        host=this_host(invocation.host_id),
        clock=invocation.clock,
        options=options,
        plan_at=plan_at,
        reporter=reporter,
    )


def options_for(
    project: Project,
    *,
    command: Sequence[str],
    agent: str | None,
    workers: int | None,
    queue: str | None,
    base: str | None,
    task: str | None = None,
    stay: bool = False,
) -> RunOptions:
    """What the command line and the project ask for together.

    Raises:
        InvalidError: no agent is named and none is installed.
    """
    kind = agent or project.agent or ("agent" if command else None)
    if kind is None:
        raise InvalidError(
            "No agent was found on PATH (claude, codex, gemini).",
            next_step="Give its command at the end: -- CMD ARGS.",
        )
    known = tuple(command) or project.agents.get(kind) or AGENT_COMMANDS.get(kind)
    if known is None:
        raise InvalidError(
            f"How to start the agent {kind!r} isn't known.",
            next_step="Give its command after `--`, or define it in lessor.toml.",
        )
    return RunOptions(
        command=known,
        agent=kind,
        kind=kind,
        workers=workers or project.workers,
        queue=queue or project.queue,
        base=base or project.base,
        rounds=project.rounds,
        task=task,
        stay=stay,
        terms=terms_for(project.lease_ms) if project.lease_ms else HEARTBEAT_TERMS,
        limits=ProgressLimits(
            quiet_ms=min(project.quiet_ms, project.total_ms), total_ms=project.total_ms
        ),
    )


def from_here(invocation: Invocation, command: tuple[str, ...]) -> tuple[str, ...]:
    """The agent's command with a program that lies here by its whole path.

    The agent starts in a worktree, where a script that isn't committed doesn't exist.
    """
    if not command or "/" not in command[0] or "{" in command[0]:
        return command
    program = invocation.here / command[0]
    return (str(program), *command[1:]) if program.is_file() else command


def project_at_base(invocation: Invocation, base: str | None) -> Project:
    """The project at the commit that work will begin from: never the branch under judgement."""
    checkout = invocation.standing.checkout_or_refuse()
    return invocation.project(commit=resolve_commit(checkout.cwd, base or "HEAD"))


def ensure_trusted(invocation: Invocation, project: Project) -> None:
    """Show what the repository's files would run and ask once; DeniedError where nobody agrees."""
    if not project.trusted:
        agree(
            invocation,
            project.commands,
            digest=project.digest,
            given=None,
            again="lessor trust",
        )


def _untrusted(project: Project) -> DeniedError:
    listed = "; ".join(f"{what}: {text}" for what, text, _ in project.commands)
    return DeniedError(
        f"This repository's files would run commands that you haven't agreed to: {listed}.",
        next_step="Look at them and agree once: lessor trust.",
        commands=[text for _, text, _ in project.commands],
    )
