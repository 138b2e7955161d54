"""A disk that writes down what SQLite asks of it: writes, cuts and syncs, in order.

Run as a program: `recorded_disk.py FOLDER TURNS` lets a writer work on `FOLDER/store/lessor.db` with
its journal in `FOLDER/journals`, and leaves the steps in `FOLDER/steps`, closing nothing.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any, NamedTuple

import apsw

SHARED_MEMORY = "-shm"
"""What isn't on a disk: SQLite makes it anew from the log."""


class Step(NamedTuple):
    """What was asked of the disk, and what the world knew before.

    Attributes:
        kind: write, truncate, sync or delete.
        data: of a write; of a delete, something where the folder is synced with it.
        told: how long the writer's journal was.
        high: what stood in the high-water file.
    """

    kind: str
    file: str
    at: int
    data: bytes
    told: int
    high: bytes


class Recorder:
    """The steps of one process."""

    def __init__(self, store: Path, journal: Path) -> None:
        self.steps: list[Step] = []
        self._journal = journal
        self._high = store.with_name(store.name + ".high-water")

    def note(self, kind: str, file: str, *, at: int = 0, data: bytes = b"") -> None:
        told = self._journal.stat().st_size if self._journal.exists() else 0
        high = self._high.read_bytes() if self._high.exists() else b""
        self.steps.append(Step(kind, Path(file).name, at, bytes(data), told, high))


class RecordedFile(apsw.VFSFile):
    """One file; each step is noted before it is made."""

    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._recorder = recorder
        self._name = str(name.filename() if isinstance(name, apsw.URIFilename) else name)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the driver's name
        self._recorder.note("write", self._name, at=offset, data=data)
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - the driver's name
        self._recorder.note("truncate", self._name, at=newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802 - the driver's name
        self._recorder.note("sync", self._name)
        super().xSync(flags)


class RecordedDisk(apsw.VFS):
    """The disk of every database that this process opens from now on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        super().__init__("recorded", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> RecordedFile:  # noqa: N802 - the driver's name
        return RecordedFile(self._recorder, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - the driver's name
        self._recorder.note("delete", filename, data=b"synced" if syncdir else b"")
        super().xDelete(filename, syncdir)


def main() -> None:
    """Record a writer's work."""
    folder, turns = Path(sys.argv[1]), int(sys.argv[2])
    store, journal = folder / "store" / "lessor.db", folder / "journals" / "writer"
    recorder = Recorder(store, journal)
    disk = RecordedDisk(recorder)
    from writer import Writer  # noqa: PLC0415 - its stores open on the disk that is recorded

    writer = Writer(f"sqlite://{store}", journal)
    for turn in range(turns):
        writer.write(turn)
    recorder.note("end", str(store))
    (folder / "steps").write_bytes(pickle.dumps([tuple(step) for step in recorder.steps]))
    sys.stdout.flush()
    os._exit(0 if disk else 1)  # closing would bring everything to the disk


if __name__ == "__main__":
    main()
