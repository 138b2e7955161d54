"""What a disk may hold after a power cut, of the steps that were asked of it.

What a sync has returned for is there. Of what was asked since, anything may be: all of it, nothing,
or any sectors of it in any order; a file may have grown without its content.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from recorded_disk import Step

SECTOR = 512
JOURNALS = ("-journal", "-wal")
HOW = ("nothing", "everything", "sectors")
"""What is there of the steps since a file's last sync."""


class Image(NamedTuple):
    """A disk after a power cut.

    Attributes:
        step: the number of the step that wasn't begun any more.
        told: how much of the writer's journal was written by then.
        high: the high-water file: any content that it has had, for nobody waits for its sync.
    """

    step: int
    how: str
    files: dict[str, bytes]
    told: int
    high: bytes


class Disk:
    """Files as the last sync left them, and what was asked of them since."""

    def __init__(self) -> None:
        self._synced: dict[str, bytearray] = {}
        self._since: dict[str, list[Step]] = defaultdict(list)

    def take(self, step: Step) -> None:
        """The next step, made."""
        if step.kind == "sync":
            # SQLite syncs the folder with a journal's or a log's first sync: other files' ends, too.
            if step.file not in self._synced and step.file.endswith(JOURNALS):
                self._sync_ends()
            _apply(self._synced, step.file, self._since.pop(step.file, []))
            self._synced.setdefault(step.file, bytearray())  # an empty file is one, too
            return
        self._since[step.file].append(step)
        if step.kind == "delete" and step.data:
            self._sync_ends()

    def _sync_ends(self) -> None:
        for name, steps in list(self._since.items()):
            ends = [number for number, step in enumerate(steps) if step.kind == "delete"]
            if ends:
                _apply(self._synced, name, steps[: ends[-1] + 1])
                self._since[name] = steps[ends[-1] + 1 :]

    def cut(self, how: str, rng: Random) -> dict[str, bytes]:
        """What may be there now."""
        files = {name: bytearray(content) for name, content in self._synced.items()}
        for name, steps in self._since.items():
            if how == "everything":
                _apply(files, name, steps)
            elif how == "sectors":
                _apply(files, name, _some(steps, rng))
        return {name: bytes(content) for name, content in files.items()}


def images(steps: Sequence[Step], rng: Random, *, share: float = 1.0) -> Iterator[Image]:
    """Cuts right before and right after every sync, each in every way; of these a random share."""
    disk, highs = Disk(), [b""]
    for number, step in enumerate(steps):
        if step.high != highs[-1]:
            highs.append(step.high)
        if step.kind in {"sync", "end"} or (number and steps[number - 1].kind == "sync"):
            for how in HOW:
                if rng.random() < share:
                    high = rng.choice(highs)
                    yield Image(number, how, disk.cut(how, rng), step.told, high)
        disk.take(step)


def believing(steps: Iterable[Step]) -> list[Step]:
    """The same steps on a disk that says "synced" and does nothing."""
    return [step._replace(kind="nothing") if step.kind == "sync" else step for step in steps]


def _apply(files: dict[str, bytearray], name: str, steps: Iterable[Step]) -> None:
    for step in steps:
        if step.kind == "delete":
            files.pop(name, None)
        elif step.kind == "truncate":
            content = files.setdefault(name, bytearray())
            del content[step.at :]
            content.extend(bytes(step.at - len(content)))
        elif step.kind == "write":
            content = files.setdefault(name, bytearray())
            end = step.at + len(step.data)
            content.extend(bytes(max(0, end - len(content))))
            content[step.at : end] = step.data


def _some(steps: Iterable[Step], rng: Random) -> Iterator[Step]:
    """Whole sectors of the writes, each there or not, and the other steps likewise."""
    for step in steps:
        if step.kind != "write":
            if rng.random() < 0.5:
                yield step
            continue
        at, end = step.at, step.at + len(step.data)
        while at < end:
            upto = min(end, (at // SECTOR + 1) * SECTOR)
            if rng.random() < 0.5:
                yield step._replace(at=at, data=step.data[at - step.at : upto - step.at])
            at = upto
