"""Globs: what they cover, and exactly whether two of them share a path.

`?` is one character and `*` any number of them, never across `/`; a whole segment `**` is any
number of segments, also none. Everything else, `[ ]` and `{ }` too, is literal. A glob covers
each path that it matches and everything below it: `src/*` covers `src/a/b`. Only a last segment
with an extension behind its wildcard names files, with nothing below them: else `**/*.py` and
`**/*.ts` would share `a.py/b.ts`, and two languages could never be worked on side by side.
`*.app/**` is for directories that are named like files.

One algorithm serves two levels: the characters of a segment, and the segments of a path. Both are
words of letters, ONE and MANY. Whether two words share an instance is decided on the product of
their automata: one word is read letter by letter while the reachable states of the other are the
bits of an integer. The time is linear in the word that is read; nothing backtracks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TypeVar

from lessor.model.path import refusal

GLOB_BYTES = 768
GLOB_SEGMENTS = 64

# Folding a name changes nothing that this looks at: a repository's rules can't turn the answer.
_FILES = re.compile(r".*[*?].*\.[^*?.][^.]*")


class Wild(Enum):
    """A wildcard: among characters `?` and `*`, among segments `*` and `**`."""

    ONE = 1
    MANY = 2


@dataclass(frozen=True, slots=True)
class States:
    """A word's automaton: state n has read what the first n symbols stand for.

    Attributes:
        end: the accepting state's bit.
        loops: the states whose next symbol is MANY.
        ones: the states whose next symbol is ONE.
        places: for each letter the states whose next symbol it is.
    """

    end: int
    loops: int
    ones: int
    places: dict[str, int]

    def at(self, letter: str) -> int:
        """The states that can read `letter`, those at a MANY aside."""
        return self.places.get(letter, 0) | self.ones

    def at_wild(self, wild: Wild) -> int | None:
        """The states that can read any letter at all; None for a MANY."""
        return self.end - 1 if wild is Wild.ONE else None

    def accept(self, steps: Iterable[int | None]) -> bool:
        """Whether the end can be reached while the other word is read symbol by symbol.

        Each step gives the states that move on at this symbol; None stands for a MANY, during
        which any number of this word's own symbols may pass.
        """
        reached = 1
        for moving in steps:
            # Normal form has no two MANY in a row, so one shift passes all that may be empty.
            reached |= (reached & self.loops) << 1
            if moving is None:
                reached = (self.end << 1) - (reached & -reached)
                continue
            reached = (reached & self.loops) | ((reached & moving) << 1)
            if not reached:
                return False
        reached |= (reached & self.loops) << 1
        return bool(reached & self.end)


@dataclass(frozen=True, slots=True)
class Word:
    """A segment with wildcards among its characters, such as `*.py`."""

    symbols: tuple[str | Wild, ...]
    states: States = field(compare=False, repr=False)

    def meets(self, other: str | Word) -> bool:
        """Whether some name matches both."""
        states = self.states
        if isinstance(other, str):
            return states.accept(map(states.at, other))
        return states.accept(
            states.at(symbol) if isinstance(symbol, str) else states.at_wild(symbol)
            for symbol in other.symbols
        )


Segment = str | Word | Wild
_Symbol = TypeVar("_Symbol")


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled glob; it ends in MANY where what is below a match is covered too."""

    segments: tuple[Segment, ...]
    states: States = field(compare=False, repr=False)
    words: tuple[tuple[Word, int], ...] = field(compare=False, repr=False)

    def covers(self, path: Sequence[str]) -> bool:
        """Whether the path of these segments is covered."""
        return self.states.accept(map(self._at, path))

    def meets(self, other: Glob) -> bool:
        """Whether some path is covered by both."""
        return self.states.accept(map(self._at, other.segments))

    def meets_below(self, path: Sequence[str]) -> bool:
        """Whether the path of these segments, or one below it, is covered."""
        closed: tuple[Segment, ...] = (*path, Wild.MANY)
        return self.states.accept(map(self._at, closed))

    def _at(self, segment: Segment) -> int | None:
        if isinstance(segment, Wild):
            return self.states.at_wild(segment)
        if isinstance(segment, str):
            fitting = self.states.at(segment)
        else:
            fitting = self.states.ones
            for literal, places in self.states.places.items():
                if segment.meets(literal):
                    fitting |= places
        for word, place in self.words:
            if word.meets(segment):
                fitting |= place
        return fitting


