"""Clones of one remote are one repository: what is leased in one is leased in the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from person import REMOTE, Person, git


@pytest.fixture
def second(person: Person, shop: Path, tmp_path: Path) -> Person:
    """The same person in a clone of their own, whose remote is written in another way."""
    git(tmp_path, "clone", "-q", str(shop), "again")
    assert REMOTE == "git@github.com:acme/shop.git"
    url = "https://dana:secret@github.com/acme/shop/"
    git(tmp_path / "again", "remote", "set-url", "origin", url)
    return Person(home=person.home, cwd=tmp_path / "again")


def test_paths_that_are_held_in_one_clone_are_held_in_the_other(
    person: Person, second: Person
) -> None:
    person.ok("acquire", "--scope", "services/billing", "--agent", "codex-1")
    refused = second.run("acquire", "--scope", "services/billing/client.py")
    assert refused.code == 6
    assert "codex-1" in refused.err
    assert "codex-1" in second.ok("who", "services/billing").out


def test_tasks_of_one_clone_are_the_others_too(person: Person, second: Person) -> None:
    number = person.add("Round totals")["number"]
    assert second.claim("--task", str(number))["owner"]["taskId"].startswith("task_")
    assert second.ok("list", "-o", "json").json == person.ok("list", "-o", "json").json
    lessor = person.open()
    (repository,) = lessor.registry.repositories()
    assert len(lessor.registry.checkouts(repository.id)) == 2
    lessor.close()


def test_a_clone_of_another_remote_is_another_repository(
    person: Person, second: Person, shop: Path
) -> None:
    git(second.cwd, "remote", "set-url", "origin", "git@github.com:acme/Shop2.git")
    person.ok("acquire", "--scope", "services/billing")
    second.ok("acquire", "--scope", "services/billing")
