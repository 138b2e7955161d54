"""Paths that the gate refused, in words: for the agent that can take them out, and for people."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lessor.errors import ScopeHeldError
from lessor.runner.words import kept_text

MOST_LISTED = 20
MOST_NAMED = 3
_LONGEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a path was refused.

    Attributes:
        text: the whole sentence, for the agent.
        number: the task that has it; 0 where no task does.
        agent: who works on that task.
        live: whether it still has it; else it took it after this work began, and is done.
        rule: for people, where no task has it: what the path breaks.
    """

    text: str
    number: int = 0
    agent: str = ""
    live: bool = True
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What can't be part of a result.

    Attributes:
        text: each path with a commit that touched it and why, for the agent.
        advice: the commands that take them out, or get them later, for the agent.
        told: which paths, and which task has them, for people.
        step: what helps then, with its command.
    """

    text: str
    advice: str
    told: str
    step: str


def held_by(refusal: ScopeHeldError) -> Cause:
    """The cause that a refused widening tells of."""
    facts = refusal.facts
    return Cause(
        text=str(refusal),
        number=int(facts.get("number") or 0),  # type: ignore[arg-type]
        agent=str(facts.get("holder") or ""),
        live=bool(facts.get("ttl_ms")),
    )


def in_words(
    causes: Mapping[str, Cause],
    commits: Mapping[str, str],
    *,
    number: int,
    start: str,
    undone: Collection[str] = (),
) -> Refused:
    """Refused paths in words; one at least.

    Args:
        commits: a commit that touched it, by path.
        number: the task whose result this is.
        start: the newest commit below the result that isn't the task's own.
        undone: those that the result leaves as they were, though commits in it touch them.
    """
    lines = [
        f"- {shown_path(path)} ({_touched(commits[path], undone=path in undone)}): {cause.text}"
        for path, cause in list(causes.items())[:MOST_LISTED]
    ]
    if len(causes) > MOST_LISTED:
        lines.append(f"- and {len(causes) - MOST_LISTED} more")
    alike: dict[tuple[int, str, bool, str], list[str]] = {}
    for path, cause in causes.items():
        alike.setdefault((cause.number, cause.agent, cause.live, cause.rule), []).append(path)
    told = "; ".join(_sentence(paths, *key) for key, paths in alike.items())
    left = [path for path in causes if path not in undone]
    return Refused(
        text="\n".join(lines),
        advice=f"{_take_out(left, start)}{_later(causes, number)}",
        told=f"{told}.",
        step=_step(causes, number),
    )


def named(paths: list[str]) -> str:
    """`a.py, b.py, c.py and 4 more`."""
    first = ", ".join(shown_path(path) for path in paths[:MOST_NAMED])
    more = len(paths) - MOST_NAMED
    return f"{first} and {more} more" if more > 0 else first


def shown_path(path: str) -> str:
    """A path that git knows, printable and short."""
    text = kept_text(path, most=_LONGEST)
    return text if text.isprintable() and len(path) <= _LONGEST else repr(text)


def _touched(commit: str, *, undone: bool) -> str:
    return f"commit {commit[:12] or 'unknown'}{', undone since' if undone else ''}"


def _take_out(paths: list[str], start: str) -> str:
    restore = f" && git restore --source={start} --staged --worktree -- {_quoted(paths)}"
    return (
        f"Take them out, and keep the rest: git reset --soft {start}{restore if paths else ''}\n"
        "What remains is committed for you."
    )


def _later(causes: Mapping[str, Cause], number: int) -> str:
    """How to get what another task still has; what it took meanwhile needs its changes first."""
    live = {path: cause.number for path, cause in causes.items() if cause.number and cause.live}
    if not live:
        return " Say so if the work can't do without them."
    whose = " and ".join(f"#{holder}" for holder in sorted(set(live.values())))
    return (
        f" If the work can't do without them, say so. When {whose} gives them back: "
        f"lessor widen {number} {_quoted(list(live))}"
    )


def _quoted(paths: list[str]) -> str:
    if len(paths) > MOST_LISTED or not all(path.isprintable() for path in paths):
        return "PATH…"
    return shlex.join(paths)


def _sentence(paths: list[str], holder: int, agent: str, live: bool, rule: str) -> str:
    if rule or not holder:
        return f"{named(paths)} {rule or 'can be in no result'}"
    several = len(paths) > 1
    if live:
        return f"{named(paths)} belong{'' if several else 's'} to #{holder} ({agent})"
    return f"{named(paths)} {'were' if several else 'was'} taken meanwhile by #{holder} ({agent})"


def _step(causes: Mapping[str, Cause], number: int) -> str:
    live = sorted({cause.number for cause in causes.values() if cause.number and cause.live})
    done = sorted({cause.number for cause in causes.values() if cause.number and not cause.live})
    if live:
        whose = " and ".join(f"#{holder}" for holder in live)
        are = "are" if len(live) > 1 else "is"
        return f'When {whose} {are} done: lessor answer {number} "go on".'
    if done:
        whose = " and ".join(f"#{holder}" for holder in done)
        return f'Then: lessor answer {number} "bring in what {whose} changed, then go on".'
    return f'Say what to do instead: lessor answer {number} "…".'
