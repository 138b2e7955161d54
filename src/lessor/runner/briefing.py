"""What an agent is told: a brief in a file, variables, and its command with the prompt put in.

The task's text is data: it stands in a fence that it can't close, and reaches the agent as a file
or as one argument, never through a shell.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lessor.model.grant import Grant

OUTBOX = "LESSOR_OUTBOX"
PROMPT = "{prompt}"
BRIEF = "{brief}"
LEFT = ("question", "no-change")
LONGEST_ARGUMENT = 100_000
"""In bytes. Linux refuses a single argument or variable of 128 KiB (MAX_ARG_STRLEN)."""
MOST_NAMED = 50
_BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One round of an agent's work.

    Attributes:
        start: the commit that this epoch began from; after `base` where a branch was inherited.
        feedback: what the last round's judgement found; empty in the first round.
    """

    grant: Grant
    worktree: Path
    base: str
    start: str
    run_dir: Path
    check: str | None
    round: int = 1
    feedback: str = ""

    @property
    def brief_path(self) -> Path:
        """The brief's file."""
        return self.run_dir / "brief.md"

    @property
    def scope_path(self) -> Path:
        """The scope's file, a path a line."""
        return self.run_dir / "scope.txt"

    @property
    def outbox(self) -> Path:
        """Where the agent leaves a question or a reason for changing nothing."""
        return self.run_dir / "outbox"


def write_brief(errand: Errand) -> str:
    """Write the brief and empty the outbox of the last round's words; the brief's text.

    The directory is the agent's to write, too: what it put in the place of these files is moved
    aside, and neither followed nor waited for.

    Raises:
        OSError: the run's directory can't be written.
    """
    text = brief_text(errand)
    _make_room(errand.outbox, stat.S_ISDIR)
    errand.outbox.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in LEFT:
        _make_room(errand.outbox / name, stat.S_ISREG)
        with suppress(FileNotFoundError):
            (errand.outbox / name).unlink()
    _write(errand.brief_path, text)
    _write(errand.scope_path, "".join(f"{scope}\n" for scope in errand.grant.scopes))
    return text


def brief_text(errand: Errand) -> str:
    """The brief: the task as data, the rules of the house, and what the last round found."""
    grant = errand.grant
    parts = [f"# Task #{grant.number}: {grant.title}\n"]
    if grant.prompt:
        parts.append(f"What is asked, in the words of whoever asked it:\n\n{_fenced(grant.prompt)}")
    parts += [
        "## How this run works\n",
        f"- Work in this directory only: {errand.worktree}",
        f"- You are on branch {grant.branch}; commit there. Uncommitted files are committed for you at the end.",
        f"- Paths: {_paths(errand)}.",
        f"- The result is judged by: {errand.check}"
        if errand.check
        else "- No check is configured.",
        f"- If nothing has to change, write the reason to {errand.outbox}/no-change and stop.",
        f"- If only a person can decide, write the question to {errand.outbox}/question and stop.",
    ]
    stand = grant.stand
    if stand is not None and errand.base == stand.commit:
        parts.append(
            f"- You begin on the result of #{stand.number} (branch {stand.branch}, commit {stand.commit[:12]}), "
            "which hasn't landed yet. Build on it; don't undo it."
        )
    if grant.strict:
        parts.append("- You are confined to these paths; nothing else may change.")
    if errand.feedback:
        parts.append(
            f"\n## Round {errand.round}: what the last result lacked\n\n{_fenced(errand.feedback)}"
        )
    return "\n".join(parts) + "\n"


def variables(errand: Errand, *, lease_file: Path) -> dict[str, str]:
    """What an agent is told of its task; a scope too long for a variable is empty, and in its file."""
    grant = errand.grant
    scope = "\n".join(grant.scopes)
    return {
        "LESSOR_TASK": grant.task,
        "LESSOR_NUMBER": str(grant.number),
        "LESSOR_EPOCH": str(grant.epoch),
        "LESSOR_LEASE": grant.lease,
        "LESSOR_LEASE_FILE": str(lease_file),
        "LESSOR_FENCE": str(grant.fence),
        "LESSOR_TERM": str(grant.term),
        "LESSOR_LABEL": grant.label,
        "LESSOR_BRANCH": grant.branch or "",
        "LESSOR_BASE": errand.base,
        "LESSOR_WORKTREE": str(errand.worktree),
        "LESSOR_SCOPE": scope if len(scope.encode()) <= LONGEST_ARGUMENT else "",
        "LESSOR_SCOPE_FILE": str(errand.scope_path),
        "LESSOR_BRIEF": str(errand.brief_path),
        "LESSOR_ROUND": str(errand.round),
        OUTBOX: str(errand.outbox),
    }


def command_line(command: Sequence[str], *, errand: Errand, brief: str) -> tuple[str, ...]:
    """The agent's argument list; the brief is put in as one argument, whatever it contains.

    A brief that no argument can hold is named by its file.
    """
    asked = brief
    if len(brief.encode()) > LONGEST_ARGUMENT:
        asked = (
            f"Your task is described in the file {errand.brief_path}. Read it, and do what it says."
        )
    parts = (part.split(PROMPT) for part in command)
    return tuple(
        asked.join(piece.replace(BRIEF, str(errand.brief_path)) for piece in pieces)
        for pieces in parts
    )


def _paths(errand: Errand) -> str:
    scopes = errand.grant.scopes
    if not scopes:
        return "grows with what you write; paths of others are refused"
    more = f" and {len(scopes) - MOST_NAMED} more, listed in {errand.scope_path}"
    return ", ".join(scopes[:MOST_NAMED]) + (more if len(scopes) > MOST_NAMED else "")


def _fenced(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text}\n{fence}\n"


def _make_room(path: Path, is_usual: Callable[[int], bool]) -> None:
    """Move aside what is at `path`, where it isn't of the usual kind; nothing of it is deleted."""
    with suppress(FileNotFoundError):
        if is_usual(path.lstat().st_mode):
            return
        number = 1
        while os.path.lexists(path.with_name(f"{path.name}.{number}")):
            number += 1
        path.rename(path.with_name(f"{path.name}.{number}"))


def _write(path: Path, text: str) -> None:
    _make_room(path, stat.S_ISREG)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
