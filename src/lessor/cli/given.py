"""The repository and the store's file that a command line named: what it proposes next needs them again.

Without them a proposed `lessor show 1` would be about another task, the #1 of where the person stands.
"""

from __future__ import annotations

import re
import shlex
from contextvars import ContextVar
from functools import cache

_REPO: ContextVar[str] = ContextVar("repo", default="")
_STORE: ContextVar[str] = ContextVar("store", default="")
_ROOM = 24
_NAMED = re.compile(r"--(repo|store)\b")


def give(option: str, value: str) -> None:
    """Remember what stands after --repo, or the file after --store."""
    # An address may have a password in it, which is never printed.
    if option == "repo" and not ("://" in value and "@" in value):
        _REPO.set(value)
    elif option == "store" and _is_file(value):
        _STORE.set(value)


def _is_file(store: str) -> bool:
    """Whether it is SQLite's, by its address or as a plain path, and no server's that was misspelt."""
    return store.startswith("sqlite:") or not ("://" in store or "password=" in store)


def as_given(text: str) -> str:
    """`text` with each `lessor …` in it about the same repository and store; data is never given here."""
    named = {match[1] for match in _NAMED.finditer(text)}
    again = [
        f"--{option} {shlex.quote(value)}"
        for option, value in (("repo", _REPO.get()), ("store", _STORE.get()))
        if value and option not in named
    ]
    if not again:
        return text
    words = " ".join(["lessor", *again])
    return words if text == "lessor" else _calls().sub(lambda _: words, text)


def beside(text: str) -> str:
    """The same inside of a page's body, where there is room for it: the last line has it in any case."""
    named = as_given(text)
    return named if len(named) - len(text) <= _ROOM else text


@cache
def _calls() -> re.Pattern[str]:
    from lessor.cli.commands import COMMANDS

    return re.compile(rf"\blessor(?= (?:{'|'.join(COMMANDS)})\b)")
