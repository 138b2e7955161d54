"""What an agent is told: a brief in a file, variables, and its command with the prompt put in.

The task's text is marked as data and reaches the agent as a file or as one argument, never through
a shell.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.model.grant import Grant

OUTBOX = "LESSOR_OUTBOX"
PROMPT = "{prompt}"
BRIEF = "{brief}"


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
    def outbox(self) -> Path:
        """Where the agent leaves a question or a reason for changing nothing."""
        return self.run_dir / "outbox"


def write_brief(errand: Errand) -> str:
    """Write the brief and make the outbox; the brief's text."""
    text = brief_text(errand)
    errand.outbox.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(errand.brief_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return text


def brief_text(errand: Errand) -> str:
    """The brief: the task as data, the rules of the house, and what the last round found."""
    grant = errand.grant
    scope = ", ".join(grant.scopes) or "grows with what you write; paths of others are refused"
    parts = [
        f"# Task #{grant.number}: {grant.title}\n",
        f"{grant.prompt}\n" if grant.prompt else "",
        "## How this run works\n",
        f"- Work in this directory only: {errand.worktree}",
        f"- You are on branch {grant.branch}; commit there. Uncommitted files are committed for you at the end.",
        f"- Paths: {scope}.",
        f"- The result is judged by: {errand.check}"
        if errand.check
        else "- No check is configured.",
        f"- If nothing has to change, write the reason to {errand.outbox}/no-change and stop.",
        f"- If only a person can decide, write the question to {errand.outbox}/question and stop.",
    ]
    if grant.strict:
        parts.append("- You are confined to these paths; nothing else may change.")
    if errand.feedback:
        parts.append(
            f"\n## Round {errand.round}: what the last result lacked\n\n{errand.feedback}\n"
        )
    return "\n".join(part for part in parts if part) + "\n"


def variables(errand: Errand, *, store_url: str, lease_file: Path) -> dict[str, str]:
    """The agent's LESSOR_* variables."""
    grant = errand.grant
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
        "LESSOR_SCOPE": "\n".join(grant.scopes),
        "LESSOR_BRIEF": str(errand.brief_path),
        "LESSOR_ROUND": str(errand.round),
        "LESSOR_STORE": store_url,
        OUTBOX: str(errand.outbox),
    }


def command_line(command: Sequence[str], *, errand: Errand, brief: str) -> tuple[str, ...]:
    """The agent's argument list; the brief is put in as one argument, whatever it contains."""
    return tuple(
        part.replace(BRIEF, str(errand.brief_path)).replace(PROMPT, brief) for part in command
    )


def left_in_outbox(outbox: Path, name: str) -> str:
    """What the agent left there, at most 16 kB of text; empty where it left nothing."""
    try:
        with (outbox / name).open("rb") as file:
            return file.read(16_384).decode("utf-8", errors="replace").replace("\0", "").strip()
    except OSError:
        return ""
