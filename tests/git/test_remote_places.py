"""Where a remote is on this machine, as a push reaches it; nowhere for any other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lessor.git.remote import place_of


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in ("hub.git", "shop"):
        subprocess.run(["git", "init", "-q", str(tmp_path / name)], check=True)
    return tmp_path / "shop"


@pytest.mark.parametrize("url", ["../hub.git", "{hub}", "file://{hub}"])
def test_a_remote_on_this_machine_has_a_place_by_name_and_by_url(clone: Path, url: str) -> None:
    hub = clone.parent / "hub.git"
    said = url.format(hub=hub)
    subprocess.run(["git", "remote", "add", "hub", said], cwd=clone, check=True)
    assert place_of(clone, "hub") == place_of(clone, said) == hub


def test_a_push_url_counts(clone: Path) -> None:
    for args in (
        ["add", "hub", "git@example.org:a.git"],
        ["set-url", "--push", "hub", "../hub.git"],
    ):
        subprocess.run(["git", "remote", *args], cwd=clone, check=True)
    assert place_of(clone, "hub") == clone.parent / "hub.git"


@pytest.mark.parametrize(
    "remote",
    ["origin", "../gone.git", "git@example.org:a.git", f"https://example.org/{'a' * 300}/b.git"],
)
def test_any_other_remote_has_none(clone: Path, remote: str) -> None:
    assert place_of(clone, remote) is None
