"""One word per state, the same on every page and in the documents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from person import Person

from lessor.model.lease import Holder
from lessor.model.lifecycle import TaskState
from lessor.model.task import Stage

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


def _claimed(person: Person, *args: str) -> str:
    person.add("one", *args)
    return str(person.claim()["leaseId"])


def _queued(person: Person) -> None:
    person.add("one")


def _running(person: Person) -> None:
    _claimed(person)


def _asks(person: Person) -> None:
    path = person.state / "leases" / f"{_claimed(person)}.json"
    with closing(person.open()) as lessor:
        lessor.leases.ask(Holder(**json.loads(path.read_text())), "which?")


def _quarantined(person: Person) -> None:
    person.ok("fail", _claimed(person, "--max-attempts", "1"), "--error", "boom")


def _reconciling(person: Person) -> None:
    person.ok("fail", _claimed(person, "--effects", "unsafe"), "--error", "boom")


def _blocked(person: Person) -> None:
    person.add("one")
    person.ok("block", "1")


def _succeeded(person: Person) -> None:
    person.ok("complete", _claimed(person))


def _failed(person: Person) -> None:
    person.ok("fail", _claimed(person), "--error", "boom", "--final")


def _cancelled(person: Person) -> None:
    person.add("one")
    person.ok("cancel", "1")


WAYS: dict[TaskState, Callable[[Person], None]] = {
    TaskState.QUEUED: _queued,
    TaskState.RUNNING: _running,
    TaskState.NEEDS_PERSON: _asks,
    TaskState.QUARANTINED: _quarantined,
    TaskState.RECONCILING: _reconciling,
    TaskState.BLOCKED: _blocked,
    TaskState.SUCCEEDED: _succeeded,
    TaskState.FAILED: _failed,
    TaskState.CANCELLED: _cancelled,
}


@pytest.mark.parametrize("state", [*TaskState])
def test_a_state_has_one_word_everywhere(person: Person, state: TaskState) -> None:
    WAYS[state](person)
    assert person.ok("show", "1", "-o", "json").json["state"] == state
    # Of one that succeeded people read how far its result got.
    word = Stage.UNVERIFIED.value if state is TaskState.SUCCEEDED else state.word
    assert person.ok("list").lines[0].split("  ")[1] == word
    assert person.ok("show", "1").lines[0].endswith(f"  {word}")
    assert f"| {state.word}" in PAGE or f", {state.word} |" in PAGE


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (TaskState.QUARANTINED, "is quarantined: it failed once, and isn't tried again by itself"),
        (TaskState.RECONCILING, "is reconciling: it may have had effects outside"),
        (TaskState.BLOCKED, "is blocked by dana"),
        (TaskState.SUCCEEDED, "has succeeded"),
        (TaskState.FAILED, "has failed: boom"),
        (TaskState.CANCELLED, "is cancelled"),
    ],
)
def test_why_says_the_state_in_that_word(person: Person, state: TaskState, word: str) -> None:
    WAYS[state](person)
    assert word in " ".join(person.ok("why", "1").out.split())


@pytest.mark.parametrize(
    ("state", "word"),
    [(TaskState.QUARANTINED, "quarantined: boom"), (TaskState.RECONCILING, "reconciling: ")],
)
def test_the_page_says_it_too(person: Person, state: TaskState, word: str) -> None:
    WAYS[state](person)
    page = person.ok()
    assert word in page.out
    assert page.lines[0].endswith(f" · 1 {state.word}")


def test_a_task_that_waits_for_a_question_says_so_in_its_word(person: Person) -> None:
    _asks(person)
    assert "   waits   for #1 (needs you)" in person.ok("add", "two", "--after", "1").lines


def test_the_stages_are_on_the_page_too() -> None:
    listed = set(re.findall(r"\*(\w+)\*", PAGE))
    assert {stage.value for stage in Stage} - {"none"} <= listed
