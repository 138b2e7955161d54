"""The page before anything is queued: what Lessor found in the repository, and what to type."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.cli.board import Board
from lessor.cli.draft import DRAFT, has_draft
from lessor.cli.invocation import Invocation
from lessor.cli.page import NOWHERE, place
from lessor.cli.phrases import next_lines
from lessor.cli.text import Line, Piece, Tone, fit, pad, shown
from lessor.model.task import Task
from lessor.project import Project
from lessor.project.agents import installed_agents
from lessor.project.manifest import MANIFEST

LABEL = 9
COMMAND = 34


def found_lines(invocation: Invocation, board: Board) -> list[Line]:
    """Agents, check, setup and brought files, each with where it was found."""
    lessor, standing = invocation.lessor, invocation.standing
    before = lessor.tasks.tasks(repository=standing.id, most=1)
    name, where = (board.name, f" · {place(board)}") if board.name else (NOWHERE, "")
    head: Line = [
        Piece(name, Tone.STRONG),
        f"{where} · {'nothing to do' if before else 'nothing queued yet'}",
    ]
    if not board.commit:
        return [head, [], *next_lines(['lessor add "…"', *_look_back(before)])]
    from lessor.cli.agents import agent_versions

    project = invocation.project(commit=board.commit)
    width = invocation.columns
    lines = [
        [_label("agents"), *_agents(project, agent_versions(invocation))],
        _command(
            "check",
            project.check,
            project,
            width,
            absent="none found: results stay unverified (lessor.toml can name one)",
        ),
        _command("setup", project.setup, project, width, absent="none needed"),
        _brings(invocation, project, width),
    ]
    if not project.trusted:
        said = "these commands come from the repository: lessor trust"
        lines.append([_label(""), Piece(said, Tone.WARN)])
    if has_draft(invocation):
        lines.append([_label(""), Piece(DRAFT, Tone.WARN)])
    steps = [*_steps(invocation, project), *_look_back(before)]
    return [head, [], *lines, [], *next_lines(steps)]


def _look_back(before: Sequence[Task]) -> list[str]:
    return ["lessor list"] if before else []


def _steps(invocation: Invocation, project: Project) -> list[str]:
    checkout = invocation.standing.checkout
    lists = ("TASKS.md", "TODO.md", "tasks.jsonl")
    here = [n for n in lists if checkout is not None and (checkout.repository.root / n).is_file()]
    installed = any(agent.path for agent in installed_agents())
    verb = "do" if installed or project.agent in project.agents else "add"
    wish = f'lessor {verb} "fix the rounding in invoices"'
    return [wish, *(f"lessor import {name}" for name in here[:1])]


def _agents(project: Project, versions: dict[str, str | None]) -> list[Piece | str]:
    """The repository's own first; where it has some, nobody misses one that isn't there."""
    line: list[Piece | str] = []
    for name in project.agents:
        line += [f"{shown(name)} ", Piece(f"({MANIFEST})   ", Tone.FAINT)]
    for name, version in versions.items():
        if name in project.agents:
            continue
        if version is None:
            if not project.agents:
                line.append(Piece(f"{name} not found   ", Tone.FAINT))
        else:
            line += [f"{name} {shown(version)} ".replace("  ", " "), Piece("✓   ", Tone.GOOD)]
    return line


def _command(what: str, command: str | None, project: Project, width: int, *, absent: str) -> Line:
    if command is None:
        return [_label(what), Piece(absent, Tone.FAINT)]
    origin = f"({project.origins[what]})"
    room = max(width - LABEL - 2 - len(origin) - 2, 20)
    text = pad(shown(command), COMMAND) if len(command) <= COMMAND else fit(shown(command), room)
    return [_label(what), text, "  ", Piece(origin, Tone.FAINT)]


def _brings(invocation: Invocation, project: Project, width: int) -> Line:
    from lessor.cli.brought import brought_files

    files = brought_files(invocation, project.bring)
    if not files:
        return [_label("brings"), Piece("no ignored files", Tone.FAINT)]
    names = fit(shown(", ".join(files)), width - LABEL - 2 - 40)
    return [_label("brings"), names, Piece("  (ignored; copied to each worktree)", Tone.FAINT)]


def _label(text: str) -> Piece:
    return Piece(pad(f"  {text}", LABEL + 2), Tone.NAME)
