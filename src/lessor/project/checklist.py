r"""Tasks out of a Markdown checklist.

    - [ ] Billing: retry on 503   @scope services/billing  @check "pytest -q tests/billing"
      What is indented below an item is told to the agent too.

A directive is `@word` and one value, a bare one or one in double quotes; directives end the line.
A word after an `@` that Lessor doesn't know is refused, so that a misspelt one isn't lost in a
title; `\@word` is text. Items below an item are part of what it asks. Code blocks are left alone.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lessor.errors import InvalidError
from lessor.project.wish import Wish

_ITEM = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<box>[ xX])\][ \t]+(?P<text>.*)"
)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_DIRECTIVE = re.compile(r"(?<!\S)@([A-Za-z][\w-]*)(?=\s|$)")
_VALUE = re.compile(r'\s+(?:"((?:[^"\\]|\\.)*)"|([^\s"]\S*))')
_BLANKS = re.compile(r"\s+")

SINGLE = ("id", "check", "agent", "priority", "limit")
SEVERAL = ("scope", "read", "after")
BARE = ("strict",)
WORDS = (*SINGLE, *SEVERAL, *BARE)


@dataclass(slots=True, kw_only=True)
class _Item:
    line: int
    indent: int
    box: str
    text: str
    below: list[str] = field(default_factory=list)


def read_checklist(text: str, *, file: str) -> list[Wish]:
    """The items of a checklist, ticked ones included, in their order.

    Raises:
        InvalidError: names the line that can't be read; or there is no item at all.
    """
    wishes = [_wish(item, file=file) for item in _items(text)]
    if not wishes:
        raise InvalidError(
            f"{file} has no tasks.",
            next_step="Write one a line: - [ ] What is to be done  @scope PATH",
            file=file,
        )
    return wishes


def _items(text: str) -> Iterator[_Item]:
    item: _Item | None = None
    for number, line, in_code in _lines(text):
        indent = len(line) - len(line.lstrip())
        if item is not None and (not line.strip() or indent > item.indent):
            item.below.append(line)
            continue
        if item is not None:
            yield item
        match = None if in_code else _ITEM.fullmatch(line)
        item = match and _Item(line=number, indent=indent, box=match["box"], text=match["text"])
    if item is not None:
        yield item


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """The lines with their numbers, tabs as blanks, and whether each belongs to a code block."""
    fence = ""
    for number, line in enumerate(text.split("\n"), start=1):
        mark = _FENCE.match(line)
        yield number, line.rstrip("\r").expandtabs(4), bool(fence or mark)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]


def _wish(item: _Item, *, file: str) -> Wish:
    title, words = _split(item, file=file)
    if not title:
        raise _refusal(file, item.line, "the task has no title", "Say what is to be done.")
    single = {name: values[-1] for name, values in words.items() if name in SINGLE}
    priority = single.get("priority", "0")
    if not re.fullmatch(r"-?\d{1,4}", priority):
        raise _refusal(
            file, item.line, f"@priority {priority[:20]!r} is no number", "Give -1000 to 1000."
        )
    return Wish(
        line=item.line,
        id=single.get("id") or _BLANKS.sub(" ", title).casefold(),
        title=title,
        prompt=_dedent(item.below),
        scopes=tuple(words.get("scope", ())),
        reads=tuple(words.get("read", ())),
        strict="strict" in words,
        check=single.get("check"),
        agent=single.get("agent"),
        priority=int(priority),
        limit_key=single.get("limit"),
        after=tuple(words.get("after", ())),
        done=item.box in "xX",
    )


def _split(item: _Item, *, file: str) -> tuple[str, dict[str, list[str]]]:
    """The title, and the values of each directive."""
    start = _DIRECTIVE.search(item.text)
    title = item.text if start is None else item.text[: start.start()]
    words: dict[str, list[str]] = {}
    place = len(item.text) if start is None else start.start()
    while place < len(item.text):
        match = _DIRECTIVE.match(item.text, place)
        if match is None:
            raise _refusal(
                file,
                item.line,
                f"{item.text[place : place + 40]!r} follows a directive",
                'Put directives at the end, and values with blanks into "double quotes".',
            )
        name, place = match[1], match.end()
        if name not in WORDS:
            raise _unknown(name, file=file, line=item.line)
        if name in BARE:
            words[name] = []
        else:
            value = _VALUE.match(item.text, place)
            if value is None or _DIRECTIVE.match(value[0].strip()):
                raise _refusal(file, item.line, f"@{name} has no value", f"Write @{name} VALUE.")
            place = value.end()
            words.setdefault(name, []).extend(_values(name, value[1], value[2]))
        place += len(item.text[place:]) - len(item.text[place:].lstrip())
    return title.replace("\\@", "@").strip(), words


def _values(name: str, quoted: str | None, bare: str | None) -> list[str]:
    if quoted is not None:
        return [re.sub(r"\\(.)", r"\1", quoted)]
    return [part for part in (bare or "").split(",") if part] if name in SEVERAL else [bare or ""]


def _dedent(lines: Sequence[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip()


def _unknown(name: str, *, file: str, line: int) -> InvalidError:
    near = difflib.get_close_matches(name, WORDS, n=1)
    hint = f"Did you mean @{near[0]}? " if near else f"It knows @{', @'.join(WORDS)}. "
    return _refusal(file, line, f"@{name} is unknown", f"{hint}Text is written \\@{name}.")


def _refusal(file: str, line: int, fault: str, next_step: str) -> InvalidError:
    return InvalidError(f"{file}, line {line}: {fault}.", next_step=next_step, file=file, line=line)
