"""Tasks out of JSON lines: one object a line, with the same words as a checklist."""

from __future__ import annotations

import difflib
import json
from typing import Any

from lessor.errors import InvalidError
from lessor.project.wish import Wish

_TEXTS = ("id", "title", "prompt", "check", "agent", "limit")
_LISTS = ("scope", "read", "after")
_FIELDS = (*_TEXTS, *_LISTS, "priority", "strict", "done")


def read_jsonlines(text: str, *, file: str) -> list[Wish]:
    """The tasks of a file of JSON lines, in their order; empty lines are left out.

    Raises:
        InvalidError: names the line that can't be read; or there is no task at all.
    """
    wishes = [
        _wish(line, number, file=file)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if not wishes:
        raise InvalidError(
            f"{file} has no tasks.", next_step='Write one a line: {"title": "…"}', file=file
        )
    return wishes


def _wish(line: str, number: int, *, file: str) -> Wish:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _refusal(
            file, number, f"it isn't JSON ({error})", "Write one object a line."
        ) from error
    if not isinstance(record, dict):
        raise _refusal(file, number, "it is no object", 'Write {"title": "…"}.')
    for name in record:
        if name not in _FIELDS:
            near = difflib.get_close_matches(name, _FIELDS, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It knows {', '.join(_FIELDS)}."
            raise _refusal(file, number, f"{name[:40]!r} is unknown", hint)
    texts = {name: _text(record, name, number, file=file) for name in _TEXTS}
    lists = {name: _list(record, name, number, file=file) for name in _LISTS}
    title = texts["title"].strip()
    if not title:
        raise _refusal(file, number, "the task has no title", 'Give it a "title".')
    return Wish(
        line=number,
        id=texts["id"] or " ".join(title.split()).casefold(),
        title=title,
        prompt=texts["prompt"],
        scopes=lists["scope"],
        reads=lists["read"],
        strict=_flag(record, "strict", number, file=file),
        check=texts["check"] or None,
        agent=texts["agent"] or None,
        priority=_number(record, number, file=file),
        limit_key=texts["limit"] or None,
        after=lists["after"],
        done=_flag(record, "done", number, file=file),
    )


def _text(record: dict[str, Any], name: str, line: int, *, file: str) -> str:
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _refusal(file, line, f"{name!r} has to be text", 'Put it into "quotes".')
    return value


def _list(record: dict[str, Any], name: str, line: int, *, file: str) -> tuple[str, ...]:
    value = record.get(name)
    items = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in items):
        raise _refusal(file, line, f"{name!r} has to be a text or a list of texts", "Mend it.")
    return tuple(str(item) for item in items)


def _number(record: dict[str, Any], line: int, *, file: str) -> int:
    value = record.get("priority", 0)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refusal(file, line, "'priority' has to be a whole number", "Give -1000 to 1000.")
    return value


def _flag(record: dict[str, Any], name: str, line: int, *, file: str) -> bool:
    value = record.get(name, False)
    if not isinstance(value, bool):
        raise _refusal(file, line, f"{name!r} has to be true or false", "Change it.")
    return value


def _refusal(file: str, line: int, fault: str, next_step: str) -> InvalidError:
    return InvalidError(f"{file}, line {line}: {fault}.", next_step=next_step, file=file, line=line)
