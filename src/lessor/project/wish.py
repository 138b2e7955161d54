"""One task as a file asks for it, and how the tasks of a file wait for each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from lessor.errors import CycleError, InvalidError
from lessor.model.dependencies import check_acyclic

_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One task of a file.

    Attributes:
        line: where it stands in the file, counted from 1.
        id: what makes it the same task when the file is read again.
        after: what it waits for, as written: a place in the file, `#14`, or an id.
        done: it is ticked: nothing is asked for, and what waits for it needn't.
    """

    line: int
    id: str
    title: str
    prompt: str = ""
    scopes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    strict: bool = False
    check: str | None = None
    agent: str | None = None
    priority: int = 0
    limit_key: str | None = None
    after: tuple[str, ...] = ()
    done: bool = False

    def key(self, file: str) -> str:
        """The unique key of the task that this wish of `file` becomes."""
        return f"{file_key(file)}{_digest(self.id)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What a wish waits for, resolved.

    Attributes:
        places: other wishes of the file, by place from 0.
        numbers: tasks that exist already, by number.
    """

    places: tuple[int, ...] = ()
    numbers: tuple[int, ...] = field(default=())


def file_key(file: str) -> str:
    """What the unique keys of all tasks of `file` begin with."""
    return f"import:{_digest(file)}:"


def resolve_waits(wishes: Sequence[Wish], *, file: str) -> list[Waits]:
    """What each wish waits for.

    A bare number is a place in the file counted from 1, ticked ones included; `#14` is the task of
    that number; anything else is another wish's id.

    Raises:
        InvalidError: two wishes have one id, or something is named that isn't there.
        CycleError: wishes would wait for each other.
    """
    places: dict[str, int] = {}
    for place, wish in enumerate(wishes):
        if wish.id in places:
            raise InvalidError(
                f"{file} has the same task in lines {wishes[places[wish.id]].line} and {wish.line}.",
                next_step="Take one out, or give one of them an id of its own: @id NAME.",
                file=file,
                line=wish.line,
            )
        places[wish.id] = place
    waits = [_waits(wish, wishes, places, file=file) for wish in wishes]
    try:
        check_acyclic([wait.places for wait in waits])
    except CycleError as error:
        circle = [wishes[int(place) - 1].line for place in _listed(error.facts["places"])]
        named = " -> ".join(f"line {line}" for line in circle)
        raise CycleError(
            f"{file}: tasks wait for each other: {named}.",
            next_step="Take one @after out.",
            file=file,
        ) from error
    return waits


def _waits(wish: Wish, wishes: Sequence[Wish], places: dict[str, int], *, file: str) -> Waits:
    found: list[int] = []
    numbers: list[int] = []
    for name in wish.after:
        place, number = _number(name), _number(name[1:]) if name.startswith("#") else None
        if place is not None and 1 <= place <= len(wishes):
            found.append(place - 1)
        elif number is not None:
            numbers.append(number)
        elif name in places:
            found.append(places[name])
        else:
            raise InvalidError(
                f"{file}, line {wish.line}: there is no {name[:80]!r} to wait for.",
                next_step=f"Say a place from 1 to {len(wishes)}, #N for a task, or another's @id.",
                file=file,
                line=wish.line,
            )
    return Waits(places=tuple(found), numbers=tuple(numbers))


def _number(text: str) -> int | None:
    """What the digits of `text` say; None for anything else, and for what no store counts to."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _listed(value: object) -> list[str]:
    return value if isinstance(value, list) else []
