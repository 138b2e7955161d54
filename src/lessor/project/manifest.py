"""`lessor.toml`: what a repository's owner settles for everybody; every key is optional."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lessor.errors import InvalidError
from lessor.model.budget import Budget
from lessor.model.lease import SECOND, YEAR
from lessor.model.shadow import Unlanded
from lessor.project.duration import parse_duration

MANIFEST = "lessor.toml"
MOST_WORKERS = 64
MOST_KEPT = 100_000
MOST_BYTES = 10**18
LONGEST_TEXT = 4_096

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?(B|[kK]B|MB|GB|TB)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of the file.

    Attributes:
        meaning: one line for the documentation.
        default: what holds without it, in words.
        read: turns the value into what Lessor uses; its error says which rule the value breaks.
    """

    name: str
    meaning: str
    default: str
    read: Callable[[Any], Any]


def read_manifest(content: bytes) -> Mapping[str, Any]:
    """The settings of a `lessor.toml`, by key; only those that it has.

    Raises:
        InvalidError: it can't be read, has an unknown key, or a value breaks the key's rule.
    """
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _refusal("isn't UTF-8", "Save it as UTF-8.") from error
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise _refusal(f"can't be read: {error}", "Mend what is named.") from error
    known = {key.name: key for key in KEYS}
    settings: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            raise _unknown(name, known)
        try:
            settings[name] = known[name].read(value)
        except (TypeError, ValueError) as error:
            raise _refusal(f"has `{name}` = {_shown(value)}, {error}", "Change it.") from error
    return MappingProxyType(settings)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("which has to be text")
    if len(value) > LONGEST_TEXT or "\0" in value:
        raise ValueError(f"which has to be at most {LONGEST_TEXT} characters without NUL")
    return value.strip()


def _count(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"which has to be a whole number from {low} to {high}")
        return value

    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("which has to be true or false")
    return value


def _duration(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError('which has to be a duration such as "20m"')
    try:
        milliseconds = parse_duration(str(value))
    except InvalidError as error:
        raise ValueError('which has to be a duration such as "20m"') from error
    if not SECOND <= milliseconds <= YEAR:
        raise ValueError("which has to be from a second to a year")
    return milliseconds


def _size(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _count(1, MOST_BYTES)(value)
    read = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if read is None:
        raise ValueError('which has to be a size such as "20 GB"')
    return int(float(read[1]) * _UNITS[read[2].upper()])


def _budget(value: Any) -> Budget:
    if not isinstance(value, dict):
        raise TypeError("which has to be a table")
    readers: Mapping[str, Callable[[Any], int]] = {
        "count": _count(0, MOST_KEPT),
        "bytes": _size,
        "age": _duration,
    }
    unknown = sorted(value.keys() - readers.keys())
    if unknown:
        raise ValueError(f"whose {unknown[0]!r} isn't one of {', '.join(readers)}")
    read = {name: readers[name](item) for name, item in value.items()}
    return Budget(count=read.get("count"), bytes=read.get("bytes"), age_ms=read.get("age"))


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("which has to be a list of texts")
    return tuple(_text(item) for item in value)


def _command(value: Any) -> tuple[str, ...]:
    words = _texts(value)
    if not words:
        raise ValueError("which has to name a program")
    return words


def _unlanded(value: Any) -> Unlanded:
    if value not in list(Unlanded):
        raise ValueError(f"which has to be one of: {', '.join(Unlanded)}")
    return Unlanded(value)


def _table(read: Callable[[Any], tuple[str, ...]]) -> Callable[[Any], Mapping[str, Any]]:
    def read_table(value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise TypeError("which has to be a table")
        return MappingProxyType({_text(name): read(item) for name, item in value.items()})

    return read_table


KEYS = (
    Key(
        name="agent",
        meaning="The agent that works here.",
        default="the first of claude, codex, gemini on PATH",
        read=_text,
    ),
    Key(
        name="check",
        meaning="The command that judges every result, run by `sh -c` in a clean checkout.",
        default="found: Makefile, pyproject.toml, package.json, Cargo.toml, go.mod; else none",
        read=_text,
    ),
    Key(
        name="setup",
        meaning="The command that prepares a new worktree.",
        default="found from the lock file; else none",
        read=_text,
    ),
    Key(
        name="bring",
        meaning="Ignored files that are copied into each worktree, as in .gitignore.",
        default=".worktreeinclude, else .env* and .claude/settings.local.json",
        read=_texts,
    ),
    Key(
        name="base",
        meaning="Where new work starts: a branch or another revision.",
        default="the branch you are on",
        read=_text,
    ),
    Key(
        name="n",
        meaning="How many agents work side by side.",
        default="1",
        read=_count(1, MOST_WORKERS),
    ),
    Key(
        name="lease",
        meaning="How long a lease lasts between two heartbeats.",
        default="5m",
        read=_duration,
    ),
    Key(
        name="quiet",
        meaning="How long an agent may show no progress.",
        default="20m",
        read=_duration,
    ),
    Key(name="total", meaning="How long one attempt may take.", default="2h", read=_duration),
    Key(
        name="rounds",
        meaning="How often a failed check goes back to the agent before you are asked.",
        default="3",
        read=_count(1, 20),
    ),
    Key(
        name="attempts",
        meaning="Attempts that count before a task is quarantined.",
        default="3",
        read=_count(1, 1000),
    ),
    Key(
        name="push",
        meaning="Whether a result is pushed, as its holder, before its task is completed.",
        default="false",
        read=_flag,
    ),
    Key(name="queue", meaning="The queue that tasks go into.", default="default", read=_text),
    Key(
        name="workspaces",
        meaning='Worktrees to keep here: `{ count = 20, bytes = "40 GB", age = "14d" }`; more is reported, never removed.',
        default="no limit",
        read=_budget,
    ),
    Key(
        name="unlanded",
        meaning=(
            "What a task does that overlaps a result which hasn't landed: begin on top of it "
            "(`stack`), `wait` for the landing, or `ignore` it."
        ),
        default="stack",
        read=_unlanded,
    ),
    Key(
        name="scopes",
        meaning='Names for sets of paths: `billing = ["services/billing", "libs/tax"]` is `@billing`.',
        default="none",
        read=_table(_texts),
    ),
    Key(
        name="agents",
        meaning='Agents of your own: `mine = ["my-agent", "{prompt}"]`.',
        default="none",
        read=_table(_command),
    ),
)


def _unknown(name: str, known: Mapping[str, Key]) -> InvalidError:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean `{near[0]}`?" if near else f"It knows: {', '.join(known)}."
    return _refusal(f"has an unknown key {_shown(name)}", hint)


def _refusal(fault: str, next_step: str) -> InvalidError:
    return InvalidError(f"{MANIFEST} {fault}.", next_step=next_step, file=MANIFEST)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, tables in tables
        return "something too large to show"
    return text if len(text) <= 60 else text[:60] + "…"  # noqa: PLR2004
