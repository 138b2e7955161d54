"""What a repository's own files say about checking and preparing it, when nobody has said it.

Only the files at the top of a commit are read. Nothing is run, and what is found is shown to the
person and trusted once, before anything is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from lessor.project.tree import Tree

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_TARGET = re.compile(r"^(test|check)[ \t]*:(?!=)", re.MULTILINE)
_NPM_PLACEHOLDER = "no test specified"
_PYTEST_SECTIONS = (
    ("pyproject.toml", "[tool.pytest"),
    ("pytest.ini", "[pytest]"),
    ("setup.cfg", "[tool:pytest]"),
    ("tox.ini", "[pytest]"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A command and the file that led to it."""

    command: str
    origin: str


def find_check(tree: Tree) -> Found | None:
    """The command that tests the project; None where nothing tells."""
    return (
        _make_check(tree)
        or _python_check(tree)
        or _node_check(tree)
        or _plain(tree, "Cargo.toml", "cargo test")
        or _plain(tree, "go.mod", "go test ./...")
    )


def find_setup(tree: Tree) -> Found | None:
    """The command that installs what the project's lock files name; None where there are none.

    A project with two kinds of lock files gets both commands, one after the other.
    """
    found = [step for step in (_python_setup(tree), _node_setup(tree), _rust_setup(tree)) if step]
    if not found:
        return None
    return Found(
        command=" && ".join(step.command for step in found),
        origin=", ".join(step.origin for step in found),
    )


def _make_check(tree: Tree) -> Found | None:
    for name in _MAKEFILES:
        targets = set(_TARGET.findall(tree.text_of(name)))
        for target in ("test", "check"):
            if target in targets:
                return Found(command=f"make {target}", origin=name)
    return None


def _python_check(tree: Tree) -> Found | None:
    origin = next(
        (name for name, section in _PYTEST_SECTIONS if section in tree.text_of(name)), None
    )
    if origin is None and "pytest" in tree.text_of("pyproject.toml"):
        origin = "pyproject.toml"
    if origin is None and "pytest" in tree.text_of("requirements.txt"):
        origin = "requirements.txt"
    if origin is None:
        return None
    # In the environment that setup made: a pytest on PATH would test what the person has installed.
    if "uv.lock" in tree.names:
        runner = "uv run --frozen pytest"
    elif "poetry.lock" in tree.names:
        runner = "poetry run pytest"
    elif "pytest" in tree.text_of("requirements.txt"):
        runner = ".venv/bin/python -m pytest"
    else:
        runner = "pytest"
    return Found(command=f"{runner} -q", origin=origin)


def _python_setup(tree: Tree) -> Found | None:
    return (
        _plain(tree, "uv.lock", "uv sync --frozen")
        or _plain(tree, "poetry.lock", "poetry install --no-interaction")
        or _plain(
            tree,
            "requirements.txt",
            "python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt",
        )
    )


def _node_check(tree: Tree) -> Found | None:
    try:
        package = json.loads(tree.text_of("package.json") or "{}")
    except (ValueError, RecursionError):
        return None
    scripts = package.get("scripts") if isinstance(package, dict) else None
    test = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(test, str) or _NPM_PLACEHOLDER in test:
        return None
    return Found(command=f"{_node_manager(tree)} test", origin="package.json")


def _node_manager(tree: Tree) -> str:
    if "pnpm-lock.yaml" in tree.names:
        return "pnpm"
    if "yarn.lock" in tree.names:
        return "yarn"
    # `bun test` is bun's own runner, `bun run test` the script.
    return "bun run" if tree.names & {"bun.lock", "bun.lockb"} else "npm"


def _node_setup(tree: Tree) -> Found | None:
    # Yarn 2 and later have a configuration file of their own, and another name for the option.
    yarn = "--immutable" if ".yarnrc.yml" in tree.names else "--frozen-lockfile"
    return (
        _plain(tree, "pnpm-lock.yaml", "pnpm install --frozen-lockfile")
        or _plain(tree, "yarn.lock", f"yarn install {yarn}")
        or _plain(tree, "bun.lock", "bun install --frozen-lockfile")
        or _plain(tree, "bun.lockb", "bun install --frozen-lockfile")
        or _plain(tree, "package-lock.json", "npm ci")
        or _plain(tree, "npm-shrinkwrap.json", "npm ci")
    )


def _rust_setup(tree: Tree) -> Found | None:
    return _plain(tree, "Cargo.lock", "cargo fetch --locked") or _plain(
        tree, "go.sum", "go mod download"
    )


def _plain(tree: Tree, name: str, command: str) -> Found | None:
    return Found(command=command, origin=name) if name in tree.names else None
