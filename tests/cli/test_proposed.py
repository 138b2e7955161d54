"""What a command proposes next can be pasted as it stands, and is about the same task."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from person import Person, git


def proposed(line: str) -> list[str]:
    """The command of a last line, without the program's name."""
    step = line.strip().removeprefix("next").strip().split("     ")[0]
    return shlex.split(step[step.index("lessor") :])[1:]


def test_of_tasks_without_a_repository_it_names_them(person: Person) -> None:
    """They have numbers of their own: the same number is another task in the repository around."""
    person.add("of the shop")
    said = person.ok("add", "of nobody", "--repo", "none")
    assert said.lines[0] == "#2 of nobody  no repository"
    person.ok("block", "2", "--repo", "none")
    said = person.ok("unblock", "2", "--repo", "none")
    assert said.lines[-1] == "next  lessor claim --repo none"
    assert "  repo     none" in person.ok("show", "2", "--repo", "none").lines
    for command in (["list"], ["why", "2"], ["show", "2"], ["list"]):
        said = person.ok(*command, "--repo", "none")
        assert "grows" not in said.out
        assert "of the shop" not in person.ok(*proposed(said.lines[-1])).out


def test_of_another_repository_it_names_that(person: Person, tmp_path: Path) -> None:
    other = tmp_path / "other place"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    git(other, "commit", "-q", "--allow-empty", "-m", "one")
    person.ok("add", "elsewhere", cwd=other)
    person.add("here")
    said = person.ok("list", "--repo", other)
    assert said.lines[-1] == f"next  lessor --repo '{other}' show 1"
    assert person.ok(*proposed(said.lines[-1])).lines[0].startswith("#1 elsewhere")
    refused = person.run("show", "7", "--repo", other)
    assert "elsewhere" in person.ok(*proposed(refused.err.splitlines()[-1])).out
    assert person.ok("--repo", other, "-o", "json").json["next"][0].startswith("lessor --repo ")


def test_of_every_repository_it_says_which_has_the_number(person: Person, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    git(other, "commit", "-q", "--allow-empty", "-m", "one")
    person.add("here")
    person.ok("add", "elsewhere", cwd=other)
    said = person.ok("list", "--all")
    assert said.lines == [
        "other  #1  queued  elsewhere  grows",
        "shop   #1  queued  here       grows",
        "next  lessor show --repo other 1",
    ]
    assert person.ok(*proposed(said.lines[-1])).lines[0].startswith("#1 elsewhere")
    page = person.ok("list", "--all", "-n", "1").lines
    assert person.ok(*proposed(page[-1])).lines[0].startswith("shop  #1")


@pytest.mark.parametrize("scheme", ["sqlite://", ""])
def test_of_another_store_it_names_that(person: Person, tmp_path: Path, scheme: str) -> None:
    store = f"{scheme}{tmp_path}/other.db"
    person.ok("add", "there", "--store", store)
    said = person.ok("list", "--store", store)
    assert said.lines[-1] == f"next  lessor --store {store} show 1"
    assert person.ok(*proposed(said.lines[-1])).lines[0].startswith("#1 there")


def test_an_address_that_may_have_a_password_is_never_said_again(person: Person) -> None:
    store = "postgresql://dana:secret@127.0.0.1:1/lessor"
    for form in ("table", "json"):
        refused = person.run("list", "--store", store, "-o", form)
        assert refused.code != 0
        assert "secret" not in refused.out + refused.err
    remote = "https://dana:secret@git.example/acme/shop"
    said = person.run("add", "one", "--repo", remote)
    assert "secret" not in said.out
    for form in ("table", "json"):
        refused = person.run("show", "1", "--repo", f"{remote}-2", "-o", form)
        assert refused.code != 0
        assert "secret" not in refused.out + refused.err


def test_a_name_that_fits_two_is_refused_with_where_they_are(
    person: Person, tmp_path: Path
) -> None:
    for place in ("one", "two"):
        made = tmp_path / place / "twin"
        made.mkdir(parents=True)
        git(made, "init", "-q", "-b", "main")
        person.ok("list", cwd=made)
    refused = person.run("list", "--repo", "twin")
    assert refused.code == 2
    assert f"{tmp_path}/one/twin, {tmp_path}/two/twin" in refused.err
    person.ok("list", "--repo", tmp_path / "two" / "twin")


@pytest.mark.parametrize("args", [["show", "99"], ["why", "99"], ["renew", "99"]])
def test_a_command_in_a_refusal_ends_without_a_dot(person: Person, args: list[str]) -> None:
    person.add("a")
    step = person.run(*args).err.splitlines()[-1]
    assert not step.endswith(".")
    person.ok(*proposed(step))
