"""A lease in a directory: the test says what the store answers, and reads what it was asked."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from lessor.errors import LeaseLostError, StoreUnavailableError
from lessor.runner.lifeline import Renewal, Watch


class FileLease:
    """The store's side, for a test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.directory.mkdir(exist_ok=True)
        self.answer(mode="live")

    def answer(self, **conduct) -> None:
        draft = self.directory / "conduct.draft"
        draft.write_text(json.dumps({"ttl_ms": 60_000, **conduct}))
        draft.replace(self.directory / "conduct")

    def calls(self, name: str) -> list[dict]:
        try:
            lines = (self.directory / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []
        records = [json.loads(line) for line in lines]
        return [record for record in records if record["call"] == name]

    def unanswered(self) -> bool:
        """Whether a call hangs."""
        return (self.directory / "hanging").exists()

    def let_go(self) -> None:
        """Answer the call that hangs."""
        (self.directory / "never").write_text("x")


class FileLifeline:
    """The holder's side."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._version = 1

    def renew(self) -> Renewal:
        conduct = self._meet("renew")
        self._version += 1
        return Renewal(
            version=self._version,
            ttl_ms=conduct["ttl_ms"],
            cancelled=conduct.get("cancelled", False),
            stop=conduct.get("stop", False),
        )

    def watch(self) -> Watch:
        conduct = self._meet("watch")
        return Watch(
            held=conduct.get("held", True),
            cancelled=conduct.get("cancelled", False),
            stop=conduct.get("stop", False),
            reason=conduct.get("reason", ""),
        )

    def end_gone(self, proof: str) -> None:
        self._meet("end_gone", proof=proof)

    def _meet(self, call: str, **facts) -> dict:
        with (self._directory / "calls").open("a") as file:
            file.write(json.dumps({"call": call, "thread": threading.get_ident(), **facts}) + "\n")
        conduct = json.loads((self._directory / "conduct").read_text())
        match conduct["mode"]:
            case "refuse":
                raise LeaseLostError("Task 14 is held by worker_2 at epoch 5.")
            case "silent":
                raise StoreUnavailableError("The store can't be reached.")
            case "hang":
                (self._directory / "hanging").touch()
                os.read(os.open(self._directory / "never", os.O_RDONLY), 1)
            case "crash":
                raise ZeroDivisionError
        return conduct


def open_lifeline(argument: dict) -> FileLifeline:
    return FileLifeline(argument["directory"])
