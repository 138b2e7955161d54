"""Real repositories, made quickly, that nothing of the machine's configuration reaches."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.git.repository import Repository, find_repository
from lessor.git.worktree import add_worktree

Git = Callable[..., str]

IGNORED = ".env\n*.log\nbuild/\nnode_modules/\nvendor/\n__pycache__/\n"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def git() -> Git:
    """Plain git as an agent runs it: `git(directory, *args)` returns what it printed."""

    def run(cwd: Path, *args: str, check: bool = True, stdin: bytes = b"") -> str:
        done = subprocess.run(
            [
                *("git", "-c", "protocol.file.allow=always", "-c", "user.name=Agent"),
                *("-c", "user.email=agent@example.org", "-c", "commit.gpgSign=false", *args),
            ],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stderr.decode(errors="replace")
        return os.fsdecode(done.stdout).rstrip("\n")

    return run


@pytest.fixture
def main(tmp_path: Path, git: Git) -> Path:
    """The main worktree of a small repository with two commits on `main`."""
    top = tmp_path / "shop"
    (top / "src").mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    (top / ".gitignore").write_text(IGNORED)
    (top / "README").write_text("shop\n")
    (top / "src" / "app.py").write_text("one\ntwo\nthree\n")
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("README")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "begin")
    (top / "README").write_text("the shop\n")
    git(top, "commit", "-q", "-am", "name it")
    return top


@pytest.fixture
def repo(main: Path) -> Repository:
    return find_repository(main)


@pytest.fixture
def worktree(repo: Repository, tmp_path: Path) -> Path:
    """A worktree as a claim makes it: task 7, epoch 1, branch claude/7-totals, from main."""
    path = tmp_path / "trees" / "7-1"
    add_worktree(
        repo, path=path, branch="claude/7-totals", base="main", task="7", epoch=1, reason="task=7"
    )
    return path


@pytest.fixture
def submodule(main: Path, tmp_path: Path, git: Git) -> str:
    """Adds a submodule `parts` to main, before any worktree is made; its path."""
    origin = tmp_path / "parts-origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    (origin / "part").write_text("part\n")
    git(origin, "add", "-A")
    git(origin, "commit", "-q", "-m", "part")
    git(main, "submodule", "add", "-q", str(origin), "parts")
    git(main, "commit", "-q", "-m", "add parts")
    return "parts"


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Git) -> Callable[[], int]:
    """Counts every start of git from now on."""
    program = git(tmp_path, "--exec-path") + "/git"
    log = tmp_path / "started"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f"#!/bin/sh\necho x >> '{log}'\nexec {program} \"$@\"\n")
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    return lambda: len(log.read_text().split()) if log.exists() else 0
