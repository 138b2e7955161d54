"""Workspaces that were looked at: as records, and in words for people."""

from __future__ import annotations

import shlex

from lessor.cli.invocation import Invocation
from lessor.cli.output import Record
from lessor.cli.text import Piece, Tone
from lessor.cli.times import instant
from lessor.git.inspection import Verdict
from lessor.model.task import Task
from lessor.model.workspace import Workspace
from lessor.runner.looking import Look

TONES = {
    Verdict.EMPTY: Tone.GOOD,
    Verdict.MERGED: Tone.GOOD,
    Verdict.KEPT: Tone.GOOD,
    Verdict.HOLDS_WORK: Tone.WARN,
    Verdict.IN_USE: Tone.NAME,
    Verdict.UNKNOWN: Tone.WARN,
}


def workspace_record(invocation: Invocation, workspace: Workspace, task: Task) -> Record:
    """A workspace as it was recorded."""
    return {
        "workspace": workspace.id,
        "taskId": workspace.task,
        "number": task.number,
        "title": task.title,
        "repo": invocation.standing.key or None,
        "epoch": workspace.epoch,
        "host": workspace.host_id,
        "path": workspace.path,
        "branch": workspace.branch,
        "base": workspace.base,
        "state": workspace.state,
        "at": instant(workspace.at_ms),
    }


def look_record(invocation: Invocation, look: Look, task: Task) -> Record:
    """The same with what was found of it now."""
    found = look.found
    return {
        **workspace_record(invocation, look.workspace, task),
        "verdict": look.verdict,
        "reasons": list(look.reasons),
        "mayBeRemoved": look.may_be_removed,
        "head": (found.head or None) if found else None,
        "onBranch": found.branch if found else None,
        "commits": list(found.commits) if found else [],
        "dirty": list(found.dirty) if found else [],
        "bytes": look.bytes,
        "nextStep": next_step(look, task),
    }


def verdict_piece(look: Look) -> Piece:
    """The verdict of a look in its colour."""
    return verdict_text(look.verdict)


def verdict_text(verdict: Verdict) -> Piece:
    """A verdict in its colour."""
    return Piece(str(verdict).replace("-", " "), TONES[verdict])


def why_text(look: Look) -> str:
    """Why a workspace is what it is, in a line."""
    match look.verdict:
        case Verdict.EMPTY:
            return "nothing happened in it"
        case Verdict.MERGED:
            return f"{look.workspace.branch} is merged"
        case Verdict.KEPT:
            return f"all of it is on {look.found.branch if look.found else ''}".rstrip()
        case _:
            return "; ".join(look.reasons)


def next_step(look: Look, task: Task) -> str:
    """The one command that goes on with a workspace; never one that takes work away."""
    if look.lease is not None:
        return f"lessor logs {task.number} -f"
    if look.clone is not None:
        return f"lessor clean --repo {shlex.quote(str(look.clone))}"
    match look.verdict:
        case Verdict.HOLDS_WORK:
            return _going_on(task)
        case Verdict.IN_USE | Verdict.UNKNOWN:
            return f"lessor workspace inspect {task.number}"
        case _:
            return "lessor clean"


def _going_on(task: Task) -> str:
    """What brings somebody back into a worktree that holds work."""
    match task.state:
        case "queued":
            return "lessor run"
        case "needs_person":
            return f'lessor answer {task.number} "…"'
        case "quarantined":
            return f"lessor retry {task.number}"
        case "blocked":
            return f"lessor unblock {task.number}"
        case _:
            return f"lessor workspace inspect {task.number}"
