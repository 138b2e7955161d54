"""A fenced repository: a bare remote, a clone with work in it, and a store on told time."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_of_work import Site, git

from builders import MakeStore, Yard


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


@pytest.fixture
def site(tmp_path: Path, make_store: MakeStore) -> Site:
    store = make_store("sqlite")
    yard = Yard(store, store.connect())
    bare, clone = tmp_path / "origin.git", tmp_path / "shop"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    git(tmp_path, "init", "-q", "-b", "main", str(clone))
    git(clone, "remote", "add", "origin", str(bare))
    git(clone, "commit", "-q", "--allow-empty", "-m", "begin")
    git(clone, "push", "-q", "origin", "main")
    yard.lessor.registry.set_fence_remote(yard.repository.id, "origin")
    return Site(yard=yard, bare=bare, clone=clone)
