"""What can't be read about a push lets none through."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from gated import Gated, git

from lessor.errors import GitError
from lessor.git.server_hooks import FOLDER, PUSHES
from lessor.model.push import RefUpdate
from lessor.receive.gate import Gate, Push
from lessor.receive.policy import read_policy

PID = 412


def nobody() -> NoReturn:
    raise AssertionError("the store is asked only once the note is read")


def push(name: str) -> Push:
    update = RefUpdate(ref=f"refs/heads/{name}", old=None, new="1" * 40)
    return Push(pid=PID, process="it", updates=(update,), env={})


@pytest.mark.parametrize("note", ["a directory", "half of it", "another shape"])
def test_a_note_that_cannot_be_read_stops_the_push_under_the_lock(gated: Gated, note: str) -> None:
    place: Path = gated.bare / FOLDER / PUSHES / str(PID)
    if note == "a directory":
        place.mkdir()
    else:
        place.write_text('{"process": "i' if note == "half of it" else "{}")
    verdict = Gate(gated.bare, gated.bare / FOLDER, nobody).prepare(push("main"))
    assert not verdict.passed
    assert "can't be read" in verdict.words[0]


def test_where_there_is_no_note_there_is_no_push(gated: Gated) -> None:
    assert Gate(gated.bare, gated.bare / FOLDER, nobody).prepare(push("main")).passed


def test_a_policy_that_cannot_be_read_allows_nothing(gated: Gated) -> None:
    git(gated.bare, "config", "lessor.unleased", "refuse")
    with (gated.bare / "config").open("a") as file:
        file.write("[broken\n")
    with pytest.raises(GitError):
        read_policy(gated.bare)
