"""A repository, a person in it, and a finished task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from person import MANIFEST, REMOTE, Person, git


@pytest.fixture(autouse=True)
def _no_git_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a remote, some code, and a trusted-once check."""
    top = tmp_path / "shop"
    for path, text in {
        "services/billing/client.py": "one\n",
        "services/billing/total.py": "two\n",
        "services/tax/rate.py": "three\n",
        "web/search/box.ts": "four\n",
        "README": "shop\n",
        ".gitignore": ".env\n",
        "lessor.toml": MANIFEST,
    }.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    git(top, "init", "-q", "-b", "main")
    git(top, "remote", "add", "origin", REMOTE)
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "shop")
    return top


@pytest.fixture
def person(tmp_path: Path, shop: Path) -> Person:
    home = tmp_path / "home"
    home.mkdir()
    return Person(home=home, cwd=shop)


@pytest.fixture
def outside(tmp_path: Path, person: Person) -> Person:
    """The same person in a directory that no repository is around."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    return Person(home=person.home, cwd=place)


Finished = Callable[..., str]


@pytest.fixture
def finished(person: Person, shop: Path) -> Finished:
    """Make a finished task with a commit on a branch; its number as text."""

    def finish(
        title: str, files: Mapping[str, str], *, stage: str = "verified", scopes: Sequence[str] = ()
    ) -> str:
        wanted = [word for scope in scopes for word in ("--scope", scope)]
        number = str(person.add(title, *wanted)["number"])
        grant = person.claim("--task", number)
        base = git(shop, "rev-parse", "HEAD")
        git(shop, "checkout", "-q", "-b", grant["branch"])
        for path, text in files.items():
            (shop / path).parent.mkdir(parents=True, exist_ok=True)
            (shop / path).write_text(text)
        git(shop, "add", ".")
        git(shop, "commit", "-q", "-m", title)
        head = git(shop, "rev-parse", "HEAD")
        git(shop, "checkout", "-q", "main")
        person.ok(
            *("complete", grant["leaseId"], "--base", base, "--commit", head),
            *("--stage", stage, "--said", "did it"),
        )
        return number

    return finish
