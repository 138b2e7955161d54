"""A project: everything that a run needs to know of a repository at one commit, with its origins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from lessor.git.bring import INCLUDE_FILE, include_patterns
from lessor.git.repository import Repository
from lessor.model.budget import Budget
from lessor.model.lease import HOUR, MINUTE
from lessor.model.shadow import Unlanded
from lessor.project.agents import installed_agents
from lessor.project.discovery import Found, find_check, find_setup
from lessor.project.manifest import MANIFEST, read_manifest
from lessor.project.tree import Tree
from lessor.project.trust import commands_digest, is_trusted
from lessor.settings import Settings

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What holds for work that begins at `commit`.

    Attributes:
        check: the command that judges a result; None means that results stay unverified.
        setup: the command that prepares a worktree.
        bring: patterns of ignored files that are copied into a worktree.
        agent: the agent's kind; None where none is named and none is on PATH.
        agents: argument lists of agents that the repository defines itself.
        workers: how many agents work side by side.
        lease_ms: how long a lease lasts; None means Lessor's own terms.
        workspaces: how many worktrees to keep here.
        unlanded: what is done where a result lies that hasn't landed; None leaves the store's setting.
        scopes: names for sets of paths.
        push: whether results are pushed to the remote.
        origins: where each of these came from: a file's name, "PATH", or "default".
        digest: names exactly this set of commands in this clone.
        trusted: whether the person has agreed to run these commands; True where there are none.
    """

    commit: str
    check: str | None
    setup: str | None
    bring: tuple[str, ...]
    agent: str | None
    digest: str
    trusted: bool
    base: str | None = None
    workers: int = 1
    lease_ms: int | None = None
    quiet_ms: int = 20 * MINUTE
    total_ms: int = 2 * HOUR
    rounds: int = 3
    attempts: int = 3
    queue: str = "default"
    unlanded: Unlanded | None = None
    push: bool = False
    workspaces: Budget = field(default_factory=Budget)
    agents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def commands(self) -> list[tuple[str, str, str]]:
        """What running it would execute or copy: (what, text, origin) each."""
        found = [
            (what, text, self.origins[what])
            for what, text in (("check", self.check), ("setup", self.setup))
            if text is not None
        ]
        found += [
            (f"agent {name}", " ".join(words), MANIFEST) for name, words in self.agents.items()
        ]
        if self.push:
            found.append(("push", "each result to its remote, as you", MANIFEST))
        if self.origins["bring"] != DEFAULT:
            found.append(("brings", ", ".join(self.bring), self.origins["bring"]))
        return found


# The file's names where the record's differ: people write short ones.
_FIELDS = {"n": "workers", "lease": "lease_ms", "quiet": "quiet_ms", "total": "total_ms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Discovery:
    value: Any
    origin: str


def project_of(repository: Repository, *, commit: str, settings: Settings) -> Project:
    """The project at `commit`: its `lessor.toml` first, then what is found, then the defaults.

    Reads the commit, PATH and the trust directory; runs nothing and writes nothing.

    Raises:
        InvalidError: its `lessor.toml` can't be used.
        GitError: `commit` names none.
    """
    tree = Tree(repository, commit)
    content = tree.bytes_of(MANIFEST)
    given = dict(read_manifest(content)) if content is not None else {}
    origins = dict.fromkeys(given, MANIFEST)
    settled = {_FIELDS.get(key, key): value for key, value in given.items()}
    for name, found in _discovered(tree, given).items():
        settled[name] = found.value
        origins[name] = found.origin
    named = {name: settled.get(name) for name in ("check", "setup", "bring", "agents")}
    if settled.get("push"):
        named["push"] = True
    digest = commands_digest(repository, named)
    project = Project(
        commit=commit,
        digest=digest,
        trusted=is_trusted(settings, digest),
        origins=MappingProxyType(origins),
        **settled,
    )
    return project if project.commands else replace(project, trusted=True)


def _discovered(tree: Tree, given: Mapping[str, Any]) -> dict[str, _Discovery]:
    """What the file leaves open and the repository or this machine tells."""
    finders: Mapping[str, Callable[[Tree], _Discovery]] = {
        "check": lambda tree: _command(find_check(tree)),
        "setup": lambda tree: _command(find_setup(tree)),
        "bring": _bring,
        "agent": _agent,
    }
    return {name: find(tree) for name, find in finders.items() if name not in given}


def _command(found: Found | None) -> _Discovery:
    if found is None:
        return _Discovery(value=None, origin=DEFAULT)
    return _Discovery(value=found.command, origin=found.origin)


def _bring(tree: Tree) -> _Discovery:
    if INCLUDE_FILE in tree.names:
        patterns = include_patterns(tree.text_of(INCLUDE_FILE))
        return _Discovery(value=patterns, origin=INCLUDE_FILE)
    return _Discovery(value=include_patterns(None), origin=DEFAULT)


def _agent(_tree: Tree) -> _Discovery:
    first = next((agent.name for agent in installed_agents() if agent.path), None)
    return _Discovery(value=first, origin="PATH" if first else DEFAULT)