def is_wild(path: str) -> bool:
    """Whether `path` has a wildcard."""
    return "*" in path or "?" in path


def normal_glob(path: str, segments: Sequence[str]) -> tuple[str, ...]:
    """One spelling for all globs that differ in redundant wildcards; it covers the same paths.

    `a/**/**`, `a/**` and `a` are one glob, as are `**/*/x*?` and `*/**/x?*`.

    Args:
        path: the glob as it was given, for the message.
        segments: its segments, cleaned.

    Raises:
        ScopeInvalidError: it is longer than 768 bytes or has more than 64 segments.
    """
    if len(path.encode()) > GLOB_BYTES or len(segments) > GLOB_SEGMENTS:
        raise refusal(
            path,
            f"is a glob of more than {GLOB_BYTES} bytes or {GLOB_SEGMENTS} segments",
            next_step="Take the directory that holds these files as the scope.",
        )
    parsed = _settled(_parsed(segment) for segment in segments)
    spelled = tuple(_spelled(segment) for segment in parsed)
    redundant = spelled[-1:] == ("**",) and not _names_files(spelled[:-1])
    return spelled[:-1] if redundant else spelled


@lru_cache(maxsize=4096)
def compile_glob(pattern: str) -> Glob:
    """The automaton of a glob in normal form."""
    names = tuple(pattern.split("/"))
    segments: tuple[Segment, ...] = tuple(map(_parsed, names))
    if segments[-1] is not Wild.MANY and not _names_files(names):
        segments = (*segments, Wild.MANY)
    words = tuple(
        (segment, 1 << place) for place, segment in enumerate(segments) if isinstance(segment, Word)
    )
    return Glob(segments, _states(segments), words)


def _names_files(segments: tuple[str, ...]) -> bool:
    return bool(segments) and _FILES.fullmatch(segments[-1]) is not None


def _parsed(segment: str) -> Segment:
    if segment == "**":
        return Wild.MANY
    if not is_wild(segment):
        return segment
    wild = {"?": Wild.ONE, "*": Wild.MANY}
    symbols = tuple(_settled(wild.get(character, character) for character in segment))
    # No name is empty, so these match every name: `*`, `?*`.
    if symbols in {(Wild.MANY,), (Wild.ONE, Wild.MANY)}:
        return Wild.ONE
    return Word(symbols, _states(symbols))


def _settled(symbols: Iterable[_Symbol]) -> list[_Symbol]:
    """Each run of wildcards as its ONEs and at most one MANY; the same words match."""
    settled: list[_Symbol] = []
    many: list[_Symbol] = []
    for symbol in symbols:
        if symbol is Wild.MANY:
            many = [symbol]
            continue
        if symbol is not Wild.ONE:
            settled += many
            many = []
        settled.append(symbol)
    return settled + many


def _states(symbols: Sequence[Segment]) -> States:
    loops = ones = 0
    places: dict[str, int] = {}
    for place, symbol in enumerate(symbols):
        if symbol is Wild.MANY:
            loops |= 1 << place
        elif symbol is Wild.ONE:
            ones |= 1 << place
        elif isinstance(symbol, str):
            places[symbol] = places.get(symbol, 0) | 1 << place
    return States(1 << len(symbols), loops, ones, places)


def _spelled(segment: Segment) -> str:
    if isinstance(segment, str):
        return segment
    if isinstance(segment, Wild):
        return "*" if segment is Wild.ONE else "**"
    return "".join(
        symbol if isinstance(symbol, str) else "?" if symbol is Wild.ONE else "*"
        for symbol in segment.symbols
    )
