"""`lessor git`, as whoever keeps the server calls it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError

import pytest
from person import Person, git

from lessor.receive.keeper import stop_keeper


@pytest.fixture
def origin(tmp_path: Path, shop: Path) -> Iterator[Path]:
    place = tmp_path / "hub.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(place))
    git(shop, "remote", "add", "hub", str(place))
    git(shop, "push", "-q", "hub", "main")
    yield place
    stop_keeper(place / "lessor")


def test_hooks_are_put_in_asked_and_taken_out(person: Person, shop: Path, origin: Path) -> None:
    said = person.ok("git", "install-server-hooks", "../hub.git", "-o", "json").json
    assert (said["place"], said["repo"]) == (str(origin), "github.com/acme/shop")
    number = str(person.add("work")["number"])
    grant = person.claim("--task", number)
    git(shop, "checkout", "-q", "-b", grant["branch"])
    (shop / "work").write_text("x\n")
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", "work")
    with pytest.raises(CalledProcessError):
        git(shop, "push", "-q", "hub", "HEAD")
    assert person.ok("push", "--remote", "hub", "-o", "json").json["moved"]
    assert person.ok("show", number, "-o", "json").json["scope"]["paths"] == ["work"]
    person.ok("release", grant["leaseId"])
    assert person.ok("git", "uninstall-server-hooks", "../hub.git", "-o", "json").json["removed"]
    git(shop, "push", "-q", "-f", "hub", "HEAD")
    said = person.ok("git", "uninstall-server-hooks", str(origin)).out
    assert "weren't there" in said


def test_whose_leases_count_has_to_be_clear(person: Person, shop: Path, origin: Path) -> None:
    at_origin = Person(home=person.home, cwd=origin)
    said = at_origin.run("git", "install-server-hooks", ".")
    assert said.code == 2
    assert "--repo NAME" in said.err
    assert "is this clone itself" in person.run("git", "install-server-hooks", ".").err
    person.ok()
    at_origin.ok("git", "install-server-hooks", ".", "--repo", "github.com/acme/shop")
    said = person.run("git", "install-server-hooks", str(origin.parent / "nothing"))
    assert said.code != 0


def test_a_store_that_is_named_by_a_relative_path_is_found_from_anywhere(
    person: Person, shop: Path, origin: Path
) -> None:
    person.ok("git", "install-server-hooks", "../hub.git", "--store", "here.db")
    assert f"sqlite://{shop}/here.db" in (origin / "lessor" / "gate.json").read_text()
