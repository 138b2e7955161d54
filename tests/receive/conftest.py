"""A bare repository with Lessor's hooks, whose keeper ends with the test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from gated import Gated, git

from builders import MakeStore, Yard


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_", "LESSOR_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


@pytest.fixture(params=["sqlite"])
def gated(request: pytest.FixtureRequest, tmp_path: Path, make_store: MakeStore) -> Iterator[Gated]:
    store = make_store(request.param, real_time=True)
    yard = Yard(store, store.connect())
    bare, clone = tmp_path / "origin.git", tmp_path / "shop"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    git(tmp_path, "init", "-q", "-b", "main", str(clone))
    git(clone, "remote", "add", "origin", str(bare))
    made = Gated(yard=yard, bare=bare, clone=clone)
    made.commit("services/billing/a", "services/tax/rate", "libs/x", "README")
    git(clone, "push", "-q", "origin", "main")
    made.install()
    yield made
    made.stop()
